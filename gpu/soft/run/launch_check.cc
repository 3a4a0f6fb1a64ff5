// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/launch_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace vgpud::soft {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

}  // namespace

GpuResult<void> CheckLaunch(const ComputeCapability& capability, const CodeFunction& function, const LaunchShape& shape,
                            uint32_t max_dynamic_shared) {
  const auto bad = [&](CuStatus status, const std::string& why) {
    return GpuFail(status, fmt::format("launch of {}: {}", function.info.name, why));
  };
  if (function.error) return bad(CuStatus::kIllegalInstruction, function.error->text);
  uint64_t threads = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    if (shape.grid[d] == 0 || shape.grid[d] > kMaxGrid[d])
      return bad(CuStatus::kInvalidValue,
                 fmt::format("grid dimension {} is {}, allowed 1..{}", d, shape.grid[d], kMaxGrid[d]));
    if (shape.block[d] == 0 || shape.block[d] > kMaxBlock[d])
      return bad(CuStatus::kInvalidValue,
                 fmt::format("block dimension {} is {}, allowed 1..{}", d, shape.block[d], kMaxBlock[d]));
    threads *= shape.block[d];
    if (function.required_threads[d] != 0 && function.required_threads[d] != shape.block[d])
      return bad(CuStatus::kInvalidValue,
                 fmt::format("block dimension {} must be {}", d, function.required_threads[d]));
  }
  if (threads > kMaxThreads)
    return bad(CuStatus::kInvalidValue, fmt::format("{} threads in a block, at most {}", threads, kMaxThreads));
  if (threads > function.info.max_threads)
    return bad(CuStatus::kLaunchOutOfResources,
               fmt::format("{} threads in a block, the kernel was built for {}", threads, function.info.max_threads));
  const uint32_t room = capability.shared_per_block - std::min(function.shared_bytes, capability.shared_per_block);
  const uint32_t most = std::min(room, max_dynamic_shared);
  if (function.shared_bytes > capability.shared_per_block || shape.dynamic_shared > most)
    return bad(CuStatus::kInvalidValue,
               fmt::format("{} bytes of dynamic shared memory, at most {} beside {} static ones", shape.dynamic_shared,
                           most, function.shared_bytes));
  return {};
}

}  // namespace vgpud::soft
