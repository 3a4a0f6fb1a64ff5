// A matrix product as kernels for 9.0a do it: tiles come through tensor maps with the swizzle of 128 bytes, a warpgroup
// multiplies them in shared memory. Compared with a plain product; values are small whole numbers, so every sum is
// exact.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "tests/cuda/parts/half_product.h"

namespace {

constexpr int kTile = 64;  // rows and columns of a block's tile, and elements of k that come at a time
constexpr int kM = 128, kN = 192, kK = 256;
constexpr int kSums = kTile / 2;

__device__ uint32_t SharedAddress(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Rows of 128 bytes with their swizzle: eight of them are 1024 bytes.
__device__ uint64_t Descriptor(uint32_t address) {
  return uint64_t{address & 0x3ffff} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

#define SUM(n) "+f"(d[n])
#define SUMS(n) SUM(n), SUM(n + 1), SUM(n + 2), SUM(n + 3), SUM(n + 4), SUM(n + 5), SUM(n + 6), SUM(n + 7)
__device__ void Multiply(float (&d)[kSums], uint64_t a, uint64_t b, int counts) {
  asm volatile(
      "{ .reg .pred counts; setp.ne.b32 counts, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, counts, 1, "
      "1, 0, 0; }"
      : SUMS(0), SUMS(8), SUMS(16), SUMS(24)
      : "l"(a), "l"(b), "r"(counts));
}

__global__ void Product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c) {
  __shared__ alignas(1024) __half tile_a[kTile * kTile], tile_b[kTile * kTile];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t at = SharedAddress(&barrier);
  const int row = static_cast<int>(blockIdx.y) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[kSums];
  for (int k = 0; k < kK; k += kTile) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
                   "r"(static_cast<unsigned>(sizeof tile_a + sizeof tile_b))
                   : "memory");
#define LOAD(map, tile, first)                                                                                  \
  asm volatile(                                                                                                 \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], " \
      "[%4];" ::"r"(SharedAddress(tile)),                                                                       \
      "l"(&map), "r"(k), "r"(first), "r"(at)                                                                    \
      : "memory")
      LOAD(a, tile_a, row);
      LOAD(b, tile_b, column);
    }
    asm volatile(
        "{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra WAIT; }" ::"r"(
            at),
        "r"(k / kTile & 1)
        : "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < kTile / 16; ++step)
      Multiply(d, Descriptor(SharedAddress(tile_a) + 32 * step), Descriptor(SharedAddress(tile_b) + 32 * step),
               k + step);
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int e = 0; e < kSums; ++e) {
    const int y = row + 16 * warp + lane / 4 + 8 * (e / 2 % 2), x = column + 8 * (e / 4) + lane % 4 * 2 + e % 2;
    c[y * kN + x] = d[e];
  }
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  HalfProduct product(kM, kN, kK);
  Product<<<dim3(kN / kTile, kM / kTile), 128>>>(product.MapOf(product.device_a, kM, kTile, kTile),
                                                 product.MapOf(product.device_b, kN, kTile, kTile), product.device_c);
  CUDA_CHECK_LAUNCH();
  product.Check();
  std::printf("wgmma: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
