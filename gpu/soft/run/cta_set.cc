// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/cta_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/checked.h"
#include "gpu/soft/code/special_registers.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

uint64_t RoundUp(uint64_t v, uint64_t to) { return CheckedSize(v).AlignedUp(to).saturated(); }

void Broadcast(std::byte* at, uint32_t value) {
  for (uint32_t l = 0; l < kLanes; ++l) std::memcpy(at + l * sizeof value, &value, sizeof value);
}

}  // namespace

CtaLayout LayOutCta(const CodeFunction& function, const LaunchShape& shape, uint32_t stack_bytes) {
  const uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  CtaLayout layout;
  layout.own_shared = function.shared_bytes;
  if (shape.dynamic_shared != 0)
    layout.own_shared = MustFit<uint32_t>(RoundUp(function.shared_bytes, 16) + shape.dynamic_shared);
  layout.reserved_at = MustFit<uint32_t>(RoundUp(layout.own_shared, 16));
  layout.shared_bytes = layout.own_shared;
  if ((function.warp_specials >> kUsesReservedShared) & 1)
    layout.shared_bytes = MustFit<uint32_t>(CheckedSize(layout.reserved_at) + kReservedShared);
  layout.stack = RoundUp(stack_bytes, kSlotAlign);
  layout.shared = std::max<size_t>(RoundUp(layout.shared_bytes, kSlotAlign), kSlotAlign);
  layout.per_warp =
      kWarpSpecialCount * kSlot32 + layout.stack + RoundUp(size_t{function.local_total} * kLanes, kSlotAlign);
  layout.warps = layout.per_warp * ((threads + kLanes - 1) / kLanes);
  layout.tensor = ((function.warp_specials >> kUsesTensorMemory) & 1) != 0 ? kTensorBytes : 0;
  layout.bytes = BlockPool::Cost(layout.shared) + BlockPool::Cost(layout.warps);
  if (layout.tensor != 0) layout.bytes += BlockPool::Cost(layout.tensor);
  return layout;
}

std::unique_ptr<Cta> CtaSet::MakeCta() const {
  if (facts_.frames.stack_bytes == 0) {
    grid_.SetFault(CuStatus::kLaunchOutOfResources,
                   fmt::format("kernel {}: it and the functions that it can call need more than {} bytes of stack",
                               facts_.function.info.name, kMaxStackBytes));
    return nullptr;
  }
  const size_t warp_area = kWarpSpecialCount * kSlot32;
  const auto& [own_shared, reserved_at, shared_bytes, stack, shared, per_warp, warps, tensor, bytes] = facts_.layout;
  auto cta = std::make_unique<Cta>();
  cta->shared_memory = facts_.device.blocks.Take(shared);
  if (cta->shared_memory) cta->warp_memory = facts_.device.blocks.Take(warps);
  if (!cta->warp_memory) return nullptr;
  if (tensor != 0) {
    cta->tensor_memory = facts_.device.blocks.Take(tensor);
    if (!cta->tensor_memory) return nullptr;
    cta->tensor.bytes = cta->tensor_memory.EndingHere(tensor);
  }
  // What the kernel sees of shared memory ends where the accessible pages do.
  cta->shared = cta->shared_memory.EndingHere(shared);
  std::byte* at = cta->warp_memory.EndingHere(warps);
  cta->warps.resize(facts_.warps_per_cta);
  for (uint32_t n = 0; n < facts_.warps_per_cta; ++n) {
    Warp& w = cta->warps[n];
    w = Warp{};
    w.index = n;
    w.cta = cta.get();
    w.grid = &grid_;
    w.base[kConstants] = facts_.program->constants;
    w.base[kGridArea] = facts_.area;
    w.base[kWarpArea] = at;
    w.stack = at + warp_area;
    w.stack_bytes = MustFit<uint32_t>(stack);
    w.local_memory = w.stack + stack;
    w.local_stride = facts_.function.local_total;
    w.local_fixed = facts_.function.local_total - facts_.function.dynamic_local;
    w.arena = facts_.device.arena.reach_begin();
    w.arena_bytes = facts_.device.arena.reach_bytes();
    w.pages = facts_.device.arena.pages();
    w.shared = cta->shared;
    w.shared_bytes = shared_bytes;
    w.params = facts_.params.data();
    w.extra = facts_.program->extra.data();
    w.param_bytes = MustFit<uint32_t>(facts_.params.size());
    at += per_warp;
    uint32_t tid[3][kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t linear = n * kLanes + l;
      tid[0][l] = linear % facts_.shape.block[0];
      tid[1][l] = linear / facts_.shape.block[0] % facts_.shape.block[1];
      tid[2][l] = linear / facts_.shape.block[0] / facts_.shape.block[1];
    }
    for (uint32_t d = 0; d < 3; ++d) std::memcpy(w.base[kWarpArea] + (kTidX + d) * kSlot32, tid[d], sizeof(tid[d]));
    Broadcast(w.base[kWarpArea] + kWarpId * kSlot32, n);
  }
  return cta;
}

