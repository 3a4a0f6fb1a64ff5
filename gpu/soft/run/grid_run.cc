// SPDX-License-Identifier: Apache-2.0
// Running a grid: on the caller's thread alone, and once that pays on those of the worker pool as well.
//
// The CTAs of a grid that runs on several threads are spread over sets. A set is run by one thread at a time, which
// takes it from waiting_, runs it for a part of the budget and puts it back. As long as every thread gets a core, each
// keeps its own set; where one does not, the others take its set in turn with theirs, so what a CTA waits for always
// comes.
#include <algorithm>
#include <new>

#include "gpu/soft/run/grid.h"
#include "gpu/soft/run/spin.h"

namespace vgpud::soft {
namespace {

// Warp instructions of a grid until others are called: to wake them up takes about as long as these.
constexpr uint64_t kAloneInstructions = 8192;
// A smaller budget than this is run by the caller alone.
constexpr uint64_t kLeastShared = 2048;
// Warp instructions that a thread runs of a set at least before it looks again whether others wait.
constexpr uint64_t kLeastPart = 256;

}  // namespace

// Meanwhile waiting_ is under its mutex.
struct Grid::Shift {
  Shift(Grid& of, const StopWord& ends, uint32_t most, uint64_t budget)
      : grid(of), stop(ends), threads(most), left(budget > UINT64_MAX / most ? UINT64_MAX : budget * most) {}

  Grid& grid;
  const StopWord& stop;
  const uint32_t threads;
  Mutex mutex{lock_rank::kShift};
  CondVar returned;
  uint64_t left GUARDED_BY(mutex);              // warp instructions that nobody has taken yet
  uint32_t running GUARDED_BY(mutex) = 0;       // sets that are being run
  bool over GUARDED_BY(mutex) = false;          // the stop word has changed, or there is a fault
  bool caller_waits GUARDED_BY(mutex) = false;  // for a set
  std::atomic<uint32_t> returns{0};             // of sets; under the mutex but for a look

  // Runs sets, on any thread; the one that called Run() stays until there is nothing left to do.
  void Work(bool caller);
  // Takes a set that nobody runs out of waiting_; nullptr: this thread is not needed any more.
  CtaSet* NextSet(bool caller) REQUIRES(mutex);
  bool was_over() {
    MutexLock lock(mutex);
    return over;
  }

  // The parts get smaller, so that the threads end at about the same time.
  uint64_t Take(bool others_wait) REQUIRES(mutex) {
    uint64_t part = left;
    if (threads > 1) {
      part = std::clamp(left / (2 * threads), kLeastPart, kCtaSlice);
    } else if (others_wait) {
      part = kCtaSlice;
    }
    part = std::min(part, left);
    left -= part;
    return part;
  }
};

uint64_t Grid::UnfinishedCtas() const {
  uint64_t count = facts_.ctas - next_cta_.load(std::memory_order_relaxed);
  for (const auto& set : sets_) count += set->resident();
  return count;
}

// From one set to one for each thread.
void Grid::Share() {
  const uint64_t count = std::min<uint64_t>(facts_.device.workers.threads(), UnfinishedCtas() / facts_.cluster_size);
  while (sets_.size() < count) sets_.push_back(std::make_unique<CtaSet>(*this, facts_));
  CtaSet& first = *sets_[0];
  const size_t each = (first.resident() + count - 1) / count;
  for (size_t to = 1; to < count; ++to)
    while (sets_[to]->resident() < each && first.resident() > each && first.GiveTo(*sets_[to])) {
    }
  for (const auto& set : sets_) waiting_.push_back(set.get());
}

CtaSet* Grid::Shift::NextSet(bool caller) {
  auto& waiting = grid.waiting_;
  for (;;) {
    if (left != 0 && !over && !waiting.empty()) {
      CtaSet* set = waiting.front();
      waiting.pop_front();
      return set;
    }
    if (!caller || running == 0) return nullptr;
    // Others are at it. The next one whose part is over leaves its set to the caller.
    caller_waits = true;
    const uint32_t seen = returns.load(std::memory_order_relaxed);
    const auto changed = [&] { return returns.load(std::memory_order_relaxed) != seen; };
    mutex.unlock();
    SpinUntil(changed);
    mutex.lock();
    while (!changed()) returned.Wait(mutex);
    caller_waits = false;
  }
}

// On whatever thread: nothing may leave it.
GpuGrid::Progress Grid::RunSet(CtaSet& set, const StopWord& stop, uint64_t part) {
  try {
    return set.Run(stop, part);
  } catch (const std::bad_alloc&) {
    SetFault(CuStatus::kOutOfMemory, "the host has no memory for what the kernel does");
    return Progress::kYield;
  }
}

void Grid::Shift::Work(bool caller) {
  MutexLock lock(mutex);
  while (CtaSet* set = NextSet(caller)) {
    const uint64_t part = Take(!grid.waiting_.empty());
    const uint64_t before = set->warp_instructions();
    ++running;
    mutex.unlock();
    const Progress progress = grid.RunSet(*set, stop, part);
    mutex.lock();
    --running;
    left += part - (set->warp_instructions() - before);
    over |= progress == Progress::kStopped || grid.faulted();
    // Without memory of its own it leaves what is left to the others: the first set always has some.
    const bool set_over = progress == Progress::kDone || progress == Progress::kShort;
    if (!set_over) grid.waiting_.push_back(set);
    returns.fetch_add(1, std::memory_order_relaxed);
    if (!caller_waits) continue;
    returned.NotifyOne();
    if (set_over) continue;
    caller_waits = false;  // it takes this one
    return;
  }
}

GpuGrid::Progress Grid::RunSets(const StopWord& stop, uint64_t budget) {
  if (waiting_.empty()) return Progress::kDone;
  WorkerPool& workers = facts_.device.workers;
  const uint32_t threads =
      budget < kLeastShared ? 1 : static_cast<uint32_t>(std::min<size_t>(workers.threads(), waiting_.size()));
  Shift shift(*this, stop, threads, budget);
  if (threads == 1) {
    shift.Work(true);
  } else {
    workers.Run(threads, [&](bool caller) { shift.Work(caller); });
  }
  if (waiting_.empty() && (faulted() || started() == facts_.ctas)) return Progress::kDone;
  if (waiting_.empty()) {
    waiting_.push_back(sets_[0].get());
    return Progress::kShort;
  }
  return shift.was_over() ? Progress::kStopped : Progress::kYield;
}

GpuResult<GpuGrid::Progress> Grid::Run(const StopWord& stop, uint64_t budget) {
  const auto outcome = [this](Progress progress) -> GpuResult<Progress> {
    if (!faulted()) return progress;
    MutexLock lock(fault_mutex_);
    return tl::unexpected(*fault_);
  };
  if (!PlaceParams(stop)) return outcome(Progress::kStopped);
  if (sets_.size() > 1) return outcome(RunSets(stop, budget));
  CtaSet& only = *sets_[0];
  uint64_t alone = budget;
  if (facts_.device.workers.threads() > 1 && facts_.ctas > facts_.cluster_size && !alone_)
    alone = std::min(budget, kAloneInstructions - std::min(only.warp_instructions(), kAloneInstructions));
  const Progress progress = only.Run(stop, alone);
  if (alone == budget || progress != Progress::kYield || faulted()) return outcome(progress);
  if (UnfinishedCtas() < 2 * uint64_t{facts_.cluster_size}) return outcome(only.Run(stop, budget - alone));
  Share();
  return outcome(RunSets(stop, budget - alone));
}

}  // namespace vgpud::soft
