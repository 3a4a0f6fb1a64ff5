// SPDX-License-Identifier: Apache-2.0
// What a guest can write into its ring: every violation kills the channel with a sentence, none the process.
#include <algorithm>
#include <random>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

struct FormCase {
  const char* name;
  std::function<void(vgpu_sqe&)> damage;
  uint32_t error;
  const char* text;  // part of error_text
};

class ViolationTest : public testing::TestWithParam<FormCase> {};

TEST_P(ViolationTest, KillsTheChannelUntilReset) {
  const FormCase& c = GetParam();
  ExecRig rig;
  vgpu_sqe entry = rig.guest.Entry({VGPU_OP_NOP});
  c.damage(entry);
  rig.guest.Put(entry);
  EXPECT_EQ(c.error, rig.Status(entry.seqno));
  EXPECT_EQ(c.error, rig.guest.sticky());
  EXPECT_NE(std::string::npos, rig.error_text().find(c.text)) << rig.error_text();
  rig.guest.set_next_seqno(entry.seqno + 1);
  EXPECT_EQ(c.error, rig.Status(rig.guest.Submit({VGPU_OP_NOP})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_EQ(0u, rig.guest.sticky());
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_NOP})));
}

INSTANTIATE_TEST_SUITE_P(, ViolationTest,
                         testing::ValuesIn(std::vector<FormCase>{
                             {"op", [](vgpu_sqe& e) { e.op = VGPU_OP_COUNT; }, 1, "unknown op"},
                             {"flags", [](vgpu_sqe& e) { e.flags |= 0x80; }, 1, "flags"},
                             {"args", [](vgpu_sqe& e) { e.args[2] = 1; }, 1, "args[2]"},
                             {"payload_on_nop", [](vgpu_sqe& e) { e.payload_len = 8; }, 1, "payload_len"},
                             {"payload_missing", [](vgpu_sqe& e) { e.op = VGPU_OP_LAUNCH; }, 1, "payload_len"},
                             {"seqno_gap", [](vgpu_sqe& e) { e.seqno += 5; }, 999, "seqno"},
                             {"seqno_back", [](vgpu_sqe& e) { e.seqno = 0; }, 999, "seqno"},
                             {"span_outside",
                              [](vgpu_sqe& e) {
                                e.op = VGPU_OP_COPY_IN;
                                e.payload_pos = 0x200000;
                                e.payload_len = 1;
                              },
                              999, "payload_pos"},
                             {"span_too_long",
                              [](vgpu_sqe& e) {
                                e.op = VGPU_OP_COPY_IN;
                                e.payload_len = 0x100001;
                              },
                              999, "payload_pos"},
                             {"span_overflows",
                              [](vgpu_sqe& e) {
                                e.op = VGPU_OP_COPY_IN;
                                e.payload_pos = ~uint64_t{0} - 4;
                                e.payload_len = 8;
                              },
                              999, "payload_pos"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

// The least is the size of a structure that a handler copies out of the payload.
TEST(Hostile, PayloadsThatAreTooShortAreRefusedAndTheChannelLivesOn) {
  ExecRig rig;
  int tried = 0;
  for (uint32_t op = 0; op < VGPU_OP_COUNT; ++op) {
    const OpRow& row = *FindOp(op);
    if (row.rules.payload_least == 0) continue;
    const uint64_t seqno = rig.guest.Submit({op, {}, 0, rig.guest.Take(row.rules.payload_least - 1)});
    EXPECT_EQ(1u, rig.Status(seqno)) << row.name;
    EXPECT_NE(std::string::npos, rig.error_text().find(std::string(row.name) + ": payload of")) << rig.error_text();
    ++tried;
  }
  EXPECT_GE(tried, 3);
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Hostile, TailJumpIsSurvivedAndCanBeRepaired) {
  ExecRig rig;
  const uint32_t tail = rig.guest.header().sq_tail;
  rig.guest.header().sq_tail = tail + VGPU_SQ_ENTRIES + 1;
  rig.Settle();
  EXPECT_EQ(999u, rig.guest.sticky());
  EXPECT_NE(std::string::npos, rig.error_text().find("sq_tail"));
  EXPECT_TRUE(rig.exec->PrepareSleep());  // no spinning on a broken index
  rig.exec->EndSleep();
  rig.guest.header().sq_tail = tail;
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
}

TEST(Hostile, WildCompletionHeadOnlyStopsTheGuest) {
  ExecRig rig;
  rig.guest.header().cq_head = 0x80000000;
  rig.guest.Submit({VGPU_OP_NOP});
  rig.Settle();
  EXPECT_TRUE(rig.exec->engine()->FlushCompletions());
  rig.guest.header().cq_head = 0;
  EXPECT_FALSE(rig.exec->engine()->FlushCompletions());
}

class Fuzzer {
 public:
  explicit Fuzzer(ExecRig& rig) : rig_(rig) {}

  vgpu_sqe Next() {
    static constexpr uint32_t kStreams[] = {0, 0, 2, 16, 17, 18, 99};
    static constexpr uint32_t kLengths[] = {1, 8, 48, 200, 1160, 5000, 70000};
    TestGuest::Post post;
    post.op = Pick(VGPU_OP_COUNT);
    const OpRow& spec = *FindOp(post.op);
    post.stream = kStreams[Pick(std::size(kStreams))];
    post.flags = Pick(2);
    if (spec.rules.payload != PayloadRule::kNone) {
      post.payload = rig_.guest.Take(kLengths[Pick(std::size(kLengths))]);
      if (Pick(2) != 0) std::memset(post.payload.at, 0, post.payload.length);
      if (post.op == VGPU_OP_LAUNCH && post.payload.length >= 48) MakeLaunch(post.payload.at);
      if (post.op == VGPU_OP_MODULE_FUNCTION) post.payload.at[0] = std::byte{'a'};
      if (post.op == VGPU_OP_MODULE_DATA && post.payload.length >= 48)
        std::memcpy(post.payload.at, kImage, sizeof kImage);
    }
    for (unsigned i = 0; i < spec.rules.args; ++i) post.args.push_back(Value(post.op));
    vgpu_sqe entry = rig_.guest.Entry(post);
    if (Pick(40) == 0) Damage(entry);
    return entry;
  }
  uint64_t Pick(uint64_t n) { return random_() % n; }

 private:
  static constexpr char kImage[] = "kernel a 9\nkernel b 9 fault\nglobal g 99\n";

  static void MakeLaunch(std::byte* at) {
    vgpu_launch launch{{1, 1, 1}, {1, 1, 1}, 0, 8, 0, 0};
    std::memcpy(at, &launch, sizeof launch);
  }
  uint64_t Value(uint32_t op) {
    if (op == VGPU_OP_EVENT_RECORD || op == VGPU_OP_EVENT_WAIT) return Pick(6);
    switch (Pick(8)) {
      case 0:
        return random_();
      case 1:
        return Pick(1u << 16);
      case 2:
        return 16 + Pick(3);
      case 3:
        return 0x10000000 + Pick(1u << 16);
      default:
        return Pick(9);
    }
  }
  void Damage(vgpu_sqe& entry) {
    const uint64_t bit = Pick(sizeof entry * 8);
    auto* bytes = reinterpret_cast<unsigned char*>(&entry);
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1u << bit % 8));
  }

  ExecRig& rig_;
  std::mt19937_64 random_{20240611};
};

TEST(Hostile, HundredThousandRandomEntriesAreAllAnswered) {
  ExecRig rig;
  rig.script->keep_log = false;
  Fuzzer fuzz(rig);
  rig.Load(1, "kernel a 7\n");
  uint64_t sent = 0, wanted = 0, answered = 0, resets = 0;
  const auto set_gates = [&rig](uint64_t generation) {
    std::ranges::fill(rig.guest.header().gate, generation);
    for (uint32_t slot = 0; slot < VGPU_EVENT_SLOTS; ++slot) rig.guest.OpenSlot(slot, generation);
  };
  const auto drain = [&] {
    rig.Grant();
    set_gates(UINT64_MAX);
    rig.Settle();
    set_gates(0);
  };
  for (int i = 0; i < 100'000; ++i) {
    const vgpu_sqe entry = fuzz.Next();
    rig.guest.Put(entry);
    rig.guest.set_next_seqno(entry.seqno + 1);
    ++sent;
    wanted += (entry.flags & VGPU_SQE_WANT_COMPLETION) != 0 ? 1 : 0;
    if (fuzz.Pick(7) == 0) fuzz.Pick(2) != 0 ? rig.Grant() : rig.Revoke();
    if (fuzz.Pick(3) == 0 || rig.guest.RingFull()) {
      rig.Settle();
      if (rig.guest.RingFull()) drain();
      ASSERT_FALSE(rig.guest.RingFull());
      rig.guest.Read();
    }
    if (rig.guest.sticky() != 0 || fuzz.Pick(500) == 0) {
      // The guest knows where its payload is free again, and starts anew.
      rig.guest.Submit({VGPU_OP_CONTEXT_RESET, {}, 0, {}, 0});
      drain();
      ASSERT_EQ(0u, rig.guest.sticky());
      rig.guest.ResumePayload();
      ++resets;
    }
    rig.guest.KeepRoom(drain);
  }
  drain();
  rig.guest.Read();
  answered = rig.guest.order().size() - 3;
  EXPECT_EQ(wanted, answered) << "of " << sent;
  EXPECT_GT(resets, 100u);
  EXPECT_FALSE(rig.exec->engine()->HasWork());
  EXPECT_LE(rig.script->live_grids, 0);
}

}  // namespace
}  // namespace vgpud::exec
