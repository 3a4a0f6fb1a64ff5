// SPDX-License-Identifier: Apache-2.0
// What is launched before the kernel in front of it has ended (AsyncWork::LaunchBehind).
#include <gmock/gmock.h>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kLegacy = VGPU_STREAM_LEGACY;
constexpr uint32_t kS1 = 16, kS2 = 17;  // blocking

struct Behind : testing::Test, ExecRig {
  Behind() {
    for (const uint32_t id : {kS1, kS2}) guest.Submit({VGPU_OP_STREAM_CREATE, {id, 0, 0}});
    a = Kernel("a"), b = Kernel("b"), c = Kernel("c");
    script->launches_behind = true;
  }
  void Run() {
    Grant();
    Settle();
  }
  uint64_t a = 0, b = 0, c = 0;
};

TEST_F(Behind, LaunchesOfOneStreamFollowEachOther) {
  const uint64_t last = (guest.Launch(a, 0), guest.Launch(b, 0), guest.Launch(c, 0));
  Run();
  EXPECT_THAT(script->behind, ElementsAre("b behind a", "c behind b"));
  EXPECT_THAT(script->log, ElementsAre("a", "b", "c"));
  EXPECT_EQ(0u, Status(last));
  EXPECT_EQ(0, script->live_grids);
}

TEST_F(Behind, AGpuThatCantRunsThemOneByOne) {
  script->launches_behind = false;
  guest.Launch(a, 0), guest.Launch(b, 0);
  Run();
  EXPECT_THAT(script->behind, IsEmpty());
  EXPECT_THAT(script->log, ElementsAre("a", "b"));
}

TEST_F(Behind, NothingIsPassedBy) {
  guest.Launch(a, 0);
  guest.Submit({VGPU_OP_EVENT_RECORD, {7, 1}, 0});
  guest.Launch(b, 0);
  Run();
  EXPECT_THAT(script->behind, IsEmpty());
  EXPECT_THAT(script->log, ElementsAre("a", "b"));
}

// c waits for b in the legacy stream, which waits for a.
TEST_F(Behind, NorIsWhatLiesInAnotherStream) {
  guest.Launch(a, kS1), guest.Launch(b, kLegacy), guest.Launch(c, kS1);
  Run();
  EXPECT_THAT(script->behind, IsEmpty());
  EXPECT_THAT(script->log, ElementsAre("a", "b", "c"));
}

TEST_F(Behind, ThereIsABound) {
  for (int i = 0; i < 40; ++i) guest.Launch(a, 0);
  Consume();
  script->on_step = [this] { Revoke(); };
  Run();
  EXPECT_THAT(script->behind, SizeIs(Streams::kMostBehind));
}

TEST_F(Behind, WhatCanStillFinishGetsNothingNewBehindIt) {
  guest.Launch(Kernel("long"), 0), guest.Launch(b, 0);
  script->launches_behind = false;
  // From its second step on it could be.
  script->on_step = [this] {
    page.finish = page.grant.load();
    script->launches_behind = true;
  };
  Consume();
  Grant();
  exec->TakeTurn(page.grant.load());
  EXPECT_THAT(script->log, ElementsAre("long"));
  EXPECT_THAT(script->behind, IsEmpty());
}

TEST_F(Behind, WhatAResetTakesAwayIsGone) {
  guest.Launch(Kernel("endless"), 0), guest.Launch(b, 0);
  script->on_step = [this, steps = 0]() mutable {
    if (++steps == 50) Revoke();
  };
  Run();
  EXPECT_THAT(script->behind, ElementsAre("b behind endless"));
  EXPECT_EQ(2, script->live_grids);
  Done(guest.Submit({VGPU_OP_CONTEXT_RESET}));
  EXPECT_EQ(0, script->live_grids);
}

}  // namespace
}  // namespace vgpud::exec
