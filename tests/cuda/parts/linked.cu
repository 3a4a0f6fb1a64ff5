// A program of two files whose device code is linked: functions and variables of the other file, and names that both
// files have for themselves.
#include "tests/cuda/check.h"

extern __device__ int table[4];
__device__ int Twice(int value);
static __device__ __noinline__ int Step(int value) { return value + 1; }

__global__ void Combine(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = Twice(Step(i)) + table[i % 4];
}

int main() {
  constexpr int kCount = 32;
  int* out = nullptr;
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(int)));
  Combine<<<1, kCount>>>(out);
  CUDA_CHECK_LAUNCH();
  int host[kCount];
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const int expected = 2 * (i + 1) + 100 + 10 * (i % 4);
    if (host[i] != expected) {
      std::printf("FAILED: element %d is %d, not %d\n", i, host[i], expected);
      return 1;
    }
  }
  std::printf("PASS linked\n");
  return 0;
}
