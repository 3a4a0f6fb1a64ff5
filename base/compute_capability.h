// SPDX-License-Identifier: Apache-2.0
// The compute capabilities that the soft GPU can have, and what differs between them (CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

struct ComputeCapability {
  std::string_view name;  // "9.0"
  uint32_t number;        // 90, as in sm_90
  uint32_t threads_per_multiprocessor;
  uint32_t blocks_per_multiprocessor;
  uint32_t shared_per_multiprocessor;
  uint32_t shared_per_block;  // static and dynamic, of a kernel that asks for it
  uint32_t reserved_shared;   // of each block, beside that
  bool clusters;              // clusters of blocks can be launched
};

inline constexpr ComputeCapability kComputeCapabilities[] = {
    {"7.5", 75, 1024, 16, 64 << 10, 64 << 10, 0, false},
    {"8.0", 80, 2048, 32, 164 << 10, 163 << 10, 1 << 10, false},
    {"8.6", 86, 1536, 16, 100 << 10, 99 << 10, 1 << 10, false},
    {"8.9", 89, 1536, 24, 100 << 10, 99 << 10, 1 << 10, false},
    {"9.0", 90, 2048, 32, 228 << 10, 227 << 10, 1 << 10, true},
    {"10.0", 100, 2048, 32, 228 << 10, 227 << 10, 1 << 10, true},
    {"12.0", 120, 1536, 24, 100 << 10, 99 << 10, 1 << 10, true},
    {"12.1", 121, 1536, 24, 100 << 10, 99 << 10, 1 << 10, true},
};
inline constexpr const ComputeCapability& kDefaultCapability = kComputeCapabilities[0];

// The one of that name. EINVAL: the text says which there are.
[[nodiscard]] Result<const ComputeCapability*> FindComputeCapability(std::string_view name);
// "7.5, 8.0, ..."
std::string ListComputeCapabilities();
// 90 -> "9.0"
std::string CapabilityName(uint32_t number);

}  // namespace vgpud
