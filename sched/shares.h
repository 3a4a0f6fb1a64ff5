// SPDX-License-Identifier: Apache-2.0
// What VFs are entitled to, as a pure function of what is configured and of who has work. The rotation reaches these
// shares without knowing them; accounts, previews of a change and tests compare with them.
#pragma once

#include <span>
#include <vector>

#include "sched/options.h"
#include "sched/types.h"

namespace vgpud {

// Shares of the VFs that take part (runnable; with WhenIdle::kHold all that are not paused) by priority class, group
// and slice. `base_slice`: slice of weight 100. `out`, as long as `vfs`: parts of the sum, which is
// returned; 0 = takes no part.
uint64_t TreeShares(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice, std::span<uint64_t> out);

// The same with guarantees and limits: first the guarantee of each runnable VF, then the rest as by TreeShares among
// those that are below their limit. Parts of kShareWhole, which is returned if anybody is runnable; the sum is less
// when all runnable VFs are at their limits.
inline constexpr uint64_t kShareWhole = uint64_t{1} << 40;
// `scratch` is for a caller that asks often, to keep.
struct ShareScratch {
  std::vector<VfView> open;
  std::vector<uint64_t> tree;
  std::vector<double> share;
};
uint64_t ReserveShares(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice,
                       std::span<uint64_t> out, ShareScratch& scratch);

}  // namespace vgpud
