// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/slice_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace vgpud::daemon {
namespace {

// Until then a drain costs no system call.
constexpr uint64_t kLookForDeadAfterNs = 200'000;

// Threads of an executor beside those that compute: the one that serves its link, the loader, and one to spare.
constexpr uint32_t kOtherThreads = 3;

bool HasEnded(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

bool WaitsForExecutors(WsState state) {
  return state == WsState::kFinish || state == WsState::kDrain || state == WsState::kFlr;
}

ExecState StateOf(const SlotPage& page, uint32_t slot) {
  return static_cast<ExecState>(page.slots[slot].state.load(std::memory_order_seq_cst));
}

// Rings of one VF that are listened to in kRingWindow; its turns begin a new count. An executor rings when it stops.
constexpr uint32_t kMostRings = 64;
constexpr Ns kRingWindow = std::chrono::milliseconds{100};

}  // namespace

SliceWorld::World* SliceWorld::Find(VfId vf) const {
  return Raw(vf) < worlds_.size() ? worlds_[Raw(vf)].get() : nullptr;
}

void SliceWorld::Add(VfId vf, const std::string& name, SliceMemory slices) {
  if (Raw(vf) >= worlds_.size()) worlds_.resize(Raw(vf) + 1);
  CHECK(worlds_[Raw(vf)] == nullptr);
  auto world = std::make_unique<World>();
  world->view.vf = vf;
  world->name = name;
  world->slices = std::move(slices);
  world->epoch = world->grant_page().grant.load() & ~GrantPage::kRun;  // of an earlier vgpud: none comes twice
  world->grant_page().notify.store(1);
  world->grant_page().scheduler_cpu.store(scheduler_cpu_);
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
  Replace(*world, world->executors[slot]);
  executor.clock = ExecutorClock(executor.pid, executor.threads + kOtherThreads);
  const bool resumed = executor.resumed;
  world->executors[slot] = std::move(executor);
  world->live |= uint64_t{1} << slot;
  SlotCounters& counters = world->counters[slot];
  // Nobody tells what a resumed one had moved before.
  const auto moves = MovesOf(world->slot_page().memory[slot]);
  for (size_t i = 0; i < moves.size(); ++i) counters.moves[i].last = moves[i];
  if (resumed) return;
  // Counters go on where the slot's last executor left them.
  const ExecSlot& now = world->slot_page().slots[slot];
  counters.kernels.last = now.kernels.load(std::memory_order_relaxed);
  counters.warp_instructions.last = now.warp_instructions.load(std::memory_order_relaxed);
  counters.preempts.last = now.preempts.load(std::memory_order_relaxed);
  counters.host_work_ns.last = now.host_work_ns.load(std::memory_order_relaxed);
  counters.module_loads.last = now.module_loads.load(std::memory_order_relaxed);
  counters.module_bytes.last = now.module_bytes.load(std::memory_order_relaxed);
  counters.core_wait_ns.last = now.core_wait_ns.load(std::memory_order_relaxed);
  counters.read_at_ns = counters.host_work_at_ns = counters.core_wait_at_ns = MonotonicNs();
}

void SliceWorld::Replace(World& world, Executor& executor) {
  if (!executor.pidfd || HasEnded(executor.pidfd.get())) return;
  ::syscall(SYS_pidfd_send_signal, executor.pidfd.get(), SIGKILL, nullptr, 0);
  world.replaced.push_back(std::move(executor.pidfd));
}

void SliceWorld::RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation) {
  CHECK(slot < kMaxExecutors);
  World* world = Find(vf);
  if (world == nullptr || world->executors[slot].generation != generation) return;
  ReadCounters(*world);
  AddCounts(world->channels, world->executors[slot]);
  world->live &= ~(uint64_t{1} << slot);
  world->executors[slot] = Executor{};
}

void SliceWorld::WatchForWork(bool watch) {
  for (const auto& world : worlds_)
    if (world != nullptr) world->grant_page().notify.store(watch ? 2 : 1, std::memory_order_seq_cst);
}

void SliceWorld::WatchForWork(VfId vf, bool watch) {
  if (World* world = Find(vf)) world->grant_page().notify.store(watch ? 2 : 1, std::memory_order_seq_cst);
}

void SliceWorld::WatchOthers(VfId vf, bool watch) {
  for (const auto& world : worlds_)
    if (world != nullptr && world->view.vf != vf)
      world->grant_page().notify.store(watch ? 2 : 1, std::memory_order_seq_cst);
}

void SliceWorld::Woken(const std::atomic<uint32_t>* bell) {
  for (const auto& world : worlds_)
    if (world != nullptr && &world->slot_page().bell == bell) world->woken = true;
}

