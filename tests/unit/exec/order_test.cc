// SPDX-License-Identifier: Apache-2.0
// The order in which streams let operations run, as CUDA defines it.
#include <gmock/gmock.h>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr uint32_t kLegacy = VGPU_STREAM_LEGACY;
constexpr uint32_t kS1 = 16, kS2 = 17;  // blocking
constexpr uint32_t kN1 = 18, kN2 = 19;  // non-blocking

struct OrderCase {
  const char* name;
  uint32_t first;   // stream of an endless kernel
  uint32_t second;  // stream of a later kernel
  bool waits;       // may the later one run before the first has ended?
};

class OrderTest : public testing::TestWithParam<OrderCase> {};

TEST_P(OrderTest, LaterKernelWaits) {
  const OrderCase& c = GetParam();
  ExecRig rig;
  for (const uint32_t id : {kS1, kS2}) rig.guest.Submit({VGPU_OP_STREAM_CREATE, {id, 0, 0}});
  for (const uint32_t id : {kN1, kN2}) rig.guest.Submit({VGPU_OP_STREAM_CREATE, {id, VGPU_STREAM_NON_BLOCKING, 0}});
  const uint64_t endless = rig.Kernel("endless");
  const uint64_t a = rig.Kernel("a");
  int steps = 0;
  rig.script->on_step = [&] {
    if (++steps == 50000) rig.Revoke();
  };
  rig.Grant();
  const uint64_t first = rig.guest.Launch(endless, c.first);
  const uint64_t second = rig.guest.Launch(a, c.second);
  rig.Settle();
  EXPECT_TRUE(rig.Pending(first));
  EXPECT_EQ(c.waits, rig.Pending(second));
}

INSTANTIATE_TEST_SUITE_P(, OrderTest,
                         testing::ValuesIn(std::vector<OrderCase>{
                             {"same_stream", kS1, kS1, true},
                             {"same_non_blocking", kN1, kN1, true},
                             {"legacy_legacy", kLegacy, kLegacy, true},
                             {"legacy_before_blocking", kLegacy, kS1, true},
                             {"blocking_before_legacy", kS1, kLegacy, true},
                             {"per_thread_base_before_legacy", VGPU_STREAM_PER_THREAD, kLegacy, true},
                             {"two_blocking", kS1, kS2, false},
                             {"legacy_before_non_blocking", kLegacy, kN1, false},
                             {"non_blocking_before_legacy", kN1, kLegacy, false},
                             {"two_non_blocking", kN1, kN2, false},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Order, LegacyIsABarrierBetweenBlockingStreams) {
  ExecRig rig;
  for (const uint32_t id : {kS1, kS2}) rig.guest.Submit({VGPU_OP_STREAM_CREATE, {id, 0, 0}});
  const uint64_t a = rig.Kernel("a"), b = rig.Kernel("b"), c = rig.Kernel("c");
  rig.guest.Launch(a, kS1);
  rig.guest.Launch(b, kLegacy);
  rig.guest.Launch(c, kS2);
  rig.Grant();
  rig.Settle();
  EXPECT_THAT(rig.script->log, ElementsAre("a", "b", "c"));
}

TEST(Order, EventWaitHoldsAnotherStreamBack) {
  ExecRig rig;
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN1, 1, 0}});
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN2, 1, 0}});
  const uint64_t a = rig.Kernel("long"), b = rig.Kernel("b");
  rig.guest.Launch(a, kN1);
  rig.guest.Submit({VGPU_OP_EVENT_RECORD, {7, 1}, kN1});
  const uint64_t wait = rig.guest.Submit({VGPU_OP_EVENT_WAIT, {7, 1}, kN2});
  rig.guest.Launch(b, kN2);
  rig.Settle();
  EXPECT_TRUE(rig.Pending(wait));
  EXPECT_EQ(0u, rig.guest.Event(7).generation);
  rig.now_ns = 4242;
  rig.Grant();
  rig.Settle();
  EXPECT_THAT(rig.script->log, ElementsAre("long", "b"));
  EXPECT_EQ(0u, rig.Status(wait));
  EXPECT_EQ(1u, rig.guest.Event(7).generation);
  EXPECT_EQ(4242u, rig.guest.Event(7).timestamp_ns);
}

TEST(Order, WaitForARecordThatDoesNotExistIsRefused) {
  ExecRig rig;
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_EVENT_WAIT, {7, 1}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_EVENT_WAIT, {VGPU_EVENT_SLOTS, 0}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_EVENT_WAIT, {7, 0}})));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Order, GateHoldsItsStreamBackUntilTheGuestOpensIt) {
  ExecRig rig;
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN1, 1, 0}});
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN2, 1, 0}});
  const uint64_t a = rig.Kernel("a"), b = rig.Kernel("b"), c = rig.Kernel("c");
  rig.Grant();
  rig.guest.Launch(a, kN1);
  const uint64_t gate = rig.guest.Submit({VGPU_OP_GATE_WAIT, {5, 2}, kN1});
  rig.guest.Launch(b, kN1);
  rig.guest.Launch(c, kN2);
  rig.Settle();
  EXPECT_THAT(rig.script->log, UnorderedElementsAre("a", "c"));
  EXPECT_TRUE(rig.Pending(gate));
  rig.guest.header().gate[5] = 1;
  rig.Settle();
  EXPECT_TRUE(rig.Pending(gate)) << "an earlier generation";
  rig.guest.header().gate[5] = 2;
  rig.Settle();
  EXPECT_EQ(0u, rig.Status(gate));
  EXPECT_THAT(rig.script->log, testing::Contains("b"));
}

