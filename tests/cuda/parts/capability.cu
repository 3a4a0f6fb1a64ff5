// What a program sees of the compute capability that the GPU was given: `capability MAJOR MINOR ARCH`, ARCH being the
// __CUDA_ARCH__ of the code that should have been chosen.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdlib>
#include <vector>

#include "tests/cuda/check.h"

namespace cg = cooperative_groups;

__global__ void ArchOf(int* out) {
#ifdef __CUDA_ARCH__
  *out = __CUDA_ARCH__;
#endif
}

// Every thread writes its words of all the shared memory of the block, another one adds them up.
__global__ void FillShared(unsigned words, unsigned long long* sum) {
  extern __shared__ unsigned dynamic[];
  __shared__ unsigned fixed[64];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) dynamic[i] = i;
  for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) fixed[i] = 1;
  __syncthreads();
  unsigned long long mine = 0;
  const unsigned other = blockDim.x - 1 - threadIdx.x;
  for (unsigned i = other; i < words; i += blockDim.x) mine += dynamic[i];
  for (unsigned i = other; i < 64; i += blockDim.x) mine += fixed[i];
  atomicAdd(sum, mine);
}

// A group of several warps: from 8.0 on it meets in the shared memory that the system has reserved.
__global__ void SumOfTiles(unsigned* out) {
  __shared__ cg::block_tile_memory<256> scratch;
  auto block = cg::this_thread_block(scratch);
  auto tile = cg::tiled_partition<64>(block);
  const unsigned sum = cg::reduce(tile, threadIdx.x, cg::plus<unsigned>());
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
}

int Attribute(cudaDeviceAttr attribute) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, 0));
  return value;
}

#define EXPECT(what)                                                    \
  do {                                                                  \
    if (!(what)) {                                                      \
      std::printf("capability: FAILED line %d: %s\n", __LINE__, #what); \
      return 1;                                                         \
    }                                                                   \
  } while (0)

int main(int argc, char** argv) {
  EXPECT(argc == 4);
  cudaDeviceProp device;
  CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  EXPECT(device.major == std::atoi(argv[1]) && device.minor == std::atoi(argv[2]));

  int* arch;
  CUDA_CHECK(cudaMallocManaged(&arch, sizeof *arch));
  ArchOf<<<1, 1>>>(arch);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT(*arch == std::atoi(argv[3]));
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, ArchOf));
  EXPECT(attributes.ptxVersion == *arch / 10);
  EXPECT(attributes.binaryVersion == 10 * device.major + device.minor);

  const auto most = static_cast<unsigned>(device.sharedMemPerBlockOptin) - 64 * sizeof(unsigned);
  EXPECT(device.sharedMemPerMultiprocessor == device.sharedMemPerBlockOptin + device.reservedSharedMemPerBlock);
  CUDA_CHECK(cudaFuncSetAttribute(FillShared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
  EXPECT(cudaFuncSetAttribute(FillShared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most) + 4) ==
         cudaErrorInvalidValue);
  cudaGetLastError();
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, FillShared, 256, most));
  EXPECT(blocks == 1);
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, ArchOf, 32, 0));
  EXPECT(blocks == Attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
  unsigned long long* sum;
  CUDA_CHECK(cudaMallocManaged(&sum, sizeof *sum));
  *sum = 0;
  const unsigned words = most / sizeof(unsigned);
  FillShared<<<3, 256, most>>>(words, sum);
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT(*sum == 3 * (uint64_t{words} * (words - 1) / 2 + 64));
  FillShared<<<1, 256, most + 4>>>(words, sum);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);

  unsigned* tiles;
  CUDA_CHECK(cudaMallocManaged(&tiles, 4 * sizeof *tiles));
  SumOfTiles<<<1, 256>>>(tiles);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (unsigned t = 0; t < 4; ++t) EXPECT(tiles[t] == 64 * 64 * t + 63 * 32);
  std::printf("capability: PASSED %d.%d arch=%d shared=%u\n", device.major, device.minor, *arch, most);
  return 0;
}
