#include "vgpud/slice_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace vgpud {
namespace {

// Where the host is itself a virtual machine, a core that is taken from it counts as computing time of whoever had it.
// Until a thread has had so much of it, it may not have run at all.
constexpr uint64_t kStolenNs = 25'000'000;

// Until then a drain costs no system call.
constexpr uint64_t kLookForDeadAfterNs = 200'000;

bool HasEnded(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

bool WaitsForExecutors(WsState state) {
  return state == WsState::kFinish || state == WsState::kDrain || state == WsState::kFlr;
}

ExecState StateOf(const SlicePage& page, uint32_t slot) {
  return static_cast<ExecState>(page.slots[slot].state.load(std::memory_order_seq_cst));
}

template <class F>
void ForEachBit(uint64_t bits, F f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<uint32_t>(std::countr_zero(bits)));
}

}  // namespace

void SliceWorld::Counter::Read(const std::atomic<uint64_t>& word) {
  const uint64_t now = word.load(std::memory_order_relaxed);
  total += now >= last ? now - last : now;  // a new executor starts from zero
  last = now;
}

void SliceWorld::Counter::Read(const std::atomic<uint32_t>& word) {
  const uint64_t now = word.load(std::memory_order_relaxed);
  total += now >= last ? now - last : now;
  last = now;
}

SliceWorld::World* SliceWorld::Find(VfId vf) const {
  return Raw(vf) < worlds_.size() ? worlds_[Raw(vf)].get() : nullptr;
}

void SliceWorld::Add(VfId vf, const std::string& name, Mapping page) {
  CHECK(page.size() >= sizeof(SlicePage));
  if (Raw(vf) >= worlds_.size()) worlds_.resize(Raw(vf) + 1);
  CHECK(worlds_[Raw(vf)] == nullptr);
  auto world = std::make_unique<World>();
  world->view.vf = vf;
  world->name = name;
  world->page = std::move(page);
  world->slice_page().notify.store(1);
  world->slice_page().scheduler_cpu.store(scheduler_cpu_);
  worlds_[Raw(vf)] = std::move(world);
}

void SliceWorld::Join(const VfView& view) {
  if (World* world = Find(view.vf)) world->joined = true;
  Change(view);
}

void SliceWorld::Change(const VfView& view) {
  if (World* world = Find(view.vf)) world->view = view;
}

void SliceWorld::SetParked(VfId vf, bool parked) {
  if (World* world = Find(vf)) world->parked = parked;
}

void SliceWorld::Remove(VfId vf) {
  if (Find(vf) != nullptr) worlds_[Raw(vf)].reset();
}

void SliceWorld::AddExecutor(VfId vf, uint32_t slot, Executor executor) {
  CHECK(slot < kMaxExecutors);
  World* world = Find(vf);
  if (world == nullptr) return;
  executor.clock = ExecutorClock(executor.pid);
  world->executors[slot] = std::move(executor);
  world->live |= uint64_t{1} << slot;
}

void SliceWorld::RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation) {
  CHECK(slot < kMaxExecutors);
  World* world = Find(vf);
  if (world == nullptr || world->executors[slot].generation != generation) return;
  ReadCounters(*world);
  world->live &= ~(uint64_t{1} << slot);
  world->executors[slot] = Executor{};
}

void SliceWorld::ReadCounters(World& world) {
  ForEachBit(world.live, [&](uint32_t slot) {
    const ExecSlot& from = world.slice_page().slots[slot];
    SlotCounters& to = world.counters[slot];
    to.kernels.Read(from.kernels);
    to.warp_instructions.Read(from.warp_instructions);
    to.preempts.Read(from.preempts);
  });
}

SliceWorld::Work SliceWorld::WorkOf(VfId vf) {
  Work work;
  World* world = Find(vf);
  if (world == nullptr) return work;
  ReadCounters(*world);
  for (const SlotCounters& counters : world->counters) {
    work.kernels += counters.kernels.total;
    work.warp_instructions += counters.warp_instructions.total;
    work.executor_preempts += counters.preempts.total;
  }
  return work;
}

