// SPDX-License-Identifier: Apache-2.0
// Facts about kernels: attributes, names, parameters, occupancy.
#include <algorithm>

#include "guest-driver-shim/libcuda/module/module.h"

namespace vgpud::cuda {

uint64_t BlocksPerMultiprocessor(const Device& device, const vgpu_function_info& info, int block_threads,
                                 uint64_t dynamic_shared) {
  const auto round_up = [](int value, int to) { return (value + to - 1) / to * to; };
  if (block_threads > static_cast<int>(info.max_threads)) return 0;
  const int warp = std::max(1, device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  const int threads = round_up(block_threads, warp);
  const int slots = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  int fit = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threads;
  if (slots > 0) fit = std::min(fit, slots);
  const int registers = round_up(static_cast<int>(info.registers), 8) * threads;
  const int all_registers = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  if (registers > 0 && all_registers > 0) fit = std::min(fit, all_registers / registers);
  const uint64_t shared = info.static_shared_bytes + uint64_t{dynamic_shared} +
                          static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  const auto all_shared =
      static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  if (shared > 0 && all_shared > 0) fit = static_cast<int>(std::min<uint64_t>(fit, all_shared / shared));
  return static_cast<uint64_t>(fit);
}

uint64_t MostResident(const Device& device, const vgpu_function_info& info, unsigned threads, uint64_t dynamic_shared) {
  return BlocksPerMultiprocessor(device, info, static_cast<int>(threads), dynamic_shared) *
         static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

}  // namespace vgpud::cuda

namespace {

using namespace vgpud::cuda;

CUresult Name(const char** out, const void* handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = kernel->name().c_str();
  return CUDA_SUCCESS;
}

CUresult Parameter(const void* handle, size_t index, size_t* offset, size_t* bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = kernel->On(current.device, &facts)) return error;
  if (index >= facts->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = facts->parameters[index].offset;
  if (bytes != nullptr) *bytes = facts->parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult ActiveBlocks(int* blocks, CUfunction handle, int block_threads, size_t dynamic_shared) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (blocks == nullptr || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = kernel->On(current.device, &facts)) return error;
  *blocks = static_cast<int>(BlocksPerMultiprocessor(*current.device, facts->info, block_threads, dynamic_shared));
  return CUDA_SUCCESS;
}

// Dynamic shared memory of a block of so many threads: what the program's function says, if there is one.
size_t SharedFor(size_t (*shared_of)(int), int threads, size_t shared) {
  if (shared_of == nullptr) return shared;
  const ApiCall::Outside outside;
  return shared_of(threads);
}

CUresult CurrentDevice(Device** out) {
  const Current current = CurrentContext();
  *out = current.device;
  return current.error;
}

// The block size (a multiple of the warp) with most threads on a multiprocessor; the largest of equals.
CUresult BestBlock(int* grid, int* block, CUfunction handle, size_t (*shared_of)(int), size_t shared, int limit) {
  Device* device = nullptr;
  if (const CUresult error = CurrentDevice(&device)) return error;
  if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  const int most = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  const int warp = std::max(1, device->attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  const int top = limit > 0 ? std::min(limit, most) : most;
  int best_threads = 0;
  *grid = *block = 0;
  for (int size = std::max(warp, top / warp * warp); size >= warp; size -= warp) {
    int blocks = 0;
    const int threads = std::min(size, top);
    if (const CUresult error = ActiveBlocks(&blocks, handle, threads, SharedFor(shared_of, threads, shared)))
      return error;
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block = threads;
    *grid = blocks * device->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }
  return CUDA_SUCCESS;
}

CUresult AttributeOf(const void* handle, Device* device, int attribute, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  return kernel != nullptr ? kernel->GetAttribute(device, attribute, value) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CU_API(cuFuncGetName)(const char** out, CUfunction handle) { return Name(out, handle); }
CU_API(cuKernelGetName)(const char** out, CUkernel handle) { return Name(out, handle); }
CU_API(cuFuncGetParamInfo)(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return Parameter(handle, index, offset, bytes);
}
CU_API(cuKernelGetParamInfo)(CUkernel handle, size_t index, size_t* offset, size_t* bytes) {
  return Parameter(handle, index, offset, bytes);
}

CU_API(cuFuncGetAttribute)(int* value, int attribute, CUfunction handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return AttributeOf(handle, current.device, attribute, value);
}
CU_API(cuFuncSetAttribute)(CUfunction handle, int attribute, int value) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto kernel = FindKernel(handle);
  return kernel != nullptr ? kernel->SetAttribute(current.device, attribute, value) : CUDA_ERROR_INVALID_HANDLE;
}
CU_API(cuKernelGetAttribute)(int* value, int attribute, CUkernel handle, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  return AttributeOf(handle, device, attribute, value);
}
CU_API(cuKernelSetAttribute)(int attribute, int value, CUkernel handle, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  const auto kernel = FindKernel(handle);
  return kernel != nullptr ? kernel->SetAttribute(device, attribute, value) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API(cuFuncSetCacheConfig)(CUfunction handle, int) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return FindKernel(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CU_API(cuKernelSetCacheConfig)(CUkernel handle, int, CUdevice) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return FindKernel(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// A handle is given out when the device has found the function, so there is none that is not loaded.
CU_API(cuFuncIsLoaded)(int* state, CUfunction handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (FindKernel(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
CU_API(cuFuncLoad)(CUfunction handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return FindKernel(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CU_API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CUfunction handle, int threads, size_t shared) {
  return ActiveBlocks(blocks, handle, threads, shared);
}
CU_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int* blocks, CUfunction handle, int threads, size_t shared, unsigned flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return ActiveBlocks(blocks, handle, threads, shared);
}
CU_API(cuOccupancyMaxPotentialBlockSize)
(int* grid, int* block, CUfunction handle, size_t (*shared_of)(int), size_t shared, int limit) {
  return BestBlock(grid, block, handle, shared_of, shared, limit);
}
CU_API(cuOccupancyMaxPotentialBlockSizeWithFlags)
(int* grid, int* block, CUfunction handle, size_t (*shared_of)(int), size_t shared, int limit, unsigned flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return BestBlock(grid, block, handle, shared_of, shared, limit);
}
CU_API(cuOccupancyAvailableDynamicSMemPerBlock)(size_t* bytes, CUfunction handle, int blocks, int threads) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = kernel->On(current.device, &facts)) return error;
  const int64_t share = current.device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / blocks -
                        current.device->attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) -
                        int64_t{facts->info.static_shared_bytes};
  const int64_t most = current.device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  *bytes = static_cast<size_t>(std::clamp<int64_t>(share, 0, most));
  return CUDA_SUCCESS;
}
