// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/kernel_length.h"

#include <algorithm>

#include "base/checked.h"

namespace vgpud::driver {

void KernelLength::Note(uint64_t ns, uint64_t blocks) {
  blocks = std::max<uint64_t>(blocks, 1);
  if (ns < ns_ && blocks >= blocks_) ns = ns_ - (ns_ - ns) / 8;
  ns_ = std::max(ns, blocks < blocks_ ? ns_ : 0);
  blocks_ = std::max(blocks, blocks_);
}

std::optional<uint64_t> KernelLength::Expect(uint64_t blocks) const {
  if (blocks_ == 0) return std::nullopt;
  const uint64_t times = std::max<uint64_t>(1, blocks / blocks_ + (blocks % blocks_ != 0 ? 1 : 0));
  return (CheckedSize(ns_) * times).saturated();
}

}  // namespace vgpud::driver
