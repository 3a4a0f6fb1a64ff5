// SPDX-License-Identifier: Apache-2.0
// Real threads: guest, I/O thread, GPU thread and a scheduler that gives and takes as fast as it can. A lost wake-up
// would leave the guest waiting; a broken switch would let the GPU be touched between two grants.
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr int kLostWakeupMs = 30'000;

bool WaitReadable(std::initializer_list<int> fds, int timeout_ms) {
  pollfd entries[3];
  nfds_t n = 0;
  for (const int fd : fds) entries[n++] = {fd, POLLIN, 0};
  const bool ready = ::poll(entries, n, timeout_ms) > 0;
  for (const int fd : fds) DrainEventFd(fd);
  return ready;
}

struct StressRig {
  StressRig() {
    script->keep_log = false;
    script->on_touch = [this] { touched_off_turn += world_closed.load() ? 1 : 0; };
    exec = std::make_unique<Executor>(
        *ChannelMemory::Open(guest.area()), 64 << 20,
        Turn(
            page, slot_page.slots[0], slot_page.clocks[0], [this] { Ring(slot_page); }, MonotonicNs),
        ChannelCallbacks{.interrupt = [this] { SignalEventFd(call.get()); },
                         .progress = [this] { SignalEventFd(progress.get()); },
                         .make_gpu = [this] { return std::make_unique<FakeGpu>(script); },
                         .now_ns = MonotonicNs});
    gpu_thread = std::thread([this] { exec->RunGpuThread(); });
    loader = std::thread([this] { exec->RunLoader(); });
    io_thread = std::thread([this] { Io(); });
    scheduler = std::thread([this] { Schedule(); });
  }
  ~StressRig() {
    exec->Stop();
    gpu_thread.join();
    loader.join();
    stop = true;
    SignalEventFd(kick.get());
    scheduler.join();
    io_thread.join();
  }

  void Io() {
    while (!stop) {
      const ChannelEngine::Ring ring = exec->Consume(64);
      bool asked = false;
      while (const auto delta = exec->engine()->vram().TakeRequest()) {
        exec->engine()->vram().OnReply(*delta, true, 0);
        asked = true;
      }
      if (asked || ring == ChannelEngine::Ring::kMore || ring == ChannelEngine::Ring::kPart) continue;
      if (ring == ChannelEngine::Ring::kEmpty && !exec->PrepareSleep()) continue;
      const bool completions_wait = exec->engine()->FlushCompletions();
      WaitReadable({kick.get(), progress.get()}, completions_wait ? 1 : -1);
      if (ring == ChannelEngine::Ring::kEmpty) exec->EndSleep();
    }
  }

  void Schedule() {
    page.notify = 2;
    for (uint32_t epoch = 2; !stop; epoch += 2) {
      world_closed = false;
      page.grant.store(epoch | GrantPage::kRun, std::memory_order_seq_cst);
      FutexWakeAll(&page.grant);
      for (unsigned i = 0; i < epoch % 64; ++i) std::this_thread::yield();
      page.grant.store(epoch, std::memory_order_seq_cst);
      while (slot_page.slots[0].state.load(std::memory_order_seq_cst) == static_cast<uint32_t>(ExecState::kRunning))
        std::this_thread::yield();
      world_closed = true;
      ++grants;
    }
    world_closed = false;
    page.grant.store(GrantPage::kRun, std::memory_order_seq_cst);
    FutexWakeAll(&page.grant);
  }

  void Kick() {
    if (std::atomic_ref<uint32_t>(guest.header().sq_need_wakeup).load() != 0) SignalEventFd(kick.get());
  }
  // False when the completion never comes.
  [[nodiscard]] bool Await(uint64_t seqno) {
    Kick();
    std::atomic_ref<uint32_t> need(guest.header().cq_need_wakeup);
    while (guest.Completion(seqno) == nullptr) {
      need.store(1);
      if (guest.Completion(seqno) != nullptr) break;
      if (!WaitReadable({call.get()}, kLostWakeupMs)) return false;
    }
    return true;
  }

  TestGuest guest;
  std::shared_ptr<FakeGpu::Script> script = std::make_shared<FakeGpu::Script>();
  GrantPage page;
  SlotPage slot_page;
  UniqueFd kick = *MakeEventFd();
  UniqueFd call = *MakeEventFd();
  UniqueFd progress = *MakeEventFd();
  std::atomic<bool> stop{false};
  std::atomic<bool> world_closed{false};
  std::atomic<int> touched_off_turn{0};
  std::atomic<unsigned> grants{0};
  std::unique_ptr<Executor> exec;
  std::thread gpu_thread;
  std::thread loader;
  std::thread io_thread;
  std::thread scheduler;
};

