// SPDX-License-Identifier: Apache-2.0
// A test mode of vgpud-exec (with PreemptDrill): how many warp instructions kernels run after a word of four bytes
// was copied to the device while they did. On the GPU below a CUDA backend (docs/cuda-backend.md, "Nested") that is the
// word that tells rewritten kernels to leave. The log has a line for each kernel that has ended so:
//   word: NAME threads=256 blocks=64 launched=40960 after=1234
// and one for each that ran longer than the same kernel before:
//   longest: NAME threads=256 blocks=64 launched=51200
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gpu/gpu.h"

namespace vgpud::exec {

// The GPU thread.
class WordWatch {
 public:
  // A step of `grid` has ended, which has run `instructions` in all so far.
  void Ran(const GpuGrid* grid, const FunctionInfo& function, const LaunchShape& shape, uint64_t instructions,
           bool done);
  void Wrote();
  // It is gone, and had perhaps not ended.
  void Forget(const GpuGrid* grid) { running_.erase(grid); }

 private:
  struct Running {
    uint64_t instructions = 0, at_word = 0;
    bool word = false;
  };
  std::map<const GpuGrid*, Running> running_;
  std::map<std::string, uint64_t> longest_;
};

}  // namespace vgpud::exec
