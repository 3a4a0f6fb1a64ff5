// SPDX-License-Identifier: Apache-2.0
// Grants: nothing touches the GPU without one, a revoke ends a turn at once, an idle executor gives its turn away.
#include <thread>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

TEST(Turn, NothingTouchesTheGpuOffTurn) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(1 << 20);
  const uint64_t a = rig.Kernel("long");
  bool outside = false;
  rig.script->on_touch = [&] { outside |= rig.state() != ExecState::kRunning || !rig.granted(); };
  const std::string bytes(300000, 'x');
  rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, rig.guest.Take(bytes)});
  rig.guest.Submit({VGPU_OP_FILL, {address, 1, 4, 1000}});
  rig.guest.Launch(a, 0, address);
  const auto out = rig.guest.Take(300000);
  const uint64_t copy_out = rig.guest.Submit({VGPU_OP_COPY_OUT, {address}, 0, out});
  rig.Settle();
  EXPECT_TRUE(rig.Pending(copy_out));
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(copy_out));
  EXPECT_FALSE(outside);
  EXPECT_EQ(std::byte{'x'}, out.at[299999]);
}

TEST(Turn, RevokedKernelResumesWhereItWas) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(8);
  const uint64_t kernel = rig.Kernel("long");
  uint64_t steps = 0;
  rig.script->on_step = [&] {
    if (++steps % 7 == 0) rig.Revoke();
  };
  const uint64_t before = rig.slot_page.slots[3].kernels.load();
  const uint64_t launch = rig.guest.Launch(kernel, 0, address);
  unsigned turns = 0;
  for (; rig.Pending(launch); ++turns) {
    rig.Grant();
    rig.Settle();
    ASSERT_NE(ExecState::kRunning, rig.state());
  }
  EXPECT_EQ(20000u, steps);
  EXPECT_EQ(20000u / 7 + 1, turns);
  EXPECT_EQ(20000u / 7, rig.slot_page.slots[3].preempts.load());
  EXPECT_EQ(20000u, rig.slot_page.slots[3].warp_instructions.load());
  EXPECT_EQ(before + 1, rig.slot_page.slots[3].kernels.load());
  EXPECT_EQ(ExecState::kIdle, rig.state());
}

TEST(Turn, DeadlineEndsTheTurnWithoutARevoke) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("endless");
  rig.script->on_step = [&] { rig.now_ns += 10; };
  rig.page.deadline_ns = rig.now_ns + 1'000'000;
  rig.guest.Launch(kernel, 0);
  rig.Grant();
  rig.Consume();
  rig.exec->TakeTurn(rig.page.grant.load());
  EXPECT_TRUE(rig.granted());
  EXPECT_EQ(ExecState::kReady, rig.state());
  EXPECT_EQ(1u, rig.slot_page.slots[3].preempts.load());
}

// A Turn alone, with clocks of its own.
struct TurnRig {
  GrantPage page;
  ExecSlot slot;
  ExecClock clock;
  uint64_t now_ns = 1000;
  uint64_t cpu_ns = 500;
  uint32_t epoch = 0;
  Turn turn{page, slot, clock, [] {}, [this] { return now_ns; }, [this] { return cpu_ns; }};

  void Grant() {
    page.granted_ns = now_ns;
    page.grant = (epoch += 2) | GrantPage::kRun;
  }
  // Onto the GPU, so long there, computing for so long, and off it; by how much the wait for a core grew.
  uint64_t OnGpu(uint64_t wall_ns, uint64_t computed_ns, ExecState to) {
    const uint64_t before = slot.core_wait_ns;
    EXPECT_TRUE(turn.Enter(page.grant));
    now_ns += wall_ns;
    cpu_ns += computed_ns;
    turn.Leave(to);
    return slot.core_wait_ns - before;
  }
};

TEST(Turn, WhatItWaitedForACoreIsCounted) {
  TurnRig rig;
  rig.turn.Announce();
  rig.now_ns += 5'000'000;  // others have their turns
  rig.Grant();
  rig.now_ns += 70'000;  // until its thread is awake and has a core
  EXPECT_EQ(70'000u + 6'000u, rig.OnGpu(10'000, 4'000, ExecState::kReady));
  rig.now_ns += 5'000'000;
  rig.Grant();
  EXPECT_EQ(0u, rig.OnGpu(10'000, 10'001, ExecState::kReady)) << "it computed throughout, and clocks differ";
}

