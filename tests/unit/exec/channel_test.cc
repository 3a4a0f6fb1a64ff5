// SPDX-License-Identifier: Apache-2.0
// Payload, completions, errors, memory, modules: what a guest sees of its channel.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kPosted = 0;

TEST(Payload, SpanIsHeldUntilItsOperationIsDone) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(1 << 20);
  const uint64_t before = rig.guest.released();
  const auto big = rig.guest.Take(100000);
  rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, big, kPosted});
  const auto small = rig.guest.Take(64);
  rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, small, kPosted});
  rig.Settle();
  EXPECT_EQ(before, rig.guest.released());
  rig.Grant();
  rig.Settle();
  EXPECT_EQ(small.position + small.length, rig.guest.released());
}

TEST(Payload, SmallCopiesAndLaunchesFreeTheirSpanAtOnce) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(64);
  const uint64_t kernel = rig.Kernel("a");
  const auto payload = rig.guest.Take(64);
  std::memset(payload.at, 5, 64);
  rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, payload});
  rig.guest.Launch(kernel, 0);
  rig.Settle();
  EXPECT_EQ(rig.guest.Take(1).position, rig.guest.released());
  std::memset(payload.at, 9, 64);  // no longer looked at
  rig.Grant();
  const auto out = rig.guest.Take(64);
  rig.Done(rig.guest.Submit({VGPU_OP_COPY_OUT, {address}, 0, out}));
  EXPECT_EQ(std::byte{5}, out.at[63]);
}

TEST(Payload, RunsAroundManyTimes) {
  ExecRig rig(0x10000);
  const uint64_t address = rig.Alloc(20000);
  rig.Grant();
  for (uint32_t i = 1; i < 200; ++i) {
    const auto in = rig.guest.Take(10000 + i);
    std::memset(in.at, static_cast<int>(i), in.length);
    rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, in, kPosted});
    const auto out = rig.guest.Take(100);
    ASSERT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_COPY_OUT, {address + 9999}, 0, out}))) << i;
    ASSERT_EQ(static_cast<std::byte>(i), out.at[0]);
  }
}

TEST(Completions, WaitWhileTheGuestDoesNotTakeThem) {
  ExecRig rig;
  for (unsigned i = 0; i < 10 * VGPU_SQ_ENTRIES && !rig.guest.RingFull(); ++i) {
    rig.guest.Submit({VGPU_OP_NOP});
    if (rig.guest.RingFull()) rig.Consume();
  }
  EXPECT_TRUE(rig.guest.RingFull());
  EXPECT_EQ(ChannelEngine::Ring::kWaiting, rig.ring);
  const uint64_t last = rig.guest.next_seqno() - 1;
  for (int i = 0; i < 10 && rig.Pending(last); ++i) rig.Consume();
  EXPECT_EQ(0u, rig.Status(last));
  EXPECT_EQ(last, rig.guest.order().size());
}

TEST(Completions, InterruptOnlyWhenTheGuestSleeps) {
  ExecRig rig;
  rig.interrupts = 0;
  rig.Done(rig.guest.Submit({VGPU_OP_NOP}));
  EXPECT_EQ(0, rig.interrupts);
  rig.guest.header().cq_need_wakeup = 1;
  rig.Done(rig.guest.Submit({VGPU_OP_NOP}));
  rig.Done(rig.guest.Submit({VGPU_OP_NOP}));
  EXPECT_EQ(1, rig.interrupts);
  EXPECT_EQ(0u, rig.guest.header().cq_need_wakeup);
  rig.guest.header().cq_need_wakeup = 1;
  rig.guest.Submit({VGPU_OP_EVENT_RECORD, {3, 9}, 0, {}, kPosted});
  rig.Settle();
  EXPECT_EQ(2, rig.interrupts);
}

TEST(Completions, EndlessWorkLeavesTheRingAloneWhenFull) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("a");
  uint64_t put = 0;
  for (; put < 10000; ++put) {
    if (rig.guest.RingFull()) rig.Consume();
    if (rig.guest.RingFull()) break;
    if (put % 1000 == 0) rig.Consume();
    rig.guest.Launch(kernel, 0, 0, kPosted);
  }
  EXPECT_LT(put, 6000u);
  EXPECT_EQ(ChannelEngine::Ring::kWaiting, rig.ring);
  rig.Grant();
  rig.Settle();
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_SYNC})));
  EXPECT_EQ(put, rig.slot_page.slots[3].kernels.load());
}

TEST(Errors, PostedErrorComesWithTheNextCompletionOnce) {
  ExecRig rig;
  rig.Grant();
  rig.guest.Submit({VGPU_OP_FILL, {0xdead, 1, 4, 1}, 0, {}, kPosted});
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_STREAM_SYNC})));
  EXPECT_NE(std::string::npos, rig.error_text().find("0xdead"));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_NOP})));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Errors, FaultPoisonsEverythingUntilReset) {
  ExecRig rig;
  const uint64_t bad = rig.Kernel("bad"), a = rig.Kernel("a");
  rig.Alloc(4 << 20);
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {16, 1, 0}});
  const uint64_t first = rig.guest.Launch(bad, 0);
  const uint64_t queued = rig.guest.Launch(a, 0);
  const uint64_t sync = rig.guest.Submit({VGPU_OP_CONTEXT_SYNC});
  rig.Grant();
  for (const uint64_t seqno : {first, queued, sync}) EXPECT_EQ(700u, rig.Status(seqno));
  EXPECT_EQ(700u, rig.guest.sticky());
  EXPECT_EQ("fake kernel touched nothing", rig.error_text());
  EXPECT_EQ(700u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_ALLOC, {8}})));
  EXPECT_EQ(0, rig.script->live_grids);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_EQ(0u, rig.guest.sticky());
  EXPECT_EQ(0u, rig.vf_used);
  EXPECT_EQ(400u, rig.Status(rig.guest.Launch(a, 0)));
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(rig.Kernel("a"), 0)));
}

