// SPDX-License-Identifier: Apache-2.0
// A GPU that works beside the processor (AsyncWork::Busy): while anything of this context is on it, so is the
// executor.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

struct Beside : testing::Test, ExecRig {
  Beside() {
    script->wait_until_idle = [this] {
      ++waits;
      while_waiting = state();
    };
  }
  void Turn() {
    Grant();
    exec->TakeTurn(page.grant.load());
  }
  int waits = 0;
  ExecState while_waiting = ExecState::kNone;
};

TEST_F(Beside, WhatCantBeStoppedIsWaitedForOnTheGpuWhenTheSliceEnds) {
  guest.Launch(Kernel("endless"), 0);
  Consume();
  script->on_step = [this, steps = 0]() mutable {
    if (++steps == 3) Revoke();
  };
  Turn();
  EXPECT_EQ(1, waits);
  EXPECT_EQ(ExecState::kRunning, while_waiting);
  EXPECT_EQ(ExecState::kReady, state());
}

TEST_F(Beside, AlsoWhenTheDeadlineComesBeforeTheRevoke) {
  guest.Launch(Kernel("endless"), 0);
  Consume();
  page.deadline_ns = now_ns + 10;
  script->on_step = [this] { now_ns += 100; };
  Turn();
  EXPECT_EQ(1, waits);
  EXPECT_EQ(ExecState::kRunning, while_waiting);
  EXPECT_EQ(ExecState::kReady, state());
}

TEST_F(Beside, NothingIsWaitedForWhenAllHasEnded) {
  guest.Launch(Kernel("a"), 0);
  Consume();
  Turn();
  EXPECT_EQ(0, waits);
  EXPECT_EQ(ExecState::kIdle, state());
}

}  // namespace
}  // namespace vgpud::exec
