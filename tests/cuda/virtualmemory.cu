// Virtual memory management: reserved addresses that get memory piece by piece, as growing arrays and allocators of
// frameworks use it. What is mapped is memory for kernels, copies and sets; contents stay while it has no address.
// usage: virtualmemory
#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "driver_call.h"

namespace {

extern "C" __global__ void count_up(unsigned* at, size_t count, unsigned first) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) at[i] = first + i;
}

#define DRIVER(name) const auto name##_ = driver<decltype(name)>(#name)

}  // namespace

int main() {
  int possible = 0;
  constexpr auto kPossible = static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  CUDA_CHECK(cudaDeviceGetAttribute(&possible, kPossible, 0));
  if (possible == 0) {
    std::printf("virtualmemory: SKIPPED, this device can't map memory to addresses\n");
    return 0;
  }
  CUDA_CHECK(cudaFree(nullptr));
  DRIVER(cuMemGetAllocationGranularity);
  DRIVER(cuMemAddressReserve);
  DRIVER(cuMemAddressFree);
  DRIVER(cuMemCreate);
  DRIVER(cuMemRelease);
  DRIVER(cuMemMap);
  DRIVER(cuMemUnmap);
  DRIVER(cuMemSetAccess);
  DRIVER(cuMemGetAccess);

  CUmemAllocationProp device = {};
  device.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  device.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  device.location.id = 0;
  const CUmemAccessDesc all = {device.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUmemAccessDesc none = {device.location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  size_t grain = 0;
  expect("granularity", cuMemGetAllocationGranularity_(&grain, &device, CU_MEM_ALLOC_GRANULARITY_MINIMUM), 0);

  // More addresses than the device has memory, then an array that grows without moving.
  constexpr int kPieces = 4;
  unsigned* once = nullptr;  // a first launch may take memory of its own, for code or for what its threads keep
  CUDA_CHECK(cudaMalloc(&once, 4096));
  count_up<<<4, 128>>>(once, 1, 0);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  size_t free_before = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_before, &total));
  const size_t reserved = (total / grain + 1) * grain * 2;
  CUdeviceptr base = 0;
  expect("reserve", cuMemAddressReserve_(&base, reserved, 0, 0, 0), 0);
  CUmemGenericAllocationHandle pieces[kPieces];
  const size_t words = grain / sizeof(unsigned);
  for (int i = 0; i < kPieces; ++i) {
    expect("create", cuMemCreate_(&pieces[i], grain, &device, 0), 0);
    expect("map", cuMemMap_(base + i * grain, grain, 0, pieces[i], 0), 0);
    expect("access", cuMemSetAccess_(base + i * grain, grain, &all, 1), 0);
    count_up<<<4, 128>>>(reinterpret_cast<unsigned*>(base), (i + 1) * words, i);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  size_t free_now = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_now, &total));
  expect("memory taken", static_cast<long long>(free_before - free_now), static_cast<long long>(kPieces * grain));
  std::vector<unsigned> seen(kPieces * words);
  CUDA_CHECK(cudaMemcpy(seen.data(), reinterpret_cast<void*>(base), seen.size() * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i] != i + kPieces - 1) {
      expect("counted", seen[i], static_cast<long long>(i + kPieces - 1));
      break;
    }
  CUDA_CHECK(cudaMemset(reinterpret_cast<void*>(base + grain - 4), 0x11, 8));
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(base + 100)));
  expect("kind", attributes.type, cudaMemoryTypeDevice);

  // The second piece goes, comes back elsewhere, and is as it was.
  expect("unmap", cuMemUnmap_(base + grain, grain), 0);
  expect("copy from nothing", cudaMemcpy(seen.data(), reinterpret_cast<void*>(base + grain), 4, cudaMemcpyDefault),
         cudaErrorInvalidValue);
  (void)cudaGetLastError();
  const CUdeviceptr elsewhere = base + 100 * grain;
  expect("map elsewhere", cuMemMap_(elsewhere, grain, 0, pieces[1], 0), 0);
  unsigned long long flags = 99;
  expect("get access", cuMemGetAccess_(&flags, &device.location, elsewhere), 0);
  expect("no access yet", static_cast<long long>(flags), CU_MEM_ACCESS_FLAGS_PROT_NONE);
  expect("access", cuMemSetAccess_(elsewhere, grain, &all, 1), 0);
  CUDA_CHECK(cudaMemcpy(seen.data(), reinterpret_cast<void*>(elsewhere), grain, cudaMemcpyDefault));
  expect("contents", seen[0], 0x11111111);
  expect("contents", seen[words - 1], static_cast<long long>(2 * words - 1 + kPieces - 1));
  expect("no access any more", cuMemSetAccess_(elsewhere, grain, &none, 1), 0);
  expect("copy without access",
         cudaMemcpy(seen.data(), reinterpret_cast<void*>(elsewhere), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  expect("access again", cuMemSetAccess_(elsewhere, grain, &all, 1), 0);
  seen[0] = 0;
  CUDA_CHECK(cudaMemcpy(seen.data(), reinterpret_cast<void*>(elsewhere), 4, cudaMemcpyDefault));
  expect("contents again", seen[0], 0x11111111);

  expect("in use", cuMemAddressFree_(base, reserved), CUDA_ERROR_INVALID_VALUE);
  for (const CUmemGenericAllocationHandle piece : pieces) expect("release", cuMemRelease_(piece), 0);
  expect("released twice", cuMemRelease_(pieces[0]), CUDA_ERROR_INVALID_VALUE);
  expect("unmap all of it", cuMemUnmap_(base, grain), 0);
  expect("unmap two", cuMemUnmap_(base + 2 * grain, 2 * grain), 0);
  expect("unmap a part", cuMemUnmap_(elsewhere, grain / 2), CUDA_ERROR_INVALID_VALUE);
  expect("unmap", cuMemUnmap_(elsewhere, grain), 0);
  expect("free", cuMemAddressFree_(base, reserved), 0);
  CUDA_CHECK(cudaMemGetInfo(&free_now, &total));
  expect("memory given back", static_cast<long long>(free_before - free_now), 0);
  CUDA_CHECK(cudaFree(once));
  std::printf("virtualmemory: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
