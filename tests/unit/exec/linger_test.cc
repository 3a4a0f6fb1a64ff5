// SPDX-License-Identifier: Apache-2.0
// A turn without work looks into the ring by itself for a moment: what it takes in there, what it leaves, when it ends.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kLinger = 50'000;

struct Rig : ExecRig {
  Rig() : ExecRig(0x200000, 0, false, kLinger) {}
  // A turn in which each look at the clock takes a microsecond and `then` is done at the n-th.
  void Turn(int n, const std::function<void()>& then) {
    on_clock = [this, n, then, looks = 0]() mutable {
      now_ns += 1'000;
      if (++looks == n) then();
    };
    Grant();
    exec->TakeTurn(page.grant.load());
    on_clock = nullptr;
  }
};

TEST(Linger, AKernelThatComesWithinAMomentIsRunInTheSameTurn) {
  Rig rig;
  const uint64_t kernel = rig.Kernel("a");
  const uint64_t first = rig.guest.Launch(kernel, 0);
  rig.Consume();
  uint64_t second = 0, synced = 0;
  rig.Turn(20, [&] {
    EXPECT_FALSE(rig.Pending(first));
    EXPECT_EQ(ExecState::kRunning, rig.state());
    second = rig.guest.Launch(kernel, 0);
    synced = rig.guest.Submit({VGPU_OP_CONTEXT_SYNC});
  });
  EXPECT_FALSE(rig.Pending(second));
  EXPECT_FALSE(rig.Pending(synced));
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_EQ(0u, rig.slot_page.slots[3].preempts.load());
}