TEST(Turn, TheClockSaysForHowLongItWasOnTheGpu) {
  TurnRig rig;
  rig.turn.Announce();
  rig.Grant();
  EXPECT_EQ(0u, rig.clock.since_ns);
  rig.OnGpu(10'000, 4'000, ExecState::kReady);
  EXPECT_EQ(10'000u, rig.clock.on_gpu_ns);
  EXPECT_EQ(0u, rig.clock.since_ns);
  rig.now_ns += 5'000'000;
  rig.Grant();
  EXPECT_TRUE(rig.turn.Enter(rig.page.grant));
  EXPECT_EQ(rig.now_ns, rig.clock.since_ns);
  rig.now_ns += 7'000;
  EXPECT_EQ(10'000u, rig.clock.on_gpu_ns) << "added up when it leaves";
  rig.turn.Leave(ExecState::kIdle);
  EXPECT_EQ(17'000u, rig.clock.on_gpu_ns);
}

TEST(Turn, TheClockSaysHowManyKernelsFailedAndWithWhat) {
  TurnRig rig;
  rig.turn.CountFault(700);
  EXPECT_EQ(1u << 16 | 700, rig.clock.faults.load());
  rig.turn.CountFault(719);
  EXPECT_EQ(2u << 16 | 719, rig.clock.faults.load());
  rig.clock.faults = 0xffffu << 16 | 719;
  rig.turn.CountFault(0x102bd);
  EXPECT_EQ(0x02bdu, rig.clock.faults.load()) << "around and around; a larger error does not count as kernels";
}

TEST(Turn, TheClockSaysWhetherTheGuestHasAContext) {
  ExecRig rig;
  const auto& said = rig.slot_page.clocks[3].has_context;
  EXPECT_EQ(0u, said);
  rig.Done(rig.guest.Submit({VGPU_OP_NOP}));
  rig.Done(rig.guest.Submit({VGPU_OP_DEVICE_INFO, {}, 0, rig.guest.Take(sizeof(vgpu_device_info))}));
  rig.Done(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_BUFFER_PART, 1}}));
  EXPECT_EQ(0u, said) << "it has asked what the GPU is";
  rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO}));
  EXPECT_EQ(1u, said);
  rig.Done(rig.guest.Submit({VGPU_OP_CONTEXT_RESET}));
  EXPECT_EQ(0u, said);
}

TEST(Turn, UnderAGrantThatStandsItWaitsForACoreFromItsWorkOn) {
  TurnRig rig;
  rig.Grant();
  rig.now_ns += 1'000'000'000;
  rig.turn.Announce();
  rig.now_ns += 30'000;
  EXPECT_EQ(30'000u, rig.OnGpu(10'000, 10'000, ExecState::kIdle));
}

TEST(Turn, WhoLeftByItselfDidNotWaitForACore) {
  TurnRig rig;
  rig.turn.Announce();
  rig.Grant();
  EXPECT_EQ(0u, rig.OnGpu(10'000, 10'000, ExecState::kReady));
  rig.now_ns += 40'000;  // the I/O thread has the context
  EXPECT_EQ(0u, rig.OnGpu(10'000, 10'000, ExecState::kIdle));
}

TEST(Turn, TheSlotSaysSinceWhenThereHasBeenWorkOrNone) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("long");
  rig.Grant();
  rig.Settle();
  const std::atomic<uint64_t>& since = rig.slot_page.slots[3].since_ns;
  const uint64_t launched = rig.now_ns += 1000;
  // The end of its turn does not change that there is work, nor the next turn.
  uint64_t steps = 0;
  rig.script->on_step = [&] {
    rig.now_ns += 10;
    if (++steps == 7) rig.Revoke();
  };
  rig.guest.Launch(kernel, 0);
  rig.Settle();
  ASSERT_EQ(ExecState::kReady, rig.state());
  EXPECT_EQ(launched, since.load());
  rig.Grant();
  rig.Settle();
  ASSERT_EQ(ExecState::kIdle, rig.state());
  EXPECT_EQ(rig.now_ns, since.load());
}

TEST(Turn, WhatRunsMayFinishButNothingNewStarts) {
  ExecRig rig;
  const uint64_t running = rig.Kernel("long"), next = rig.Kernel("a");
  uint64_t steps = 0;
  rig.script->on_step = [&] {
    if (++steps == 50) rig.page.finish = rig.page.grant.load();
  };
  const uint64_t first = rig.guest.Launch(running, 0), second = rig.guest.Launch(next, 0);
  rig.Grant();
  rig.Consume();
  rig.exec->TakeTurn(rig.page.grant.load());
  EXPECT_EQ(20000u, steps);
  EXPECT_FALSE(rig.Pending(first));
  EXPECT_TRUE(rig.Pending(second));
  EXPECT_TRUE(rig.granted());
  EXPECT_EQ(ExecState::kReady, rig.state());
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(second));
}