void CtaSet::InitWarp(Cta& cta, uint32_t n) const {
  Warp& w = cta.warps[n];
  const uint32_t lanes = std::min(kLanes, facts_.threads - n * kLanes);
  w.live = lanes == kLanes ? kFullMask : (1u << lanes) - 1;
  w.mask = w.live;
  w.frame = 0;
  w.local = 0;
  w.base[kFrame] = w.stack;
  w.pc = facts_.program->code.data() + facts_.function.entry;
  w.limit = reinterpret_cast<const Inst*>(UINTPTR_MAX);
  w.split_count = 0;
  w.force_sync = w.yielded = w.sync_seen = false;
  w.fairness = 0;
  w.polls = 0;
  w.selections = 0;
  w.slice = kWarpSlice;
  w.at_cluster = 0;
  if (facts_.function.dynamic_local != 0)
    for (uint32_t l = 1; l <= kLanes; ++l)
      std::memset(w.local_memory + size_t{w.local_stride} * l - kDynamicTakenBytes, 0, kDynamicTakenBytes);
  const auto tell = [&](uint32_t special, uint32_t value) {
    if ((facts_.function.warp_specials >> special) & 1) Broadcast(w.base[kWarpArea] + special * kSlot32, value);
  };
  for (uint32_t d = 0; d < 3; ++d) {
    tell(kCtaidX + d, cta.id[d]);
    tell(kClusterCtaidX + d, cta.id[d] % facts_.cluster[d]);
    tell(kClusterIdX + d, cta.id[d] / facts_.cluster[d]);
  }
  tell(kClusterCtaRank, static_cast<uint32_t>(cta.order % facts_.cluster_size));
  uint32_t place = 0;
  for (uint32_t d = 0; d < 3; ++d) place += cta.id[d] / facts_.cluster[d];
  tell(kSmId, place % kMultiprocessors);
}

void CtaSet::Start(Cta& cta, uint64_t order) const {
  const uint64_t rank = order % facts_.cluster_size;
  uint64_t cluster = order / facts_.cluster_size;
  uint64_t within = rank;
  for (uint32_t d = 0; d < 3; ++d) {
    const uint32_t clusters = facts_.shape.grid[d] / facts_.cluster[d];
    cta.id[d] = static_cast<uint32_t>(cluster % clusters * facts_.cluster[d] + within % facts_.cluster[d]);
    cluster /= clusters;
    within /= facts_.cluster[d];
  }
  cta.order = order;
  cta.cluster_arrived = 0;
  cta.live_threads = facts_.threads;
  cta.cursor = 0;
  cta.slice = kCtaSlice;
  for (Barrier& b : cta.barriers) b = {};
  cta.tensor = {.bytes = cta.tensor.bytes};
  for (uint32_t n = 0; n < facts_.warps_per_cta; ++n) InitWarp(cta, n);
}

void CtaSet::JoinCluster(size_t first) {
  for (size_t n = 0; n < facts_.cluster_size; ++n) {
    Cta& cta = *resident_[first + n];
    cta.cluster_size = facts_.cluster_size;
    for (size_t peer = 0; peer < facts_.cluster_size; ++peer) cta.peers[peer] = resident_[first + peer].get();
  }
}

