// SPDX-License-Identifier: Apache-2.0
// The four kernels that the speed of the soft GPU is measured by, with the sizes of tests/cuda, ready to launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/soft/run/grid.h"
#include "gpu/soft/soft_gpu.h"

namespace vgpud::bench {

// What the kernels compute on.
inline constexpr uint32_t kVectorCount = 300007;
inline constexpr uint32_t kRows = 192;
inline constexpr uint32_t kColumns = 128;
inline constexpr uint32_t kDepth = 160;
inline constexpr uint32_t kReduceCount = 400003;
inline constexpr uint32_t kReduceBlocks = 24;
inline constexpr uint32_t kCollatzCount = 40001;

[[noreturn]] void Die(const std::string& why);

// A soft GPU with one kernel of tests/cuda/ptx on it, and its input: everything is the float 1.0.
class Machine {
 public:
  // `kernel`: vectoradd, matmul, reduction or collatz, from `folder`/`kernel`.ptx.
  Machine(const std::string& folder, const std::string& kernel, uint32_t threads);
  std::unique_ptr<GpuGrid> Launch();
  // Runs to the end.
  void Finish(GpuGrid& grid) const;
  // Counts, in a run of its own: {warp instructions, lanes that are active in them}.
  struct Count {
    uint64_t warp;
    uint64_t thread;
  };
  Count CountInstructions();
  // The output as 32-bit words, `words` of them.
  std::vector<uint32_t> Output(size_t words);

 private:
  uint64_t Alloc(uint64_t bytes);

  soft::SoftGpu gpu_;
  std::unique_ptr<GpuModule> module_;
  const FunctionInfo* function_ = nullptr;
  LaunchShape shape_{};
  std::vector<uint64_t> params_;
  uint64_t output_ = 0;
  std::atomic<uint32_t> word_{0};
};

}  // namespace vgpud::bench
