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
  CUresult error = CUDA_SUCCESS;
  const auto x = static_cast<uint64_t>(Attribute(device, kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &error));
  const auto y = static_cast<uint64_t>(Attribute(device, kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &error));
  const auto z = static_cast<uint64_t>(Attribute(device, kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &error));
  if (error != CUDA_SUCCESS) return error;
  *blocks = 0;
  if (x == 0 && y == 0 && z == 0) return CUDA_SUCCESS;
  if (x == 0 || y == 0 || z == 0 || __builtin_mul_overflow(x * y, z, blocks)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
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
