// Collatz step counts: neighbouring threads leave the loop at very different times.
#include <vector>

#include "check.h"

namespace {

__host__ __device__ unsigned CollatzSteps(unsigned long long x) {
  unsigned steps = 0;
  while (x != 1) {
    if (x % 2 == 0)
      x /= 2;
    else
      x = 3 * x + 1;
    ++steps;
  }
  return steps;
}

}  // namespace

extern "C" __global__ void collatz(unsigned* steps, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) steps[i] = CollatzSteps(i + 1);
}

int main() {
  const unsigned n = 40001;
  std::vector<unsigned> steps(n);
  unsigned* device_steps;
  CUDA_CHECK(cudaMalloc(&device_steps, n * sizeof(unsigned)));
  collatz<<<(n + 127) / 128, 128>>>(device_steps, n);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(steps.data(), device_steps, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_steps));

  size_t bad = 0;
  unsigned longest = 0;
  for (unsigned i = 0; i < n; ++i) {
    bad += steps[i] != CollatzSteps(i + 1);
    longest = steps[i] > longest ? steps[i] : longest;
  }
  std::printf("collatz: %s n=%u longest=%u wrong=%zu\n", bad == 0 ? "PASSED" : "FAILED", n, longest, bad);
  return bad == 0 ? 0 : 1;
}