FutexWord SliceWorld::Bell(VfId vf, TimePoint now) {
  World* world = Find(vf);
  if (world == nullptr) return {};
  const std::atomic<uint32_t>& bell = world->slot_page().bell;
  const uint32_t says = bell.load(std::memory_order_seq_cst);
  const bool woken = std::exchange(world->woken, false);
  if (says == world->heard && !woken && world->rings <= kMostRings) return {&bell, says};
  world->heard = says;
  if (now - world->rings_since >= kRingWindow) {
    world->rings_since = now;
    world->rings = 0;
  }
  if (++world->rings <= kMostRings) return {&bell, says};
  world->conduct.muted += world->rings == kMostRings + 1;
  return {};
}

bool SliceWorld::AllBells(TimePoint now, std::vector<FutexWord>* bells, std::optional<VfId> but) {
  bool all = true;
  for (const auto& world : worlds_) {
    if (world == nullptr || !world->joined || IsPaused(*world) || world->live == 0 || world->view.vf == but) continue;
    const FutexWord bell = Bell(world->view.vf, now);
    const bool fits = bell.word != nullptr && bells->size() < kMaxFutexWords;
    if (fits) bells->push_back(bell);
    all &= fits;
  }
  return all;
}

bool SliceWorld::HasWork(const World& world) {
  bool found = false;
  ForEachBit(world.live, [&](uint32_t slot) {
    const ExecState state = StateOf(world.slot_page(), slot);
    found |= state == ExecState::kReady || state == ExecState::kRunning || IsOff(world.executors[slot]);
  });
  return found;
}

bool SliceWorld::LookAtSlots(World& world) {
  bool work = false;
  uint64_t running = 0;
  ForEachBit(world.live, [&](uint32_t slot) {
    const ExecState state = StateOf(world.slot_page(), slot);
    const bool off = IsOff(world.executors[slot]);
    // One whose kernel ended just before it was switched off needs a turn to be let on: its driver works without one,
    // too, and would wait for ever.
    work |= state == ExecState::kReady || state == ExecState::kRunning || off;
    if (state == ExecState::kRunning && !off && !world.executors[slot].behind) running |= uint64_t{1} << slot;
    if (state > ExecState::kRunning) ++world.conduct.bad_slots;
  });
  // One that finds the grant taken back while it enters says kRunning for a moment, and not twice.
  if ((std::exchange(world.outside, running) & running) != 0) ++world.conduct.out_of_turn;
  return work;
}

bool SliceWorld::HasWork(VfId vf) {
  const World* world = Find(vf);
  return world != nullptr && HasWork(*world);
}

bool SliceWorld::WorkChanged() const {
  for (const auto& world : worlds_)
    if (world != nullptr && world->joined && world->shown_runnable != (!held_ && !IsPaused(*world) && HasWork(*world)))
      return true;
  return false;
}

std::span<const VfView> SliceWorld::TurnBoundary(TimePoint now) {
  events_.at_boundary(now);
  views_.clear();
  for (const auto& world : worlds_) {
    if (world == nullptr || !world->joined) continue;
    LookBehind(*world);
    world->shown_runnable = LookAtSlots(*world) && !IsPaused(*world) && !held_;
    VfView view = world->view;
    view.paused = IsPaused(*world);
    view.runnable = world->shown_runnable;
    views_.push_back(view);
  }
  return views_;
}

// Work since the first of those that have some, none since the last that had.
Activity SliceWorld::ActivityOf(VfId vf) {
  const World* world = Find(vf);
  if (world == nullptr || world->live == 0) return {.program = false};
  std::optional<uint64_t> work;
  uint64_t none = 0;
  ForEachBit(world->live, [&](uint32_t slot) {
    const ExecState state = StateOf(world->slot_page(), slot);
    const uint64_t since = world->slot_page().slots[slot].since_ns.load(std::memory_order_relaxed);
    if (state == ExecState::kReady || state == ExecState::kRunning)
      work = std::min(work.value_or(since), since);
    else
      none = std::max(none, since);
  });
  const auto latest = static_cast<uint64_t>(std::numeric_limits<Ns::rep>::max());
  return {.program = true, .since = TimePoint{Ns{static_cast<Ns::rep>(std::min(work.value_or(none), latest))}}};
}

void SliceWorld::Run(VfId vf, TimePoint deadline) {
  World* world = Find(vf);
  if (world == nullptr) return;
  GrantPage& page = world->grant_page();
  ++turns_;
  world->outside = 0;
  world->rings = 0;
  deadline_ns_ = ToNs(deadline);
  ForEachBit(world->live, [&](uint32_t slot) {
    world->executors[slot].behind = false;
    if (const auto& channels = world->executors[slot].channels) channels->Want(false);
  });
  page.granted_ns.store(MonotonicNs(), std::memory_order_relaxed);
  page.deadline_ns.store(deadline_ns_, std::memory_order_relaxed);
  world->epoch += 2;
  page.finish.store(0, std::memory_order_relaxed);  // grants count around
  page.grant.store(world->epoch | GrantPage::kRun, std::memory_order_seq_cst);
  // Not as many as it likes to let sleep there: waking one costs this thread time. Twice what ours have.
  uint32_t sleepers = 0;
  ForEachBit(world->live, [&](uint32_t slot) { sleepers += 2 * (world->executors[slot].threads + kOtherThreads); });
  FutexWake(&page.grant, sleepers);
}