TEST(Linger, WithoutWorkTheTurnEndsAfterTheMoment) {
  Rig rig;
  const uint64_t before = rig.now_ns;
  rig.Turn(0, {});
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_GE(rig.now_ns, before + kLinger);
  EXPECT_LT(rig.now_ns, before + kLinger + 10'000);
}

// Who comes back a little too late is waited for longer the next time, until that is in vain.
TEST(Linger, ItLearnsHowSoonTheProgramComesBack) {
  Rig rig;
  const uint64_t kernel = rig.Kernel("a");
  const auto lingered = [&] {
    const uint64_t before = rig.now_ns;
    rig.Turn(0, {});
    return rig.now_ns - before;
  };
  const auto comes_after = [&](uint64_t ns) {
    rig.now_ns += ns;
    rig.guest.Launch(kernel, 0, 0, 0);
    rig.Consume();
    return lingered();
  };
  EXPECT_LT(lingered(), kLinger + 10'000);
  EXPECT_GE(comes_after(2 * kLinger), 4 * kLinger);
  EXPECT_LT(comes_after(kLinger), kLinger + 20'000) << "it did not come in all that time";
  EXPECT_LT(comes_after(4 * kLinger), kLinger + 20'000);
}

// Whoever slept is woken up first; the executor must neither forget nor wait for longer than that takes.
TEST(Linger, AProgramThatHadToBeWokenUpIsLookedForAsLongAsThatTakes) {
  Rig rig;
  const uint64_t kernel = rig.Kernel("a");
  const auto lingered_after = [&](bool sleeps) {
    rig.guest.header().cq_need_wakeup = sleeps ? 1 : 0;
    rig.guest.Launch(kernel, 0);
    rig.guest.Submit({VGPU_OP_CONTEXT_SYNC});
    rig.Consume();
    const uint64_t before = rig.now_ns;
    rig.Turn(0, {});
    rig.now_ns += 20 * kLinger;
    return rig.now_ns - 20 * kLinger - before;
  };
  EXPECT_LT(lingered_after(false), kLinger + 20'000);
  EXPECT_GE(lingered_after(true), ExecRig::LingerWoken(kLinger));
  EXPECT_LT(lingered_after(true), ExecRig::LingerWoken(kLinger) + 20'000);
  EXPECT_LT(lingered_after(false), kLinger + 20'000) << "that was once";
}

TEST(Linger, ARevokeEndsItAtOnce) {
  Rig rig;
  const uint64_t before = rig.now_ns;
  rig.Turn(5, [&] { rig.Revoke(); });
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_LT(rig.now_ns, before + 10'000);
}

// As the I/O thread does while it frees much memory: vgpud would take the executor for one that hangs.
TEST(Linger, ItLeavesTheGpuWhileAnotherThreadKeepsTheLock) {
  Rig rig;
  std::atomic<bool> lingers = false;
  rig.on_clock = [&] {
    rig.now_ns += 1;
    lingers = true;
  };
  rig.Grant();
  std::thread gpu{[&] { rig.exec->TakeTurn(rig.page.grant.load()); }};
  while (!lingers) std::this_thread::yield();
  {
    const Executor::Engine locked = rig.exec->engine();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (rig.state() == ExecState::kRunning && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(ExecState::kReady, rig.state());
  }
  gpu.join();
  EXPECT_EQ(ExecState::kIdle, rig.state());
}

TEST(Linger, AFloodOfEntriesDoesNotMakeItLonger) {
  Rig rig;
  const uint64_t before = rig.now_ns;
  rig.on_clock = [&] {
    rig.now_ns += 1'000;
    rig.guest.Submit({VGPU_OP_NOP, {}, 0, {}, 0});
  };
  rig.Grant();
  rig.exec->TakeTurn(rig.page.grant.load());
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_LT(rig.now_ns, before + kLinger + 10'000);
}

// While it looks the guest need not ring; afterwards it has to, and what came last is not overlooked.
TEST(Linger, TheGuestRingsOnlyWhenNobodyLooks) {
  Rig rig;
  rig.Consume();
  EXPECT_TRUE(rig.exec->PrepareSleep());
  EXPECT_EQ(1u, rig.guest.header().sq_need_wakeup);
  uint64_t nop = 0;
  rig.Turn(5, [&] {
    EXPECT_EQ(0u, rig.guest.header().sq_need_wakeup);
    nop = rig.guest.Submit({});
  });
  EXPECT_EQ(1u, rig.guest.header().sq_need_wakeup);
  EXPECT_FALSE(rig.Pending(nop));
  EXPECT_EQ(0, rig.progress);
  rig.exec->EndSleep();
  EXPECT_EQ(0u, rig.guest.header().sq_need_wakeup);
}

TEST(Linger, WhoSleepsMeanwhileIsNotRungFor) {
  Rig rig;
  std::atomic<bool> asleep = false;
  std::thread io;
  rig.on_clock = [&] {  // under the executor's lock: time stands still until the I/O thread has had it
    if (!io.joinable())
      io = std::thread([&] {
        EXPECT_TRUE(rig.exec->PrepareSleep());
        EXPECT_EQ(0u, rig.guest.header().sq_need_wakeup);
        EXPECT_FALSE(rig.exec->RingChanged());
        asleep = true;
      });
    if (asleep) rig.now_ns += 1'000;
  };
  rig.Grant();
  rig.exec->TakeTurn(rig.page.grant.load());
  io.join();
  EXPECT_EQ(1u, rig.guest.header().sq_need_wakeup);
}

TEST(Linger, WhatTakesLongerIsLeftForTheIoThread) {
  Rig rig;
  rig.Consume();
  EXPECT_TRUE(rig.exec->PrepareSleep());
  uint64_t alloc = 0, behind = 0;
  rig.Turn(5, [&] {
    alloc = rig.guest.Submit({VGPU_OP_MEM_ALLOC, {4096}});
    behind = rig.guest.Submit({});
  });
  EXPECT_TRUE(rig.Pending(alloc));
  EXPECT_TRUE(rig.Pending(behind));
  EXPECT_EQ(1, rig.progress);
  rig.exec->EndSleep();
  EXPECT_TRUE(rig.exec->RingChanged());
  rig.Consume();
  EXPECT_FALSE(rig.Pending(alloc));
  EXPECT_FALSE(rig.Pending(behind));
}

// Only the I/O thread reads the link: it has to be sent there before the entry is refused.
TEST(Linger, ABufferThatIsNotKnownYetIsLookedForOnTheLink) {
  Rig rig;
  const uint64_t address = rig.Alloc(4096);
  uint64_t copy = 0;
  rig.Turn(5, [&] { copy = rig.guest.Submit({VGPU_OP_BUF_IN, {address, 7, 0, 64}}); });
  EXPECT_TRUE(rig.Pending(copy));
  EXPECT_EQ(ChannelEngine::Ring::kLink, rig.exec->Consume(1));
  EXPECT_TRUE(rig.Pending(copy));
}

TEST(Linger, ABrokenRingIsLeftForTheIoThread) {
  Rig rig;
  rig.Turn(5, [&] { rig.guest.header().sq_tail += 100'000; });
  EXPECT_EQ(0u, rig.guest.sticky());
  rig.Consume();
  EXPECT_NE(0u, rig.guest.sticky());
}

// The guest's copy of what it may use again is behind only while somebody looks into the ring: never during a kernel.
TEST(Linger, TheGuestKnowsItsRoomBeforeAKernelRuns) {
  Rig rig;
  const uint64_t kernel = rig.Kernel("a");
  uint32_t head = 0;
  uint64_t released = 0;
  rig.script->on_step = [&] {
    head = rig.guest.header().sq_head;
    released = rig.guest.released();
  };
  uint32_t produced = 0;
  uint64_t end = 0;
  rig.Turn(5, [&] {
    for (int i = 0; i < 3; ++i) rig.guest.Launch(kernel, 0, 0, 0);
    produced = rig.guest.header().sq_tail;
    end = rig.guest.Take(1).position;
  });
  EXPECT_EQ(produced, head);
  EXPECT_EQ(end, released);
}

// Nobody may be left to tell a guest that waits for room and can post nothing.
TEST(Linger, TheGuestKnowsItsRoomWhenTheLastOperationEndsWithTheSlice) {
  Rig rig;
  const uint64_t address = rig.Alloc(8192);
  const auto payload = rig.guest.Take(8192);
  rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, payload, 0});
  rig.Consume();
  rig.script->on_touch = [&] { rig.Revoke(); };
  rig.Turn(0, {});
  EXPECT_EQ(ExecState::kIdle, rig.state());
  EXPECT_EQ(payload.position + payload.length, rig.guest.released());
}

// Which entries a moment is enough for: by operation and by payload.
TEST(Linger, LongPayloadsAreLeft) {
  for (const uint32_t bytes : {4096u, 4097u}) {
    Rig rig;
    const uint64_t address = rig.Alloc(8192);
    uint64_t copy = 0;
    rig.Turn(5, [&] { copy = rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, rig.guest.Take(bytes)}); });
    EXPECT_EQ(bytes > 4096, rig.Pending(copy)) << bytes;
  }
}

}  // namespace
}  // namespace vgpud::exec
