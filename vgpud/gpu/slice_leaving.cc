// SPDX-License-Identifier: Apache-2.0
// Executors that do not leave the GPU in time: who hangs, who has no CPU, and where the time went.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slice_world.h"
#include "vgpud/gpu/slot_bits.h"

namespace vgpud::daemon {
namespace {

// Between two looks at an executor that was left behind.
constexpr uint64_t kLookBehindEveryNs = 5'000'000;

}  // namespace

// Each thread of an executor sees the revoke after one warp instruction, if it computes at all.
bool SliceWorld::IsHung(VfWorld& world, uint32_t slot) {
  if (!world.MustLeave(slot)) return false;
  const LeaveFigures figures = drain_.FiguresOf(world, world.executors[slot]);
  const auto timeout = static_cast<uint64_t>(preempt_timeout_.count());
  if (JudgeLeaving(figures, timeout) == Leaving::kHangs) return true;
  if (figures.cpu_ns >= timeout / 2 && drain_.GiveMoreTime(slot)) ++world.late.more_time;
  return false;
}

bool SliceWorld::Excused(VfId vf) {
  VfWorld* world = Find(vf);
  if (world == nullptr) return false;
  bool excused = true;
  ForEachBit(world->live, [&](uint32_t slot) { excused &= !IsHung(*world, slot); });
  return excused;
}

// It finishes one warp instruction when it gets a CPU, sees that its grant is old, and leaves.
bool SliceWorld::LeaveBehind(VfId vf) {
  VfWorld* world = Find(vf);
  if (world == nullptr || !on_cpu_) return false;
  const auto timeout = static_cast<uint64_t>(preempt_timeout_.count());
  uint64_t starving = 0;
  bool others = false;
  ForEachBit(world->live, [&](uint32_t slot) {
    if (!world->MustLeave(slot)) return;
    const bool starves = JudgeLeaving(drain_.FiguresOf(*world, world->executors[slot]), timeout) == Leaving::kStarves;
    if (starves) starving |= uint64_t{1} << slot;
    others |= !starves;
  });
  if (starving == 0 || others) return false;
  ForEachBit(starving, [&](uint32_t slot) {
    world->executors[slot].behind = true;
    world->executors[slot].behind_seen_ns = MonotonicNs();
  });
  ++world->late.left_behind;
  return Complete(WsState::kDrain, vf);
}

void SliceWorld::LookBehind(VfWorld& world) {
  ForEachBit(world.live, [&](uint32_t slot) {
    Executor& executor = world.executors[slot];
    if (!executor.behind || executor.killed) return;
    if (!world.IsRunning(slot)) executor.behind = false;
    const uint64_t now = MonotonicNs();
    if (!executor.behind || now - executor.behind_seen_ns < kLookBehindEveryNs) return;
    executor.behind_seen_ns = now;
    // It has a CPU again, and does not leave.
    const uint64_t most = static_cast<uint64_t>(preempt_timeout_.count()) / 2 + kStolenNs;
    if (executor.clock.SinceMark().cpu_ns >= most) Kill(world, slot, false);
  });
}

// Only the hung ones are killed; where none is, the excuses have lasted too long and all that are on the GPU are.
void SliceWorld::Flr(VfId vf) {
  VfWorld* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().grant.store(world->epoch, std::memory_order_seq_cst);
  const bool nobody_hangs = Excused(vf);
  ForEachBit(world->live, [&](uint32_t slot) {
    const bool stays = world->IsRunning(slot) && !world->executors[slot].IsOff();
    if (nobody_hangs ? stays : IsHung(*world, slot)) Kill(*world, slot, nobody_hangs);
  });
}

void SliceWorld::Kill(VfWorld& world, uint32_t slot, bool out_of_time) {
  Executor& executor = world.executors[slot];
  if (executor.killed) return;
  const ExecutorClock::Times since = executor.marked ? executor.clock.SinceMark() : ExecutorClock::Times{};
  // As long as somebody has its control files, what it has on the GPU stays.
  world.KeepChannelCounts(executor);
  executor.channels.reset();
  ::syscall(SYS_pidfd_send_signal, executor.pidfd.get(), SIGKILL, nullptr, 0);
  executor.killed = true;
  events_.on_killed(world.view.vf, world.name,
                    {executor.pid, Ns{static_cast<int64_t>(MonotonicNs() - drain_.started_ns())},
                     Ns{static_cast<int64_t>(since.cpu_ns)}, Ns{static_cast<int64_t>(since.waited_ns)},
                     since.known && !since.ready, out_of_time});
}

}  // namespace vgpud::daemon