bool SliceWorld::MayStay(VfId vf) {
  if (events_.wants_boundary && events_.wants_boundary()) return false;
  return std::none_of(worlds_.begin(), worlds_.end(), [vf](const auto& world) {
    return world != nullptr && world->joined && world->view.vf != vf && !IsPaused(*world) && HasWork(*world);
  });
}

void SliceWorld::SetDeadline(VfId vf, TimePoint end, bool stops) {
  deadline_ns_ = ToNs(end);
  if (World* world = Find(vf))
    world->grant_page().deadline_ns.store(stops ? deadline_ns_ : 0, std::memory_order_relaxed);
}

// The run bit stays: who is on the GPU goes on, nobody else enters.
void SliceWorld::Finish(VfId vf) {
  deadline_ns_ = MonotonicNs();
  finishing_ = false;
  World* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().finish.store(world->epoch | GrantPage::kRun, std::memory_order_seq_cst);
  ForEachBit(world->live, [&](uint32_t slot) { finishing_ |= IsRunning(*world, slot); });
}

void SliceWorld::Drain(VfId vf) {
  drain_started_ns_ = MonotonicNs();
  draining_ = false;
  switched_ = given_more_ = 0;
  host_delay_ = Ns{0};
  World* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().grant.store(world->epoch, std::memory_order_seq_cst);
  vf_cpu_ns_.reset();
  last_running_ = 0;
  ForEachBit(world->live, [&](uint32_t slot) {
    world->executors[slot].marked = false;
    if (IsRunning(*world, slot)) last_running_ |= uint64_t{1} << slot;
  });
  draining_ = last_running_ != 0;
  if (drain_started_ns_ < deadline_ns_) return;
  slice_ends_.Add(drain_started_ns_ - deadline_ns_);
  // They have left by themselves when the slice ended, and this thread is late.
  if (!draining_) host_delay_ = Ns{static_cast<int64_t>(drain_started_ns_ - deadline_ns_)};
}

Ns SliceWorld::HostDelay(VfId) { return host_delay_; }

void SliceWorld::Save(VfId vf) {
  if (World* world = Find(vf)) ReadCounters(*world);
}

bool SliceWorld::IsRunning(const World& world, uint32_t slot) {
  return StateOf(world.slot_page(), slot) == ExecState::kRunning;
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
  host_delay_ = WaitedForCpu(world);
  ForEachBit(switched_ & world.live, [&](uint32_t slot) {
    const Executor& executor = world.executors[slot];
    if (IsOff(executor)) world.latency.channels_off.Add(static_cast<uint64_t>(executor.channels->took().count()));
  });
  if (drain_started_ns_ < deadline_ns_) return;
  world.latency.overrun.Add(now - deadline_ns_);
  if (now - deadline_ns_ > static_cast<uint64_t>(VfStats::kLate.count())) CountLate(world);
}

void SliceWorld::EndFinish(World& world) {
  if (std::exchange(finishing_, false)) world.latency.overrun.Add(MonotonicNs() - deadline_ns_);
}

VfStats::Latency SliceWorld::LatencyOf(VfId vf) const {
  const World* world = Find(vf);
  return world != nullptr ? world->latency : VfStats::Latency{};
}

VfStats::Conduct SliceWorld::ConductOf(VfId vf) const {
  const World* world = Find(vf);
  return world != nullptr ? world->conduct : VfStats::Conduct{};
}

VfStats::Late SliceWorld::LateOf(VfId vf) const {
  const World* world = Find(vf);
  return world != nullptr ? world->late : VfStats::Late{};
}

bool SliceWorld::Complete(WsState state, VfId vf) {
  World* world = Find(vf);
  if (world == nullptr || !WaitsForExecutors(state)) return true;
  const bool look_for_dead = state != WsState::kDrain || MonotonicNs() - drain_started_ns_ > kLookForDeadAfterNs;
  uint64_t busy = 0;
  ForEachBit(world->live, [&](uint32_t slot) {
    Executor& executor = world->executors[slot];
    if (!executor.killed && (!IsRunning(*world, slot) || executor.behind)) return;
    if (look_for_dead && HasEnded(executor.pidfd.get())) return;
    if (look_for_dead && state == WsState::kDrain) Mark(*world, executor);
    if (state == WsState::kDrain) SwitchOff(*world, slot);
    if (IsOff(executor)) return;
    if (executor.killed || IsRunning(*world, slot)) busy |= uint64_t{1} << slot;
  });
  if (look_for_dead) std::erase_if(world->replaced, [](const UniqueFd& pidfd) { return HasEnded(pidfd.get()); });
  const bool clear = busy == 0 && world->replaced.empty();
  if (!clear) last_running_ = busy;
  if (clear) state == WsState::kFinish ? EndFinish(*world) : EndDrain(*world);
  return clear;
}

}  // namespace vgpud::daemon
