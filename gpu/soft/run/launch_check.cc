// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/launch_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace vgpud::soft {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

// By the rules of the CUDA C++ Programming Guide, "Thread Block Clusters".
GpuResult<void> CheckCluster(const FunctionInfo& kernel, const LaunchShape& shape) {
  const auto bad = [&](const std::string& why) {
    return GpuFail(CuStatus::kInvalidClusterSize, fmt::format("launch of {}: {}", kernel.name, why));
  };
  const uint32_t* asked = shape.cluster;
  const uint32_t* own = kernel.cluster;
  if (asked[0] == 0 && own[0] == 0)
    return kernel.needs_cluster ? bad("the kernel can't be launched without the size of its clusters")
                                : GpuResult<void>{};
  if (asked[0] != 0 && own[0] != 0 && !std::equal(asked, asked + 3, own))
    return bad(fmt::format("clusters of {}x{}x{} blocks, the kernel was built for {}x{}x{}", asked[0], asked[1],
                           asked[2], own[0], own[1], own[2]));
  const uint32_t* size = asked[0] != 0 ? asked : own;
  uint64_t blocks = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    if (size[d] == 0 || size[d] > kMostClusterCtas)
      return bad(fmt::format("{} blocks of a cluster in dimension {}, allowed 1..{}", size[d], d, kMostClusterCtas));
    if (shape.grid[d] % size[d] != 0)
      return bad(
          fmt::format("{} blocks in dimension {}, not a multiple of the cluster's {}", shape.grid[d], d, size[d]));
    blocks *= size[d];
  }
  const uint32_t limit = kernel.most_cluster_blocks;
  const uint32_t most = limit != 0 ? std::min(limit, kMostClusterCtas) : kMostClusterCtas;
  if (blocks > most) return bad(fmt::format("{} blocks in a cluster, at most {}", blocks, most));
  return {};
}

}  // namespace

std::array<uint32_t, 3> ClusterOf(const CodeFunction& function, const LaunchShape& shape) {
  const uint32_t* size = shape.cluster[0] != 0 ? shape.cluster : function.info.cluster;
  return size[0] != 0 ? std::array<uint32_t, 3>{size[0], size[1], size[2]} : std::array<uint32_t, 3>{1, 1, 1};
}

bool IsExplicitCluster(const CodeFunction& function, const LaunchShape& shape) {
  return shape.cluster[0] != 0 || function.info.cluster[0] != 0;
}

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
  if (auto r = CheckCluster(function.info, shape); !r) return r;
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
