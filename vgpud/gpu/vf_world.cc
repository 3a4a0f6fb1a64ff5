// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/vf_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slot_bits.h"

namespace vgpud::daemon {
namespace {

// Rings of one VF that are listened to in kRingWindow; its turns begin a new count. An executor rings when it stops.
constexpr uint32_t kMostRings = 64;
constexpr Ns kRingWindow = std::chrono::milliseconds{100};

ExecState StateOf(const SlotPage& page, uint32_t slot) {
  return static_cast<ExecState>(page.slots[slot].state.load(std::memory_order_seq_cst));
}

bool IsInLine(ExecState state) { return state == ExecState::kReady || state == ExecState::kRunning; }

void Add(const VfWorld::Executor& executor, VfStats::Channels* to) {
  if (executor.channels == nullptr) return;
  const ChannelWorker::Counts counts = executor.channels->counts();
  to->offs += counts.offs;
  to->newcomers += counts.newcomers;
  to->refusals += counts.refusals;
}

}  // namespace

bool HasEnded(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

void VfWorld::AddExecutor(uint32_t slot, Executor executor) {
  if (UniqueFd& last = executors[slot].pidfd; last && !HasEnded(last.get())) {
    ::syscall(SYS_pidfd_send_signal, last.get(), SIGKILL, nullptr, 0);
    replaced.push_back(std::move(last));
  }
  executor.clock = ExecutorClock(executor.pid, executor.threads + kOtherThreads);
  book.Begin(slot, slot_page(), executor.resumed);
  executors[slot] = std::move(executor);
  live |= uint64_t{1} << slot;
}

void VfWorld::RemoveExecutor(uint32_t slot) {
  ReadCounters();
  KeepChannelCounts(executors[slot]);
  live &= ~(uint64_t{1} << slot);
  executors[slot] = Executor{};
}

bool VfWorld::ReplacedHaveEnded() {
  std::erase_if(replaced, [](const UniqueFd& pidfd) { return HasEnded(pidfd.get()); });
  return replaced.empty();
}

bool VfWorld::IsRunning(uint32_t slot) const { return StateOf(slot_page(), slot) == ExecState::kRunning; }

bool VfWorld::HasWork() const {
  bool found = false;
  ForEachBit(live, [&](uint32_t slot) { found |= IsInLine(StateOf(slot_page(), slot)) || executors[slot].IsOff(); });
  return found;
}

Activity VfWorld::activity() const {
  if (live == 0) return {.program = false};
  std::optional<uint64_t> work;
  uint64_t none = 0;
  ForEachBit(live, [&](uint32_t slot) {
    const ExecState state = StateOf(slot_page(), slot);
    const uint64_t since = slot_page().slots[slot].since_ns.load(std::memory_order_relaxed);
    if (IsInLine(state))
      work = std::min(work.value_or(since), since);
    else
      none = std::max(none, since);
  });
  const auto latest = static_cast<uint64_t>(std::numeric_limits<Ns::rep>::max());
  return {.program = true, .since = TimePoint{Ns{static_cast<Ns::rep>(std::min(work.value_or(none), latest))}}};
}

bool VfWorld::LookAtSlots() {
  bool work = false;
  uint64_t running = 0;
  ForEachBit(live, [&](uint32_t slot) {
    const ExecState state = StateOf(slot_page(), slot);
    const bool off = executors[slot].IsOff();
    // One whose kernel ended just before it was switched off needs a turn to be let on: its driver works without one,
    // too, and would wait for ever.
    work |= IsInLine(state) || off;
    if (state == ExecState::kRunning && !off && !executors[slot].behind) running |= uint64_t{1} << slot;
    if (state > ExecState::kRunning) ++conduct.bad_slots;
  });
  // One that finds the grant taken back while it enters says kRunning for a moment, and not twice.
  if ((std::exchange(outside, running) & running) != 0) ++conduct.out_of_turn;
  return work;
}

bool VfWorld::MustLeave(uint32_t slot) const {
  const Executor& executor = executors[slot];
  return IsRunning(slot) && !executor.IsOff() && !executor.behind && !executor.clock.IsEnding();
}

bool VfWorld::WantsMemory() const {
  bool wants = false;
  ForEachBit(live, [&](uint32_t slot) {
    wants |=
        IsInLine(StateOf(slot_page(), slot)) && slot_page().memory[slot].wanted.load(std::memory_order_seq_cst) != 0;
  });
  return wants;
}

uint64_t VfWorld::Evictions() const {
  uint64_t all = 0;
  ForEachBit(live, [&](uint32_t slot) { all += slot_page().memory[slot].evictions.load(std::memory_order_relaxed); });
  return all;
}

void VfWorld::TellRoom() {
  grant_page().room.fetch_add(1, std::memory_order_seq_cst);
  FutexWake(&grant_page().room, kMaxExecutors);
}

uint64_t VfWorld::CpuNs() const {
  uint64_t all = 0;
  ForEachBit(live, [&](uint32_t slot) { all += executors[slot].clock.ProcessCpuNs(); });
  return all;
}

FutexWord VfWorld::Bell(TimePoint now) {
  const std::atomic<uint32_t>& bell = slot_page().bell;
  const uint32_t says = bell.load(std::memory_order_seq_cst);
  const bool was_woken = std::exchange(woken, false);
  if (says == heard && !was_woken && rings <= kMostRings) return {&bell, says};
  heard = says;
  if (now - rings_since >= kRingWindow) {
    rings_since = now;
    rings = 0;
  }
  if (++rings <= kMostRings) return {&bell, says};
  conduct.muted += rings == kMostRings + 1;
  return {};
}

void VfWorld::Grant(uint64_t deadline_ns) {
  outside = 0;
  rings = 0;
  ForEachBit(live, [&](uint32_t slot) {
    executors[slot].behind = false;
    if (const auto& switched = executors[slot].channels) switched->Want(false);
  });
  GrantPage& page = grant_page();
  page.granted_ns.store(MonotonicNs(), std::memory_order_relaxed);
  page.deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  epoch += 2;
  page.finish.store(0, std::memory_order_relaxed);  // grants count around
  page.grant.store(epoch | GrantPage::kRun, std::memory_order_seq_cst);
  // Not as many as it likes to let sleep there: waking one costs this thread time. Twice what ours have.
  uint32_t sleepers = 0;
  ForEachBit(live, [&](uint32_t slot) { sleepers += 2 * (executors[slot].threads + kOtherThreads); });
  FutexWake(&page.grant, sleepers);
}

VfStats::Channels VfWorld::ChannelCounts() const {
  VfStats::Channels all = channels;
  ForEachBit(live, [&](uint32_t slot) { Add(executors[slot], &all); });
  return all;
}

void VfWorld::KeepChannelCounts(const Executor& executor) { Add(executor, &channels); }

}  // namespace vgpud::daemon
