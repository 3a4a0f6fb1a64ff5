// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks: which sizes the device takes, and how many of them at once.
#include <cstring>

#include "guest-driver-shim/libcuda/module/module.h"

namespace vgpud::cuda {
namespace {

constexpr int kPortableBlocks = 8;
constexpr int kMostBlocks = 16;

int Attribute(Device* device, Kernel* kernel, int attribute, CUresult* error) {
  int value = 0;
  if (const CUresult failed = kernel->GetAttribute(device, attribute, &value)) *error = failed;
  return value;
}

// Zeros: it asks for none.
CUresult RequiredDimensions(Device* device, Kernel* kernel, std::array<uint32_t, 3>* out) {
  CUresult error = CUDA_SUCCESS;
  for (int d = 0; d < 3; ++d)
    (*out)[d] = static_cast<uint32_t>(Attribute(device, kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + d, &error));
  return error;
}

CUresult BlocksOf(const std::array<uint32_t, 3>& cluster, uint64_t* blocks) {
  const auto [x, y, z] = cluster;
  *blocks = 0;
  if (x == 0 && y == 0 && z == 0) return CUDA_SUCCESS;
  if (x == 0 || y == 0 || z == 0 || __builtin_mul_overflow(uint64_t{x} * y, uint64_t{z}, blocks))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

// The cluster that a launch asks for, 0 if it doesn't say.
uint64_t ClusterOf(const CUlaunchConfig_st& config) {
  uint64_t blocks = 0;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    uint32_t size[3];
    memcpy(size, config.attrs[i].value, sizeof size);
    if (__builtin_mul_overflow(uint64_t{size[0]} * size[1], uint64_t{size[2]}, &blocks)) blocks = UINT64_MAX;
  }
  return blocks;
}

// A launch that somebody asks about: what it is of, and of how many threads.
struct Question {
  Current current;
  std::shared_ptr<Kernel> kernel;
  std::shared_ptr<const KernelOnDevice> facts;
  uint64_t threads = 0;
  uint64_t required = 0;  // blocks per cluster that the kernel asks for itself
  int largest = 1;
};

CUresult Understand(const void* out, CUfunction handle, const CUlaunchConfig_st* config, Question* q) {
  q->current = CurrentContext();
  if (q->current.error != CUDA_SUCCESS) return q->current.error;
  if (out == nullptr || config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  q->kernel = FindKernel(handle);
  if (q->kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Device* device = q->current.device;
  if (const CUresult error = q->kernel->On(device, &q->facts)) return error;
  if (__builtin_mul_overflow(uint64_t{config->blockDimX} * config->blockDimY, uint64_t{config->blockDimZ},
                             &q->threads) ||
      q->threads == 0 ||
      q->threads > static_cast<unsigned>(device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult error = RequiredCluster(device, q->kernel.get(), &q->required);
  q->largest = LargestCluster(
      *device, Attribute(device, q->kernel.get(), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &error) != 0);
  return error;
}

}  // namespace

int LargestCluster(const Device& device, bool non_portable) {
  if (device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return 1;
  return non_portable ? kMostBlocks : kPortableBlocks;
}

CUresult RequiredCluster(Device* device, Kernel* kernel, uint64_t* blocks) {
  std::array<uint32_t, 3> dimensions;
  if (const CUresult error = RequiredDimensions(device, kernel, &dimensions)) return error;
  return BlocksOf(dimensions, blocks);
}

CUresult ChooseCluster(Device* device, Kernel* kernel, const vgpu_function_info& info, const unsigned (&grid)[3],
                       std::array<uint32_t, 3>* cluster) {
  const std::array<uint32_t, 3> none{};
  std::array<uint32_t, 3> required = none;
  if (info.cluster != 0 || kernel->asks_for_cluster()) {
    if (const CUresult error = RequiredDimensions(device, kernel, &required)) return error;
  }
  if (*cluster != none && required != none && *cluster != required) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (*cluster == none) *cluster = required;
  if (*cluster == none) {
    return (info.flags & VGPU_FUNCTION_CLUSTER_MUST_BE_SET) != 0 ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
  }
  uint64_t blocks;
  if (const CUresult error = BlocksOf(*cluster, &blocks)) return error;
  const bool possible = device->attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0 &&
                        (device->channel->transport().info().features & VGPU_FEATURE_CLUSTERS) != 0;
  if (blocks > 1 && !possible) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult error = CUDA_SUCCESS;
  const bool non_portable = Attribute(device, kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &error) != 0;
  if (error != CUDA_SUCCESS) return error;
  if (blocks > static_cast<unsigned>(LargestCluster(*device, non_portable))) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (int d = 0; d < 3; ++d) {
    if (grid[d] % (*cluster)[d] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuOccupancyMaxPotentialClusterSize)(int* blocks, CUfunction handle, const CUlaunchConfig_st* config) {
  Question q;
  if (const CUresult error = Understand(blocks, handle, config, &q)) return error;
  const bool fits =
      MostResident(*q.current.device, q.facts->info, static_cast<unsigned>(q.threads), config->sharedMemBytes) > 0;
  if (q.required > static_cast<unsigned>(q.largest)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *blocks = !fits ? 0 : q.required != 0 ? static_cast<int>(q.required) : q.largest;
  return CUDA_SUCCESS;
}

CU_API(cuOccupancyMaxActiveClusters)(int* clusters, CUfunction handle, const CUlaunchConfig_st* config) {
  Question q;
  if (const CUresult error = Understand(clusters, handle, config, &q)) return error;
  const uint64_t asked = ClusterOf(*config);
  if (asked != 0 && q.required != 0 && asked != q.required) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const uint64_t size = q.required != 0 ? q.required : asked;
  if (size == 0 || size > static_cast<unsigned>(q.largest)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *clusters = static_cast<int>(
      MostResident(*q.current.device, q.facts->info, static_cast<unsigned>(q.threads), config->sharedMemBytes) / size);
  return CUDA_SUCCESS;
}