TEST(Turn, IdleGivesTheTurnAwayAndSignalsOnce) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("a");
  rig.page.notify = 1;
  rig.Grant();
  rig.guest.Launch(kernel, 0);
  rig.Settle();
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_EQ(1, rig.rings);
}

// The thread that takes the ring in says so: the GPU thread may wait for a processor until somebody else's turn is
// over.
TEST(Turn, WorkIsSeenBeforeTheGpuThreadHasAProcessor) {
  ExecRig rig;
  const uint64_t a = rig.Kernel("a");
  rig.page.notify.store(2);
  std::thread gpu([&] { rig.exec->RunGpuThread(); });
  while (!rig.exec->GpuThreadRests()) std::this_thread::yield();
  const int rings = rig.rings;
  rig.guest.Launch(a, 0);
  rig.Consume();
  EXPECT_EQ(ExecState::kReady, rig.state());
  EXPECT_EQ(rings + 1, rig.rings);
  EXPECT_EQ(std::this_thread::get_id(), rig.rung_by);
  rig.Grant();
  FutexWake(&rig.page.grant, 1);
  while (!rig.exec->GpuThreadRests()) std::this_thread::yield();
  EXPECT_EQ(ExecState::kIdle, rig.state());
  rig.exec->Stop();
  gpu.join();
}

TEST(Turn, EnterAfterARevokeTouchesNothing) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("a");
  rig.guest.Launch(kernel, 0);
  rig.Consume();
  rig.Grant();
  const uint32_t stale = rig.page.grant.load();
  rig.Revoke();
  rig.page.notify = 1;
  rig.script->on_touch = [] { FAIL() << "touched the GPU without a grant"; };
  rig.exec->TakeTurn(stale);
  EXPECT_EQ(ExecState::kReady, rig.state());
  EXPECT_EQ(1, rig.rings);
}

TEST(Turn, CopiesStopBetweenChunks) {
  ExecRig rig;
  const uint64_t address = rig.Alloc(1 << 20);
  const auto payload = rig.guest.Take(640 * 1024);
  std::memset(payload.at, 7, payload.length);
  int touches = 0;
  rig.script->on_touch = [&] {
    if (++touches % 3 == 0) rig.Revoke();
  };
  const uint64_t copy = rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, payload});
  int turns = 0;
  for (; rig.Pending(copy) && turns < 100; ++turns) {
    rig.Grant();
    rig.Settle();
  }
  EXPECT_EQ(0u, rig.Status(copy));
  EXPECT_GE(turns, 3);
}

TEST(Turn, StreamsTakeTurnsOnTheGpu) {
  ExecRig rig;
  const uint64_t endless = rig.Kernel("endless"), a = rig.Kernel("a");
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {16, 1, 0}});
  rig.guest.Submit({VGPU_OP_STREAM_CREATE, {17, 1, 0}});
  uint64_t steps = 0;
  rig.script->on_step = [&] {
    if (++steps == 100000) rig.Revoke();
  };
  rig.guest.Launch(endless, 16);
  const uint64_t neighbour = rig.guest.Launch(a, 17);
  rig.Grant();
  rig.Settle();
  EXPECT_FALSE(rig.Pending(neighbour));
}

// Giving back much memory takes the host long: others do not wait for it.
TEST(Turn, AKernelThatHeldMuchMemoryGivesItBackOffTheGpu) {
  struct Case {
    uint64_t held;
    const char* image;
    ExecState state;
  };
  for (const Case& c : {Case{1 << 20, "kernel x 10\n", ExecState::kRunning},
                        Case{uint64_t{1} << 30, "kernel x 10\n", ExecState::kReady},
                        Case{1 << 20, "kernel x 10 fault\n", ExecState::kReady}}) {
    ExecRig rig;
    ASSERT_EQ(0u, rig.Load(9, c.image).status);
    rig.guest.Launch(rig.Function(9, "x"), 0);
    rig.Consume();
    rig.script->held_bytes = c.held;
    int over = 0;
    rig.script->on_grid_over = [&] {
      ++over;
      EXPECT_EQ(c.state, rig.state()) << c.held << " " << c.image;
    };
    rig.Grant();
    rig.Settle();
    EXPECT_EQ(1, over);
  }
}

}  // namespace
}  // namespace vgpud::exec
