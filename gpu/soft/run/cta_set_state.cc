// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "gpu/soft/run/cta_set.h"
#include "gpu/soft/run/grid.h"
#include "gpu/soft/run/warp_state.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {
namespace {

// What a reader keeps for the CTAs of one set.
constexpr uint64_t kMostBytes = uint64_t{4} << 30;

constexpr uint32_t Barrier::*const kCounts[] = {&Barrier::arrived, &Barrier::expected, &Barrier::count,
                                                &Barrier::voters};

}  // namespace

void CtaSet::SaveCta(StateWriter& out, const Cta& cta) const {
  out.Put(cta.order);
  out.Put(cta.cursor);
  out.Put(cta.slice);
  for (const Barrier& barrier : cta.barriers)
    for (const auto count : kCounts) out.Put(barrier.*count);
  out.PutSparse({cta.shared, facts_.layout.shared});
  if (facts_.layout.tensor != 0) {
    out.Put(cta.tensor.used);
    out.Put(cta.tensor.first);
    out.Put<uint8_t>(cta.tensor.relinquished ? 1 : 0);
    out.PutSparse({cta.tensor.bytes, facts_.layout.tensor});
  }
  for (const Warp& w : cta.warps) SaveWarp(out, w, *facts_.program);
}

void CtaSet::LoadCta(StateReader& in, Cta& cta, uint64_t started) const {
  const auto order = in.Get<uint64_t>();
  if (order >= started) in.Bad("block", order);
  if (!in.ok()) return;
  Start(cta, order);
  cta.cursor = in.GetUpTo<uint32_t>(facts_.warps_per_cta - 1, "warp of a block");
  cta.slice = in.GetUpTo<uint64_t>(kCtaSlice, "slice of a block");
  for (Barrier& barrier : cta.barriers)
    for (const auto count : kCounts) barrier.*count = in.Get<uint32_t>();
  in.GetSparse({cta.shared, facts_.layout.shared}, "page of shared memory");
  if (facts_.layout.tensor != 0) {
    cta.tensor.used = in.Get<uint16_t>();
    cta.tensor.first = in.Get<uint16_t>();
    if ((cta.tensor.first & ~cta.tensor.used) != 0) in.Bad("allocation of tensor memory", cta.tensor.first);
    cta.tensor.relinquished = in.GetBool("permit of tensor memory");
    in.GetSparse({cta.tensor.bytes, facts_.layout.tensor}, "page of tensor memory");
  }
  cta.live_threads = 0;
  for (Warp& w : cta.warps) {
    if (!in.ok()) return;
    const uint32_t lanes = w.live;  // as it started
    LoadWarp(in, w, *facts_.program, facts_.function, lanes);
    cta.live_threads += static_cast<uint32_t>(std::popcount(w.live));
  }
}

// The CTAs from `first` on were read: they must be a cluster.
void CtaSet::LoadCluster(StateReader& in, size_t first) {
  const uint64_t order = resident_[first]->order;
  uint32_t arrived = 0;
  for (size_t n = 0; n < facts_.cluster_size; ++n) {
    const Cta& cta = *resident_[first + n];
    if (cta.order != order + n || order % facts_.cluster_size != 0) in.Bad("block of a cluster", cta.order);
    for (const Warp& w : cta.warps) arrived += static_cast<uint32_t>(std::popcount(w.at_cluster));
  }
  JoinCluster(first);
  resident_[first]->cluster_arrived = arrived;
}

void CtaSet::Save(StateWriter& out) const {
  out.Put(executed_);
  out.Put<uint64_t>(current_);
  out.Put<uint32_t>(warp_ == nullptr ? 0 : warp_->index + 1);
  out.Put<uint64_t>(resident_.size());
  for (const auto& cta : resident_) SaveCta(out, *cta);
}

void CtaSet::Load(StateReader& in, uint64_t started) {
  executed_ = in.Get<uint64_t>();
  const auto current = in.Get<uint64_t>();
  const auto warp = in.GetUpTo<uint32_t>(facts_.warps_per_cta, "current warp");
  const auto most = facts_.workspace ? facts_.ctas : uint64_t{kMaxResidentCtas};
  const auto count =
      in.GetUpTo<uint64_t>(std::min(most, kMostBytes / facts_.layout.bytes), "number of resident blocks");
  if (count % facts_.cluster_size != 0) return in.Bad("number of resident blocks", count);
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    auto cta = MakeCta();
    if (cta == nullptr)
      return in.Fail({CuStatus::kOutOfMemory, "saved context: no host memory for the state of a block"});
    LoadCta(in, *cta, started);
    resident_.push_back(std::move(cta));
    if (resident_.size() % facts_.cluster_size == 0) LoadCluster(in, resident_.size() - facts_.cluster_size);
  }
  if (current >= count && (current != 0 || warp != 0)) in.Bad("current block", current);
  if (!in.ok()) return;
  current_ = static_cast<size_t>(current);
  if (warp == 0) return;
  warp_ = &resident_[current_]->warps[warp - 1];
  if (warp_->mask == 0) in.Bad("current warp", warp);
}

}  // namespace vgpud::soft