TEST(Errors, ResetDropsQueuedWork) {
  ExecRig rig;
  const uint64_t endless = rig.Kernel("endless");
  const uint64_t launch = rig.guest.Launch(endless, 0);
  rig.guest.Submit({VGPU_OP_EVENT_RECORD, {5, 2}, 0, {}, kPosted});
  const uint64_t sync = rig.guest.Submit({VGPU_OP_CONTEXT_SYNC});
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_EQ(709u, rig.Status(launch));
  EXPECT_FALSE(rig.Pending(sync));
  EXPECT_EQ(2u, rig.guest.Event(5).generation);
  EXPECT_FALSE(rig.exec->engine()->HasWork());
}

TEST(Memory, InfoAndOutOfMemoryFollowTheVfsQuota) {
  ExecRig rig;
  rig.vf_used = 10 << 20;  // of other executors
  const uint64_t address = rig.Alloc(1 << 20);
  vgpu_cqe info = rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO}));
  EXPECT_EQ((64u - 11) << 20, info.value[0]);
  EXPECT_EQ(64u << 20, info.value[1]);
  EXPECT_EQ(2u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_ALLOC, {uint64_t{60} << 20}})));
  EXPECT_EQ(2u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_ALLOC, {~uint64_t{0}}})));
  rig.Alloc(53 << 20);
  EXPECT_EQ(2u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_ALLOC, {512}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_FREE, {address}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_FREE, {address}})));
  info = rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO}));
  EXPECT_EQ(1u << 20, info.value[0]);
}

TEST(Memory, ExecutorGetsWhatOthersGiveBack) {
  ExecRig rig;
  const uint64_t a = rig.Alloc(20 << 20);
  rig.Done(rig.guest.Submit({VGPU_OP_MEM_FREE, {a}}));
  EXPECT_EQ(0u, rig.vf_used);
}

TEST(Modules, UploadLoadLookUpUnload) {
  ExecRig rig;
  const vgpu_cqe loaded = rig.Load(77, "kernel k 3\nglobal g 4096\n");
  EXPECT_EQ(0u, loaded.status);
  EXPECT_EQ(1u, loaded.value[0]);
  EXPECT_EQ(1u, loaded.value[1]);
  const uint64_t k = rig.Function(77, "k");
  EXPECT_EQ(k, rig.Function(77, "k"));
  const vgpu_cqe global = rig.Done(rig.guest.Submit({VGPU_OP_MODULE_GLOBAL, {77}, 0, rig.guest.Take("g")}));
  EXPECT_EQ(4096u, global.value[1]);
  EXPECT_EQ(500u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_GLOBAL, {77}, 0, rig.guest.Take("h")})));
  EXPECT_EQ(500u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION, {77, 1}, 0, rig.guest.Take("x")})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION, {77, 1}, 0, rig.guest.Take("k")})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_FUNCTION_SET, {k, 8, 65536}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_FUNCTION_SET, {k, 8, 65537}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_UNLOAD, {77}})));
  EXPECT_EQ(400u, rig.Status(rig.guest.Launch(k, 0)));
}

TEST(Modules, FunctionInfoHasTheParameters) {
  ExecRig rig;
  rig.Load(1, "kernel k 3\n");
  const auto payload = rig.guest.Take(sizeof(vgpu_function_info) + sizeof(vgpu_param));
  payload.at[0] = std::byte{'k'};
  const vgpu_cqe entry = rig.Done(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION, {1, 1}, 0, payload}));
  EXPECT_EQ(payload.length, entry.value[1]);
  vgpu_function_info info;
  std::memcpy(&info, payload.at, sizeof info);
  EXPECT_EQ(1u, info.param_count);
  EXPECT_EQ(8u, info.param_bytes);
  EXPECT_EQ(49152u, info.max_dynamic_shared);
}

TEST(Modules, BadUploads) {
  ExecRig rig;
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 0}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, Modules::kMaxImageBytes + 1}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 16}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 16}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_DATA, {1, 15}, 0, rig.guest.Take("ab")})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_DATA, {1, ~uint64_t{0}}, 0, rig.guest.Take("ab")})));
  EXPECT_EQ(400u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_LOAD, {2}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_UNLOAD, {1}})));
  EXPECT_EQ(218u, rig.Load(1, "nonsense\n").status);
  EXPECT_EQ(0u, rig.Load(1, "kernel k 1\n").status);
}

TEST(Modules, TooLargeForTheVf) {
  ExecRig rig;
  EXPECT_EQ(2u, rig.Load(1, "global g 99999999\n").status);
}

TEST(Device, InfoFillsThePayload) {
  ExecRig rig;
  const auto payload = rig.guest.Take(sizeof(vgpu_device_info));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_DEVICE_INFO, {}, 0, payload})));
  vgpu_device_info info;
  std::memcpy(&info, payload.at, sizeof info);
  EXPECT_STREQ("fake", info.name);
  EXPECT_EQ(64u << 20, info.total_memory);
  EXPECT_EQ(65536, info.attribute[97]);
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_DEVICE_INFO, {}, 0, rig.guest.Take(100)})));
}

}  // namespace
}  // namespace vgpud::exec
