// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/slice_world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "vgpud/gpu/slot_bits.h"

namespace vgpud::daemon {
namespace {

// Until then a drain costs no system call.
constexpr uint64_t kLookForDeadAfterNs = 200'000;

bool WaitsForExecutors(WsState state) {
  return state == WsState::kFinish || state == WsState::kDrain || state == WsState::kFlr;
}

}  // namespace

void SliceWorld::Add(VfId vf, const std::string& name, SliceMemory slices) {
  if (Raw(vf) >= worlds_.size()) worlds_.resize(Raw(vf) + 1);
  CHECK(worlds_[Raw(vf)] == nullptr);
  auto world = std::make_unique<VfWorld>();
  world->view.vf = vf;
  world->name = name;
  world->slices = std::move(slices);
  world->epoch = world->grant_page().grant.load() & ~GrantPage::kRun;  // of an earlier vgpud: none comes twice
  world->grant_page().notify.store(1);
  world->grant_page().scheduler_cpu.store(scheduler_cpu_);
  worlds_[Raw(vf)] = std::move(world);
}

void SliceWorld::Join(const VfView& view) {
  if (VfWorld* world = Find(view.vf)) world->joined = true;
  Change(view);
}

void SliceWorld::Change(const VfView& view) {
  if (VfWorld* world = Find(view.vf)) world->view = view;
}

void SliceWorld::SetParked(VfId vf, bool parked) {
  if (VfWorld* world = Find(vf)) world->parked = parked;
}

void SliceWorld::Remove(VfId vf) {
  if (Find(vf) != nullptr) worlds_[Raw(vf)].reset();
}

void SliceWorld::AddExecutor(VfId vf, uint32_t slot, Executor executor) {
  CHECK(slot < kMaxExecutors);
  if (VfWorld* world = Find(vf)) world->AddExecutor(slot, std::move(executor));
}

void SliceWorld::RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation) {
  CHECK(slot < kMaxExecutors);
  VfWorld* world = Find(vf);
  if (world != nullptr && world->executors[slot].generation == generation) world->RemoveExecutor(slot);
}

void SliceWorld::WatchForWork(bool watch, std::optional<VfId> but) {
  for (const auto& world : worlds_)
    if (world != nullptr && world->view.vf != but) world->Watch(watch);
}

void SliceWorld::WatchForWork(VfId vf, bool watch) {
  if (VfWorld* world = Find(vf)) world->Watch(watch);
}

void SliceWorld::Woken(const std::atomic<uint32_t>* bell) {
  for (const auto& world : worlds_)
    if (world != nullptr && &world->slot_page().bell == bell) world->woken = true;
}

FutexWord SliceWorld::Bell(VfId vf, TimePoint now) {
  VfWorld* world = Find(vf);
  return world != nullptr ? world->Bell(now) : FutexWord{};
}

bool SliceWorld::AllBells(TimePoint now, std::vector<FutexWord>* bells, std::optional<VfId> but) {
  bool all = true;
  for (const auto& world : worlds_) {
    if (world == nullptr || !world->joined || world->IsPaused() || world->live == 0 || world->view.vf == but) continue;
    const FutexWord bell = world->Bell(now);
    const bool fits = bell.word != nullptr && bells->size() < kMaxFutexWords;
    if (fits) bells->push_back(bell);
    all &= fits;
  }
  return all;
}

void SliceWorld::ShareCard() {
  uint32_t waiting = 0;
  uint64_t evictions = 0;
  VfWorld* who = nullptr;
  for (const auto& world : worlds_) {
    if (world == nullptr) continue;
    evictions += world->Evictions();
    if (world->IsPaused() || !world->WantsMemory()) continue;
    who = world.get();
    ++waiting;
  }
  someone_wants_memory_ = waiting != 0;
  // Only who has the GPU waits.
  const bool moved = std::exchange(evictions_, evictions) != evictions;
  for (const auto& world : worlds_)
    if (moved && world != nullptr && world->WantsMemory()) world->TellRoom();
  for (const auto& world : worlds_)
    if (world != nullptr)
      world->grant_page().make_room.store(waiting > 1 || (waiting == 1 && who != world.get()) ? 1 : 0,
                                          std::memory_order_seq_cst);
}

VfStats::Work SliceWorld::WorkOf(VfId vf) {
  VfWorld* world = Find(vf);
  if (world == nullptr) return {};
  world->ReadCounters();
  return world->book.Work(world->slot_page(), world->live);
}

bool SliceWorld::HasWork(VfId vf) {
  const VfWorld* world = Find(vf);
  return world != nullptr && world->HasWork();
}

bool SliceWorld::WorkChanged() const {
  for (const auto& world : worlds_)
    if (world != nullptr && world->joined &&
        world->shown_runnable != (!held_ && !world->IsPaused() && world->HasWork()))
      return true;
  return false;
}