// Memory for one more cluster; for all CTAs, where they have to be resident together.
bool CtaSet::HaveSpare() {
  if (spare_.size() >= facts_.cluster_size) return true;
  const uint64_t wanted = facts_.workspace && grid_.started() == 0 ? facts_.ctas : facts_.cluster_size;
  while (spare_.size() < wanted) {
    // With blocks resident, who comes next must not depend on when the kernel is stopped.
    if (resident_.empty() && stop_->Stopped()) return false;
    std::unique_ptr<Cta> cta = MakeCta();
    if (cta == nullptr) {
      spare_.clear();
      short_ = !grid_.faulted();
      return false;
    }
    spare_.push_back(std::move(cta));
  }
  return true;
}

bool CtaSet::AdmitNext() {
  short_ = false;
  if (resident_.size() + facts_.cluster_size > facts_.max_resident || grid_.faulted() ||
      grid_.started() == facts_.ctas || !HaveSpare())
    return false;
  const std::optional<uint64_t> next = grid_.TakeCluster();
  if (!next) return false;
  for (uint32_t rank = 0; rank < facts_.cluster_size; ++rank) {
    Start(*spare_.back(), *next + rank);
    resident_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  JoinCluster(resident_.size() - facts_.cluster_size);
  return true;
}

// The CTA whose turn is over goes to the back; new ones are admitted before an old one has its next turn.
void CtaSet::NextCta() {
  warp_ = nullptr;
  resident_[current_]->slice = kCtaSlice;
  if (AdmitNext()) {
    current_ = resident_.size() - facts_.cluster_size;
  } else {
    current_ = (current_ + 1) % resident_.size();
  }
}

// The cluster that begins at `first` is done: its memory is free. False: one of its CTAs still runs.
bool CtaSet::Retire(size_t first) {
  const auto begin = resident_.begin() + static_cast<ptrdiff_t>(first);
  const auto end = begin + facts_.cluster_size;
  if (std::any_of(begin, end, [](const auto& cta) { return cta->live_threads != 0; })) return false;
  std::move(begin, end, std::back_inserter(spare_));
  resident_.erase(begin, end);
  if (AdmitNext()) {
    current_ = resident_.size() - facts_.cluster_size;
  } else {
    current_ = resident_.empty() ? 0 : first % resident_.size();
  }
  return true;
}

// Makes warp_ one of the CTA that can run.
bool CtaSet::PickWarpOf(Cta& cta) {
  if (cta.live_threads == 0) return false;
  for (uint32_t tried = 0; tried < facts_.warps_per_cta; ++tried) {
    Warp& w = cta.warps[cta.cursor];
    if (w.live != 0 && ((w.mask != 0 && w.limit != nullptr) || Reselect(w))) {
      warp_ = &w;
      return true;
    }
    cta.cursor = (cta.cursor + 1) % facts_.warps_per_cta;
  }
  return false;
}

// Makes warp_ one that can run. False: all is done, or a fault was set.
bool CtaSet::PickWarp() {
  for (;;) {
    if (resident_.empty()) {
      if (!AdmitNext()) return false;
      current_ = 0;
    }
    const size_t first = current_ / facts_.cluster_size * facts_.cluster_size;
    // Where one CTA waits for the others of its cluster, it is their turn.
    for (uint32_t tried = 0; tried < facts_.cluster_size; ++tried) {
      if (PickWarpOf(*resident_[current_])) return true;
      current_ = first + (current_ - first + 1) % facts_.cluster_size;
    }
    if (Retire(first)) continue;
    for (size_t n = first; n < first + facts_.cluster_size; ++n) {
      for (const Warp& w : resident_[n]->warps) {
        if (w.live == 0 || w.split_count == 0) continue;
        const auto lane = static_cast<uint32_t>(std::countr_zero(w.splits[0].mask));
        grid_.SetFault(CuStatus::kLaunchTimeout,
                       grid_.Describe(w, w.splits[0].pc, lane) + ": deadlock, every thread of the " +
                           (facts_.cluster_size == 1 ? "block" : "cluster") + " waits at a barrier");
        return false;
      }
    }
  }
}

CtaSet::~CtaSet() {
  if (!counts_.empty()) facts_.device.profile->Add(*facts_.program->shared, counts_);
}

bool CtaSet::GiveTo(CtaSet& to) {
  const size_t size = facts_.cluster_size;
  if (resident_.size() < 2 * size) return false;
  const size_t last = resident_.size() - size;
  const size_t given = current_ >= last ? last - size : last;
  const auto begin = resident_.begin() + static_cast<ptrdiff_t>(given);
  const auto end = begin + static_cast<ptrdiff_t>(size);
  std::move(begin, end, std::back_inserter(to.resident_));
  resident_.erase(begin, end);
  if (current_ >= last) current_ -= size;
  return true;
}

GpuGrid::Progress CtaSet::Run(const StopWord& stop, uint64_t budget) {
  stop_ = &stop;
  const std::atomic<uint32_t>* word = stop.word;
  const uint32_t expected = stop.expected;
  for (;;) {
    if (grid_.faulted()) return GpuGrid::Progress::kYield;
    if (word->load(std::memory_order_relaxed) != expected) return GpuGrid::Progress::kStopped;
    if (budget == 0) return GpuGrid::Progress::kYield;
    if (warp_ == nullptr && !PickWarp()) {
      if (grid_.faulted()) return GpuGrid::Progress::kYield;
      const bool over = resident_.empty() && grid_.started() == facts_.ctas;
      if (!over && stop.Stopped()) return GpuGrid::Progress::kStopped;
      return short_ && resident_.empty() ? GpuGrid::Progress::kShort : GpuGrid::Progress::kDone;
    }
    Warp& w = *warp_;
    const uint64_t most = count_threads_ ? 1 : std::min(w.slice, budget);
    if (count_threads_) thread_instructions_ += static_cast<uint64_t>(std::popcount(w.mask));
    uint64_t left = most;
    const Inst* i = w.pc;
    if ((facts_.device.profile != nullptr) | (facts_.device.trip != nullptr)) {
      i = RunWatched(w, i, stop, left);
    } else {
      // One condition for all reasons to leave: the split's limit (nullptr after an event), the stop word, the count.
      do {
        i = i->fn(w, i);
        --left;
      } while ((i < w.limit) & (word->load(std::memory_order_relaxed) == expected) & (left != 0));
    }
    w.pc = i;
    const uint64_t ran = most - left;
    executed_ += ran;
    budget -= ran;
    w.slice -= ran;
    if (!grid_.faulted()) AfterRun(w, ran);
  }
}

const Inst* CtaSet::RunWatched(Warp& w, const Inst* i, const StopWord& stop, uint64_t& left) {
  const std::span<const Inst> code = facts_.program->code;
  const bool profiled = facts_.device.profile != nullptr;
  if (profiled) counts_.resize(code.size());
  do {
    const Inst* const at = i;
    const uint64_t before = profiled ? Ticks() : 0;
    i = i->fn(w, i);
    if (profiled) {
      InstructionCount& count = counts_[static_cast<size_t>(at - code.data())];
      count.ticks += Ticks() - before;
      ++count.executed;
    }
    --left;
    if (facts_.device.trip != nullptr) facts_.device.trip->Count();
  } while ((i < w.limit) & (stop.word->load(std::memory_order_relaxed) == stop.expected) & (left != 0));
  return i;
}

void CtaSet::AfterRun(Warp& w, uint64_t ran) {
  Cta& cta = *w.cta;
  cta.slice -= std::min(cta.slice, ran);
  const bool event = !(w.pc < w.limit);
  const bool over = w.slice == 0 || w.yielded;
  if (event || (over && w.split_count != 0)) {
    if (over) w.fairness += kSelectionsPerSlice;
    if (w.yielded) cta.slice -= std::min(cta.slice, kWarpSlice);
    if (!Reselect(w) || over) {
      w.slice = kWarpSlice;
      w.yielded = false;
      cta.cursor = (w.index + 1) % facts_.warps_per_cta;
      warp_ = nullptr;
    }
  } else if (over) {
    w.slice = kWarpSlice;
    cta.cursor = (w.index + 1) % facts_.warps_per_cta;
    warp_ = nullptr;
  }
  if (warp_ == nullptr && cta.slice == 0 && cta.live_threads != 0) NextCta();
}

}  // namespace vgpud::soft