void SliceWorld::WatchForWork(bool watch) {
  for (const auto& world : worlds_)
    if (world != nullptr) world->slice_page().notify.store(watch ? 2 : 1, std::memory_order_seq_cst);
}

bool SliceWorld::HasWork(const World& world) {
  bool found = false;
  ForEachBit(world.live, [&](uint32_t slot) {
    const ExecState state = StateOf(world.slice_page(), slot);
    found |= state == ExecState::kReady || state == ExecState::kRunning;
  });
  return found;
}

bool SliceWorld::HasWork(VfId vf) {
  const World* world = Find(vf);
  return world != nullptr && HasWork(*world);
}

bool SliceWorld::WorkChanged() const {
  for (const auto& world : worlds_)
    if (world != nullptr && world->joined && world->shown_runnable != (!IsPaused(*world) && HasWork(*world)))
      return true;
  return false;
}

std::span<const VfView> SliceWorld::TurnBoundary(TimePoint now) {
  events_.at_boundary(now);
  views_.clear();
  for (const auto& world : worlds_) {
    if (world == nullptr || !world->joined) continue;
    world->shown_runnable = !IsPaused(*world) && HasWork(*world);
    VfView view = world->view;
    view.paused = IsPaused(*world);
    view.runnable = world->shown_runnable;
    views_.push_back(view);
  }
  return views_;
}

void SliceWorld::Run(VfId vf, TimePoint deadline) {
  World* world = Find(vf);
  if (world == nullptr) return;
  SlicePage& page = world->slice_page();
  ++turns_;
  deadline_ns_ = ToNs(deadline);
  page.deadline_ns.store(deadline_ns_, std::memory_order_relaxed);
  world->epoch += 2;
  page.finish.store(0, std::memory_order_relaxed);  // grants count around
  page.grant.store(world->epoch | SlicePage::kRun, std::memory_order_seq_cst);
  FutexWakeAll(&page.grant);
}

// The run bit stays: who is on the GPU goes on, nobody else enters.
void SliceWorld::Finish(VfId vf) {
  deadline_ns_ = MonotonicNs();
  finishing_ = false;
  World* world = Find(vf);
  if (world == nullptr) return;
  world->slice_page().finish.store(world->epoch | SlicePage::kRun, std::memory_order_seq_cst);
  ForEachBit(world->live, [&](uint32_t slot) { finishing_ |= IsRunning(*world, slot); });
}

void SliceWorld::Drain(VfId vf) {
  drain_started_ns_ = MonotonicNs();
  draining_ = false;
  World* world = Find(vf);
  if (world == nullptr) return;
  world->slice_page().grant.store(world->epoch, std::memory_order_seq_cst);
  if (drain_started_ns_ >= deadline_ns_) slice_ends_.Add(drain_started_ns_ - deadline_ns_);
  ForEachBit(world->live, [&](uint32_t slot) {
    Executor& executor = world->executors[slot];
    executor.when_told.reset();
    executor.helpers_marked = false;
    if (!IsRunning(*world, slot)) return;
    draining_ = true;
    executor.when_told = executor.clock.Read();
  });
}

// Each thread of an executor sees the revoke after one warp instruction, if it computes at all.
bool SliceWorld::IsHung(World& world, uint32_t slot) {
  Executor& executor = world.executors[slot];
  if (!IsRunning(world, slot) || executor.clock.IsEnding()) return false;
  const ExecutorClock::Times now = executor.clock.Read();
  if (!executor.when_told) executor.when_told = now;
  // Helpers are measured from the first look on: until then a drain shall cost little.
  if (!std::exchange(executor.helpers_marked, true)) executor.clock.MarkHelpers();
  const uint64_t proof = std::max(static_cast<uint64_t>(preempt_timeout_.count()) / 2, kStolenNs);
  return now.cpu_ns >= executor.when_told->cpu_ns + proof || executor.clock.HelperCpuNsSinceMark() >= proof;
}