TEST(Stress, NothingIsLostBetweenFourThreads) {
  StressRig rig;
  TestGuest& guest = rig.guest;
  static constexpr std::string_view kImage = "kernel k 3000\n";
  guest.Submit({VGPU_OP_MODULE_BEGIN, {1, kImage.size()}});
  guest.Submit({VGPU_OP_MODULE_DATA, {1, 0}, 0, guest.Take(kImage)});
  guest.Submit({VGPU_OP_MODULE_LOAD, {1}});
  const auto name = guest.Take(256);
  name.at[0] = std::byte{'k'};
  const uint64_t function = guest.Submit({VGPU_OP_MODULE_FUNCTION, {1, 1}, 0, name});
  const uint64_t alloc = guest.Submit({VGPU_OP_MEM_ALLOC, {4096}});
  ASSERT_TRUE(rig.Await(alloc));
  const uint64_t address = guest.Completion(alloc)->value[0];
  const uint64_t kernel = guest.Completion(function)->value[0];
  for (const uint32_t id : {16u, 17u}) guest.Submit({VGPU_OP_STREAM_CREATE, {id, 1, 0}, 0, {}, 0});
  constexpr uint64_t kRounds = 300;
  for (uint64_t round = 0; round < kRounds; ++round) {
    guest.Launch(kernel, 16, address, 0);
    guest.Launch(kernel, 17, address + 8, 0);
    guest.Submit({VGPU_OP_EVENT_RECORD, {1, round + 1}, 17, {}, 0});
    guest.Submit({VGPU_OP_EVENT_WAIT, {1, round + 1}, 16, {}, 0});
    guest.Submit({VGPU_OP_FILL, {address + 1024, round, 4, 16}, 0, {}, 0});
    const uint64_t other = guest.Submit({VGPU_OP_MEM_ALLOC, {100}});
    ASSERT_TRUE(rig.Await(round % 3 == 0 ? guest.Submit({VGPU_OP_CONTEXT_SYNC}) : other)) << "round " << round;
  }
  ASSERT_TRUE(rig.Await(guest.Submit({VGPU_OP_CONTEXT_SYNC})));
  const auto out = guest.Take(16);
  const uint64_t copy = guest.Submit({VGPU_OP_COPY_OUT, {address}, 0, out});
  ASSERT_TRUE(rig.Await(copy));
  uint64_t counts[2];
  std::memcpy(counts, out.at, sizeof counts);
  EXPECT_EQ(kRounds, counts[0]);
  EXPECT_EQ(kRounds, counts[1]);
  EXPECT_EQ(0, rig.touched_off_turn.load());
  EXPECT_EQ(2 * kRounds, rig.slot_page.slots[0].kernels.load());
  EXPECT_EQ(2 * kRounds * 3000, rig.slot_page.slots[0].warp_instructions.load());
  EXPECT_GT(rig.grants.load(), 0u);
}

TEST(Stress, ModulesAreLoadedBesideKernelsAndNeverWithOneOnTheGpu) {
  StressRig rig;
  TestGuest& guest = rig.guest;
  std::atomic<bool> loading{false};
  std::atomic<int> steps_meanwhile{0}, loads{0};
  rig.script->on_load = [&] {
    loading = true;
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    loading = false;
    ++loads;
  };
  rig.script->on_step = [&] { steps_meanwhile += loading.load() ? 1 : 0; };
  static constexpr std::string_view kImage = "kernel k 3000\n";
  const auto load = [&](uint64_t id) {
    guest.KeepRoom([&] { EXPECT_TRUE(rig.Await(guest.Submit({VGPU_OP_CONTEXT_SYNC}))); });
    guest.Submit({VGPU_OP_MODULE_BEGIN, {id, kImage.size()}, 0, {}, 0});
    guest.Submit({VGPU_OP_MODULE_DATA, {id, 0}, 0, guest.Take(kImage), 0});
    return guest.Submit({VGPU_OP_MODULE_LOAD, {id}});
  };
  load(1);
  const auto name = guest.Take(256);
  name.at[0] = std::byte{'k'};
  const uint64_t function = guest.Submit({VGPU_OP_MODULE_FUNCTION, {1, 1}, 0, name});
  ASSERT_TRUE(rig.Await(function));
  const uint64_t kernel = guest.Completion(function)->value[0];
  constexpr uint64_t kRounds = 200;
  for (uint64_t round = 0; round < kRounds; ++round) {
    guest.Launch(kernel, 0, 0, 0);
    const uint64_t loaded = load(2 + round);
    ASSERT_TRUE(rig.Await(loaded)) << "round " << round;
    ASSERT_EQ(0u, guest.Completion(loaded)->status);
    guest.Launch(kernel, 0, 0, 0);
    if (round % 4 == 0) guest.Submit({VGPU_OP_MODULE_UNLOAD, {2 + round}, 0, {}, 0});
  }
  ASSERT_TRUE(rig.Await(guest.Submit({VGPU_OP_CONTEXT_SYNC})));
  // A kernel is counted after its completion, before the ring goes on.
  ASSERT_TRUE(rig.Await(guest.Submit({VGPU_OP_NOP})));
  EXPECT_EQ(0, steps_meanwhile.load());
  EXPECT_EQ(static_cast<int>(kRounds) + 1, loads.load());
  EXPECT_EQ(0, rig.touched_off_turn.load());
  EXPECT_EQ(2 * kRounds, rig.slot_page.slots[0].kernels.load());
}

}  // namespace
}  // namespace vgpud::exec
