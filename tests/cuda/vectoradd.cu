// c = a + b, with a tail that does not fill the last block.
#include <vector>

#include "check.h"
#include "reference.h"

extern "C" __global__ void vectoradd(const float* a, const float* b, float* c, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const unsigned n = 300007;
  const size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n);
  reference::FillMatrix(a, 1);
  reference::FillMatrix(b, 1000000);

  float *device_a, *device_b, *device_c;
  CUDA_CHECK(cudaMalloc(&device_a, bytes));
  CUDA_CHECK(cudaMalloc(&device_b, bytes));
  CUDA_CHECK(cudaMalloc(&device_c, bytes));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
  vectoradd<<<(n + 255) / 256, 256>>>(device_a, device_b, device_c, n);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_c));

  size_t bad = 0;
  for (unsigned i = 0; i < n; ++i) bad += c[i] != a[i] + b[i];
  std::printf("vectoradd: %s n=%u wrong=%zu\n", bad == 0 ? "PASSED" : "FAILED", n, bad);
  return bad == 0 ? 0 : 1;
}
