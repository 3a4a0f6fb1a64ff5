// SPDX-License-Identifier: Apache-2.0
// Policy `relaxed`: as `strict`, but a turn is not ended by force: the kernel that runs at its end may finish, and
// what it takes longer is debt like any other. For comparison, and for guests whose kernels are short: a VF with
// endless kernels holds the GPU until the finish deadline of the world switch.
#pragma once

#include "sched/strict.h"

namespace vgpud {

class RelaxedPolicy final : public StrictPolicy {
 public:
  using StrictPolicy::StrictPolicy;
  bool Forced() const override { return false; }
  std::optional<Ns> WakeBound(std::span<const VfView>, VfId) const override { return std::nullopt; }
};

}  // namespace vgpud
