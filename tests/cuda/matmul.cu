// Tiled matrix multiply through shared memory. usage: matmul [M N K]   (multiples of 16; default 192 128 160)
// The result is compared bit for bit with the CPU; `checksum` names all of its bits, so that two runs can be compared.
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
  reference::MatMulShape s{192, 128, 160};
  if (argc == 4)
    s = {static_cast<uint32_t>(std::atoi(argv[1])), static_cast<uint32_t>(std::atoi(argv[2])),
         static_cast<uint32_t>(std::atoi(argv[3]))};
  constexpr uint32_t kTile = reference::kMatMulTile;
  if ((argc != 1 && argc != 4) || s.m == 0 || s.n == 0 || s.k == 0 || s.m % kTile || s.n % kTile || s.k % kTile) {
    std::printf("matmul: FAILED usage: matmul [M N K], multiples of %u\n", kTile);
    return 1;
  }
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

  // Large products are checked by sample: the CPU would take minutes.
  const uint64_t products = static_cast<uint64_t>(s.m) * s.n * s.k;
  const size_t stride = products > 8'000'000 ? static_cast<size_t>(products / 4'000'000) | 1 : 1;
  const size_t bad = reference::MatMulMismatches(a, b, c, s, stride);
  std::printf("matmul: %s m=%u n=%u k=%u wrong=%zu checksum=%016llx\n", bad == 0 ? "PASSED" : "FAILED", s.m, s.n, s.k,
              bad, static_cast<unsigned long long>(reference::Fnv1a(c.data(), c.size() * sizeof(float))));
  return bad == 0 ? 0 : 1;
}
