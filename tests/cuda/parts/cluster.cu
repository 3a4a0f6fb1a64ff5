// Clusters of blocks through the CUDA headers: sizes that the kernel was built for and that a launch asks for, shared
// memory of other blocks, the barrier of a cluster.
#include <cooperative_groups.h>

#include <vector>

#include "tests/cuda/check.h"

namespace cg = cooperative_groups;

#define EXPECT(what)                                                 \
  do {                                                               \
    if (!(what)) {                                                   \
      std::printf("cluster: FAILED line %d: %s\n", __LINE__, #what); \
      return 1;                                                      \
    }                                                                \
  } while (0)

// A histogram whose bins are spread over the shared memory of the cluster's blocks.
__device__ void Count(const unsigned* values, unsigned n, unsigned* bins, unsigned bins_per_block) {
  extern __shared__ unsigned mine[];
  const cg::cluster_group cluster = cg::this_cluster();
  for (unsigned b = threadIdx.x; b < bins_per_block; b += blockDim.x) mine[b] = 0;
  cluster.sync();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned bin = values[i] % (bins_per_block * cluster.num_blocks());
    unsigned* const theirs = cluster.map_shared_rank(mine, bin / bins_per_block);
    atomicAdd(&theirs[bin % bins_per_block], 1);
  }
  cluster.sync();
  unsigned* const out = bins + cluster.block_rank() * bins_per_block;
  for (unsigned b = threadIdx.x; b < bins_per_block; b += blockDim.x) atomicAdd(&out[b], mine[b]);
}

__global__ void __cluster_dims__(4, 1, 1) CountInFour(const unsigned* values, unsigned n, unsigned* bins, unsigned each) {
  Count(values, n, bins, each);
}
__global__ void CountInAny(const unsigned* values, unsigned n, unsigned* bins, unsigned each) {
  Count(values, n, bins, each);
}

cudaError_t LaunchIn(unsigned cluster, unsigned grid, unsigned shared, const unsigned* values, unsigned n, unsigned* bins,
                     unsigned each) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, CountInAny, values, n, bins, each);
}

int main() {
  constexpr unsigned kValues = 20000, kBins = 192;
  unsigned *values, *bins;
  CUDA_CHECK(cudaMallocManaged(&values, kValues * sizeof *values));
  CUDA_CHECK(cudaMallocManaged(&bins, kBins * sizeof *bins));
  std::vector<unsigned> expected(kBins);
  for (unsigned i = 0; i < kValues; ++i) ++expected[(values[i] = i * 2654435761u >> 7) % kBins];
  const auto right = [&] {
    bool same = true;
    for (unsigned b = 0; b < kBins; ++b) same &= bins[b] == expected[b];
    for (unsigned b = 0; b < kBins; ++b) bins[b] = 0;
    return same;
  };
  for (unsigned b = 0; b < kBins; ++b) bins[b] = 0;

  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, CountInFour));
  EXPECT(attributes.requiredClusterWidth == 4 && attributes.requiredClusterDepth == 1);
  CountInFour<<<8, 128, kBins / 4 * 4>>>(values, kValues, bins, kBins / 4);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT(right());
  CountInFour<<<6, 128, kBins / 4 * 4>>>(values, kValues, bins, kBins / 4);
  EXPECT(cudaGetLastError() == cudaErrorInvalidClusterSize);

  for (const unsigned cluster : {1u, 2u, 8u}) {
    CUDA_CHECK(LaunchIn(cluster, 16, kBins / cluster * 4, values, kValues, bins, kBins / cluster));
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT(right());
  }
  EXPECT(LaunchIn(16, 16, kBins / 16 * 4, values, kValues, bins, kBins / 16) == cudaErrorInvalidClusterSize);
  cudaGetLastError();
  CUDA_CHECK(cudaFuncSetAttribute(CountInAny, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CUDA_CHECK(LaunchIn(16, 32, kBins / 16 * 4, values, kValues, bins, kBins / 16));
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT(right());
  int clusters = 0;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(128);
  CUDA_CHECK(cudaOccupancyMaxPotentialClusterSize(&clusters, CountInFour, &config));
  EXPECT(clusters == 4);

  // A launch in a graph keeps its cluster.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CountInFour<<<8, 128, kBins / 4 * 4, stream>>>(values, kValues, bins, kBins / 4);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  EXPECT(right());
  std::printf("cluster: PASSED\n");
  return 0;
}
