// SPDX-License-Identifier: Apache-2.0
// What a node was told to do, kept so that a program can read it back. What a program is given pointers to never
// changes and lives as long as the node has it.
#pragma once

#include <cstddef>
#include <variant>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

struct EmbeddedGraph;
struct ConditionalParams;  // conditional.h

// Launch attributes that have been set, by CUlaunchAttributeID.
using AttributeValue = std::array<unsigned char, sizeof CUlaunchAttribute_st::value>;
using LaunchAttributes = std::map<int, AttributeValue>;

struct KernelParams {
  KernelParams() = default;
  KernelParams(const KernelParams&) = delete;

  CUDA_KERNEL_NODE_PARAMS_v2_st told{};  // kernelParams or extra lead into what follows
  LaunchAttributes attributes;
  std::string name;
  Command command;
  std::vector<std::byte> payload;  // struct vgpu_launch and the parameters
  std::vector<void*> pointers;     // kernelParams
  size_t parameter_bytes = 0;
  std::array<void*, 5> extra{};
};

struct AllocParams {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st told{};  // accessDescs leads into `access`
  std::vector<CUmemAccessDesc_st> access;
};

struct FreeParams {
  CUdeviceptr address;
};

// Nothing of what a program cannot read.
using NodeParams =
    std::variant<std::monostate, std::shared_ptr<const KernelParams>, CUDA_MEMCPY3D_st, CUDA_MEMSET_NODE_PARAMS_st,
                 CUDA_HOST_NODE_PARAMS_st, std::shared_ptr<EmbeddedGraph>, CUevent, std::shared_ptr<const AllocParams>,
                 FreeParams, std::shared_ptr<const ConditionalParams>>;

}  // namespace vgpud::cuda