TEST(Order, GateOfAnEventSlotHoldsItsStreamBack) {
  ExecRig rig;
  rig.guest.Submit({VGPU_OP_EVENT_RECORD, {9, 3}});
  rig.Settle();
  const uint64_t gate = rig.guest.Submit({VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(9), 4}});
  rig.Settle();
  EXPECT_TRUE(rig.Pending(gate)) << "the slot's last record is an earlier generation";
  rig.guest.OpenSlot(9, 4);
  rig.Settle();
  EXPECT_EQ(0u, rig.Status(gate));
}

TEST(Order, GateOpensBehindAnEntryThatWaitsForTheWholeChannel) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(4096);
  rig.guest.Submit({VGPU_OP_GATE_WAIT, {0, 1}});
  const uint64_t freed = rig.guest.Submit({VGPU_OP_MEM_FREE, {address}});
  rig.Settle();
  EXPECT_TRUE(rig.Pending(freed));
  rig.guest.header().gate[0] = 1;
  EXPECT_EQ(0u, rig.Status(freed));
}

TEST(Order, GateThatDoesNotExistIsRefused) {
  ExecRig rig;
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(VGPU_EVENT_SLOTS), 1}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_GATE_WAIT, {0, 0}})));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Order, SyncsCompleteWhenEarlierWorkIsDone) {
  ExecRig rig;
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN1, 1, 0}});
  const uint64_t a = rig.Kernel("a"), slow = rig.Kernel("long");
  const uint64_t k1 = rig.guest.Launch(a, kN1);
  const uint64_t stream_sync = rig.guest.Submit({VGPU_OP_STREAM_SYNC, {}, kN1});
  const uint64_t k2 = rig.guest.Launch(slow, kLegacy);
  const uint64_t context_sync = rig.guest.Submit({VGPU_OP_CONTEXT_SYNC});
  const uint64_t nop = rig.guest.Submit({VGPU_OP_NOP});
  rig.guest.Launch(a, kN1);
  rig.Settle();
  EXPECT_EQ(0u, rig.Status(nop));
  EXPECT_TRUE(rig.Pending(stream_sync));
  EXPECT_TRUE(rig.Pending(context_sync));
  rig.Grant();
  rig.Settle();
  rig.guest.Read();
  const auto at = [&](uint64_t seqno) { return std::find(rig.guest.order().begin(), rig.guest.order().end(), seqno); };
  EXPECT_LT(at(k1), at(stream_sync));
  EXPECT_LT(at(stream_sync), at(k2));
  EXPECT_LT(at(k2), at(context_sync));
}

TEST(Order, QueryAnswersAtOnceWhetherAStreamHasWork) {
  ExecRig rig;
  for (const uint32_t id : {kS1, kN1}) rig.guest.Submit({VGPU_OP_STREAM_CREATE, {id, 0, 0}});
  const uint64_t a = rig.Kernel("a");
  const auto asked = [&](uint64_t id) { return rig.Done(rig.guest.Submit({VGPU_OP_STREAM_QUERY, {id}})); };
  EXPECT_EQ(0u, asked(kS1).value[0]);
  rig.guest.Launch(a, kS1);
  EXPECT_EQ(1u, asked(kS1).value[0]);
  EXPECT_EQ(0u, asked(kN1).value[0]);
  EXPECT_EQ(0u, asked(kLegacy).value[0]);
  rig.Grant();
  rig.Settle();
  EXPECT_EQ(0u, asked(kS1).value[0]);
  for (const uint64_t none : {uint64_t{99}, uint64_t{kS1} + (uint64_t{1} << 32), UINT64_MAX}) {
    EXPECT_EQ(400u, asked(none).status) << none;
    EXPECT_NE(std::string::npos, rig.error_text().find("STREAM_QUERY: no stream")) << rig.error_text();
  }
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Order, DestroyedStreamStillFinishes) {
  ExecRig rig;
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN1, 1, 0}});
  const uint64_t a = rig.Kernel("a");
  const uint64_t launch = rig.guest.Launch(a, kN1);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_STREAM_DESTROY, {kN1}})));
  EXPECT_EQ(400u, rig.Status(rig.guest.Launch(a, kN1)));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kN1, 0, 0}})));
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(launch));
}

TEST(Order, FreeWaitsForEarlierWork) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(8);
  const uint64_t a = rig.Kernel("long");
  const uint64_t launch = rig.guest.Launch(a, kLegacy, address);
  const uint64_t free = rig.guest.Submit({VGPU_OP_MEM_FREE, {address}});
  rig.Settle();
  EXPECT_TRUE(rig.Pending(free));
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(free));
  EXPECT_EQ(0u, rig.Status(launch));
}

}  // namespace
}  // namespace vgpud::exec
