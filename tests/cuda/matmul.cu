// Tiled matrix multiply through shared memory. usage: matmul [M N K]   (multiples of 16; default 192 128 160)
// The result is compared bit for bit with the CPU.
#include <vector>

#include "check.h"
#include "reference.h"

extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n, unsigned k) {
  constexpr unsigned kTile = reference::kMatMulTile;
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const unsigned row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0.0f;
  for (unsigned t = 0; t < k; t += kTile) {
    tile_a[y][x] = a[row * k + t + x];
    tile_b[y][x] = b[(t + y) * n + column];
    __syncthreads();
    for (unsigned i = 0; i < kTile; ++i) sum = fmaf(tile_a[y][i], tile_b[i][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main(int argc, char** argv) {
  reference::MatMulShape s{};
  if (!reference::ParseMatMulShape(argc, argv, &s)) return 1;
  constexpr uint32_t kTile = reference::kMatMulTile;
  std::vector<float> a(static_cast<size_t>(s.m) * s.k), b(static_cast<size_t>(s.k) * s.n),
      c(static_cast<size_t>(s.m) * s.n);
  reference::FillMatrix(a, 7);
  reference::FillMatrix(b, 77777777);

  float *device_a, *device_b, *device_c;
  CUDA_CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  matmul<<<dim3(s.n / kTile, s.m / kTile), dim3(kTile, kTile)>>>(device_a, device_b, device_c, s.n, s.k);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_c));

  return reference::ReportMatMul(a, b, c, s);
}
