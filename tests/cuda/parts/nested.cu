// Kernels that launch kernels: the sum over a binary tree, each node a grid.
#include "tests/cuda/check.h"

__global__ void Node(int* sum, int value, int depth) {
  if (threadIdx.x == 0) atomicAdd(sum, value);
  if (threadIdx.x == 0 && depth > 0) {
    Node<<<1, 32>>>(sum, 2 * value, depth - 1);
    Node<<<1, 32, 0, cudaStreamFireAndForget>>>(sum, 2 * value + 1, depth - 1);
  }
}
// After everything that the kernel before it in the stream has launched.
__global__ void Check(const int* sum, int expected, int* wrong) { *wrong = *sum != expected; }
__global__ void Root(int* sum, int depth, int expected, int* wrong) {
  Check<<<1, 1, 0, cudaStreamTailLaunch>>>(sum, expected, wrong);
  Node<<<1, 32>>>(sum, 1, depth);
}

int main() {
  constexpr int kDepth = 7;
  // The nodes are numbered 1 .. 2^(depth+1) - 1.
  constexpr int kNodes = (1 << (kDepth + 1)) - 1;
  constexpr int kExpected = kNodes * (kNodes + 1) / 2;
  int* words = nullptr;
  CUDA_CHECK(cudaMalloc(&words, 2 * sizeof(int)));
  CUDA_CHECK(cudaMemset(words, 0, 2 * sizeof(int)));
  CUDA_CHECK(cudaMemset(words + 1, 0xff, sizeof(int)));
  Root<<<1, 1>>>(words, kDepth, kExpected, words + 1);
  CUDA_CHECK_LAUNCH();
  int host[2];
  CUDA_CHECK(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
  if (host[0] != kExpected || host[1] != 0) {
    std::printf("FAILED: sum %d, not %d; the check inside said %d\n", host[0], kExpected, host[1]);
    return 1;
  }
  std::printf("PASS nested\n");
  return 0;
}
