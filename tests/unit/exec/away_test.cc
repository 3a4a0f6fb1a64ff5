// SPDX-License-Identifier: Apache-2.0
// Work whose memory is not on the card: what a turn does until there is room for it.
#include "tests/unit/exec/fakes/exec_rig.h"
#include "tests/unit/exec/fakes/fake_evictable.h"

namespace vgpud::exec {
namespace {

struct Away : testing::Test, ExecRig {
  Away() : ExecRig(0x200000, 0, false, 0, true) {
    script->evictable = &memory;
    memory.here = false;
    memory.full = true;
  }
  void Turn() {
    Grant();
    exec->TakeTurn(page.grant.load());
    Consume();
  }
  FakeEvictable memory;
};

TEST_F(Away, ItRunsInTheSameTurnWhenThereIsRoom) {
  const uint64_t launched = guest.Launch(Kernel("a"), 0);
  Consume();
  int looks = 0;
  await_room = [&] {
    EXPECT_TRUE(script->log.empty());
    EXPECT_EQ(8000u, slot_page.memory[3].wanted);
    memory.full = ++looks < 3;
  };
  Turn();
  EXPECT_EQ(3, looks);
  EXPECT_FALSE(Pending(launched));
  EXPECT_EQ((std::vector<std::string>{"a"}), script->log);
  EXPECT_EQ(0u, slot_page.memory[3].wanted);
}

TEST_F(Away, WithoutRoomTheTurnEndsAfterAMoment) {
  const uint64_t launched = guest.Launch(Kernel("a"), 0);
  Consume();
  await_room = [&] { now_ns += 3'000'000; };
  Turn();
  EXPECT_TRUE(Pending(launched));
  EXPECT_TRUE(script->log.empty());
  EXPECT_EQ(ExecState::kReady, state());
  EXPECT_EQ(8000u, slot_page.memory[3].wanted) << "vgpud is to hear of it";
}

// The work that was waited for is gone when the lock is taken again.
TEST_F(Away, AResetMeanwhileTakesTheWorkAway) {
  guest.Launch(Kernel("a"), 0);
  Consume();
  uint64_t reset = 0;
  await_room = [&] {
    reset = guest.Submit({VGPU_OP_CONTEXT_RESET});
    Consume();
    memory.full = false;
  };
  Turn();
  EXPECT_NE(0u, reset);
  EXPECT_FALSE(Pending(reset));
  EXPECT_TRUE(script->log.empty());
  EXPECT_EQ(ExecState::kIdle, state());
}

TEST_F(Away, ADriverThatHasLostItEndsTheContext) {
  const uint64_t first = guest.Launch(Kernel("a"), 0);
  const uint64_t second = guest.Launch(Kernel("b"), 0);
  Consume();
  memory.refuses = true;
  Turn();
  EXPECT_NE(0u, Status(first));
  EXPECT_NE(0u, Status(second));
  EXPECT_TRUE(script->log.empty());
  EXPECT_NE(std::string::npos, error_text().find("the driver is lost")) << error_text();
}

}  // namespace
}  // namespace vgpud::exec