std::span<const VfView> SliceWorld::TurnBoundary(TimePoint now) {
  events_.at_boundary(now);
  views_.clear();
  for (const auto& world : worlds_) {
    if (world == nullptr || !world->joined) continue;
    LookBehind(*world);
    world->shown_runnable = world->LookAtSlots() && !world->IsPaused() && !held_;
    VfView view = world->view;
    view.paused = world->IsPaused();
    view.runnable = world->shown_runnable;
    views_.push_back(view);
  }
  return views_;
}

Activity SliceWorld::ActivityOf(VfId vf) {
  const VfWorld* world = Find(vf);
  return world != nullptr ? world->activity() : Activity{.program = false};
}

void SliceWorld::Run(VfId vf, TimePoint deadline) {
  VfWorld* world = Find(vf);
  if (world == nullptr) return;
  ++turns_;
  deadline_ns_ = ToNs(deadline);
  world->Grant(deadline_ns_);
}

bool SliceWorld::MayStay(VfId vf) {
  if (events_.wants_boundary && events_.wants_boundary()) return false;
  return std::none_of(worlds_.begin(), worlds_.end(), [vf](const auto& world) {
    return world != nullptr && world->joined && world->view.vf != vf && !world->IsPaused() && world->HasWork();
  });
}

void SliceWorld::SetDeadline(VfId vf, TimePoint end, bool stops) {
  deadline_ns_ = ToNs(end);
  if (VfWorld* world = Find(vf))
    world->grant_page().deadline_ns.store(stops ? deadline_ns_ : 0, std::memory_order_relaxed);
}

// The run bit stays: who is on the GPU goes on, nobody else enters.
void SliceWorld::Finish(VfId vf) {
  deadline_ns_ = MonotonicNs();
  finishing_ = false;
  VfWorld* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().finish.store(world->epoch | GrantPage::kRun, std::memory_order_seq_cst);
  ForEachBit(world->live, [&](uint32_t slot) { finishing_ |= world->IsRunning(slot); });
}

void SliceWorld::Drain(VfId vf) {
  const uint64_t now = MonotonicNs();
  drain_.Begin(now);
  host_delay_ = Ns{0};
  VfWorld* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().grant.store(world->epoch, std::memory_order_seq_cst);
  drain_.See(*world);
  if (now < deadline_ns_) return;
  slice_ends_.Add(now - deadline_ns_);
  // They have left by themselves when the slice ended, and this thread is late.
  if (!drain_.under_way()) host_delay_ = Ns{static_cast<int64_t>(now - deadline_ns_)};
}

void SliceWorld::Save(VfId vf) {
  if (VfWorld* world = Find(vf)) world->ReadCounters();
}

void SliceWorld::Park(VfId vf) {
  SetParked(vf, true);
  if (VfWorld* world = Find(vf)) ForEachBit(world->live, [&](uint32_t slot) { Kill(*world, slot, false); });
  events_.on_parked(vf);
}

void SliceWorld::EndDrain(VfWorld& world) {
  if (!drain_.End()) return;
  const uint64_t now = MonotonicNs();
  world.latency.drain.Add(now - drain_.started_ns());
  host_delay_ = drain_.WaitedForCpu(world);
  ForEachBit(drain_.switched() & world.live, [&](uint32_t slot) {
    const Executor& executor = world.executors[slot];
    if (executor.IsOff()) world.latency.channels_off.Add(static_cast<uint64_t>(executor.channels->took().count()));
  });
  if (drain_.started_ns() < deadline_ns_) return;
  world.latency.overrun.Add(now - deadline_ns_);
  if (now - deadline_ns_ > static_cast<uint64_t>(VfStats::kLate.count())) drain_.CountLate(world);
}

bool SliceWorld::Complete(WsState state, VfId vf) {
  VfWorld* world = Find(vf);
  if (world == nullptr || !WaitsForExecutors(state)) return true;
  const bool look_for_dead = state != WsState::kDrain || MonotonicNs() - drain_.started_ns() > kLookForDeadAfterNs;
  uint64_t busy = 0;
  ForEachBit(world->live, [&](uint32_t slot) {
    Executor& executor = world->executors[slot];
    if (!executor.killed && (!world->IsRunning(slot) || executor.behind)) return;
    if (look_for_dead && HasEnded(executor.pidfd.get())) return;
    if (look_for_dead && state == WsState::kDrain) drain_.Mark(*world, executor);
    if (state == WsState::kDrain) SwitchOff(*world, slot);
    if (executor.IsOff()) return;
    if (executor.killed || world->IsRunning(slot)) busy |= uint64_t{1} << slot;
  });
  const bool replaced_ended = look_for_dead ? world->ReplacedHaveEnded() : world->replaced.empty();
  const bool clear = busy == 0 && replaced_ended;
  if (!clear) drain_.SetRunning(busy);
  if (clear && state != WsState::kFinish) EndDrain(*world);
  if (clear && state == WsState::kFinish && std::exchange(finishing_, false))
    world->latency.overrun.Add(MonotonicNs() - deadline_ns_);
  return clear;
}

}  // namespace vgpud::daemon
