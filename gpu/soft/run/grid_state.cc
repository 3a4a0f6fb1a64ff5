// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/grid.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {
namespace {
constexpr uint64_t kMostSets = 256;
}  // namespace

void Grid::Save(StateWriter& out) const {
  out.Put<uint64_t>(next_cta_);
  out.Put<uint64_t>(sets_.size());
  for (const auto& set : sets_) set->Save(out);
}

void Grid::Load(StateReader& in) {
  const auto started = in.GetUpTo<uint64_t>(facts_.ctas, "number of started blocks");
  const auto sets = in.GetUpTo<uint64_t>(kMostSets, "number of sets of blocks");
  if (sets == 0) in.Bad("number of sets of blocks", 0);
  if (started % facts_.cluster_size != 0) in.Bad("number of started blocks", started);
  next_cta_ = started;
  for (uint64_t n = 0; n < sets && in.ok(); ++n) {
    if (n != 0) sets_.push_back(std::make_unique<CtaSet>(*this, facts_));
    sets_.back()->Load(in, started);
  }
  if (sets_.size() == 1) return;
  for (const auto& set : sets_) waiting_.push_back(set.get());
}

}  // namespace vgpud::soft