bool SliceWorld::Excused(VfId vf) {
  World* world = Find(vf);
  if (world == nullptr) return false;
  bool excused = true;
  ForEachBit(world->live, [&](uint32_t slot) { excused &= !IsHung(*world, slot); });
  return excused;
}

void SliceWorld::Save(VfId vf) {
  if (World* world = Find(vf)) ReadCounters(*world);
}

bool SliceWorld::IsRunning(const World& world, uint32_t slot) {
  return StateOf(world.slice_page(), slot) == ExecState::kRunning;
}

// Only the hung ones are killed; where none is, the excuses have lasted too long and all that are on the GPU are.
void SliceWorld::Flr(VfId vf) {
  World* world = Find(vf);
  if (world == nullptr) return;
  world->slice_page().grant.store(world->epoch, std::memory_order_seq_cst);
  const bool nobody_hangs = Excused(vf);
  ForEachBit(world->live, [&](uint32_t slot) {
    if (nobody_hangs ? IsRunning(*world, slot) : IsHung(*world, slot)) Kill(*world, slot, nobody_hangs);
  });
}

void SliceWorld::Kill(World& world, uint32_t slot, bool out_of_time) {
  Executor& executor = world.executors[slot];
  if (executor.killed) return;
  const ExecutorClock::Times now = executor.clock.Read(), then = executor.when_told.value_or(now);
  const auto since = [](uint64_t before, uint64_t after) {
    return Ns{static_cast<int64_t>(after - std::min(before, after))};
  };
  ::syscall(SYS_pidfd_send_signal, executor.pidfd.get(), SIGKILL, nullptr, 0);
  executor.killed = true;
  events_.on_killed(world.view.vf, world.name,
                    {executor.pid, since(drain_started_ns_, MonotonicNs()), since(then.cpu_ns, now.cpu_ns),
                     since(then.waiting_ns, now.waiting_ns), out_of_time});
}

void SliceWorld::Park(VfId vf) {
  SetParked(vf, true);
  if (World* world = Find(vf)) ForEachBit(world->live, [&](uint32_t slot) { Kill(*world, slot, false); });
  events_.on_parked(vf);
}

void SliceWorld::EndDrain(World& world) {
  if (!std::exchange(draining_, false)) return;
  const uint64_t now = MonotonicNs();
  world.latency.drain.Add(now - drain_started_ns_);
  if (drain_started_ns_ >= deadline_ns_) world.latency.overrun.Add(now - deadline_ns_);
}

void SliceWorld::EndFinish(World& world) {
  if (std::exchange(finishing_, false)) world.latency.overrun.Add(MonotonicNs() - deadline_ns_);
}

SliceWorld::Latency SliceWorld::LatencyOf(VfId vf) const {
  const World* world = Find(vf);
  return world != nullptr ? world->latency : Latency{};
}

bool SliceWorld::Complete(WsState state, VfId vf) {
  World* world = Find(vf);
  if (world == nullptr || !WaitsForExecutors(state)) return true;
  const bool look_for_dead = state != WsState::kDrain || MonotonicNs() - drain_started_ns_ > kLookForDeadAfterNs;
  bool clear = true;
  ForEachBit(world->live, [&](uint32_t slot) {
    const Executor& executor = world->executors[slot];
    if (!IsRunning(*world, slot) && !executor.killed) return;
    if (look_for_dead && HasEnded(executor.pidfd.get())) return;
    if (executor.killed || IsRunning(*world, slot)) clear = false;
  });
  if (clear) state == WsState::kFinish ? EndFinish(*world) : EndDrain(*world);
  return clear;
}

}  // namespace vgpud
