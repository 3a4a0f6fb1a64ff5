// SPDX-License-Identifier: Apache-2.0
// Pinned allocations of a context that is being read back: each has exactly one owner, which must ask for it.
#pragma once

#include <cstdint>
#include <map>

#include "base/ids.h"
#include "gpu/soft/memory/arena.h"

namespace vgpud::soft {

class PinnedBlocks {
 public:
  explicit PinnedBlocks(const Arena& arena) : left_(arena.Pinned()) {}
  // False: there is no such allocation, or somebody has it.
  bool Take(GpuVa address, uint64_t asked) {
    const auto it = left_.find(Raw(address));
    if (it == left_.end() || it->second != asked) return false;
    left_.erase(it);
    return true;
  }
  bool all_taken() const { return left_.empty(); }

 private:
  std::map<uint64_t, uint64_t> left_;  // address -> bytes
};

}  // namespace vgpud::soft
