// A matrix product as kernels for 10.0a do it: tiles come through tensor maps with the swizzle of 128 bytes, one thread
// asks for their product in tensor memory, and four warps read it from there. A second product has A in tensor memory.
// Compared with a plain product; values are small whole numbers, so every sum is exact.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "tests/cuda/parts/half_product.h"

namespace {

constexpr int kRows = 128, kColumns = 64, kDepth = 64;  // of a block's tile, and elements of k that come at a time
constexpr int kM = 256, kN = 192, kK = 256;
constexpr int kStep = 16;
// F32 from F16, both by k.
constexpr uint32_t kInstruction = 1u << 4 | kColumns / 8 << 17 | kRows / 16 << 24;

__device__ uint32_t SharedAddress(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Rows of 128 bytes with their swizzle: eight of them are 1024 bytes.
__device__ uint64_t Descriptor(uint32_t address) {
  return uint64_t{address & 0x3ffff} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 |
         uint64_t{2} << 61;
}

__device__ void Wait(uint32_t barrier, int phase) {
  asm volatile(
      "{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra WAIT; }" ::"r"(
          barrier),
      "r"(phase & 1)
      : "memory");
}
__device__ void Commit(uint32_t barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}

#define EIGHT(n)                                                                                              \
  "=r"(v[n]), "=r"(v[n + 1]), "=r"(v[n + 2]), "=r"(v[n + 3]), "=r"(v[n + 4]), "=r"(v[n + 5]), "=r"(v[n + 6]), \
      "=r"(v[n + 7])
__device__ void Load32(uint32_t (&v)[32], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)
      : "r"(address));
}

template <bool kTensorA>
__global__ void Product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                        const __half* plain_a, float* c) {
  __shared__ alignas(1024) __half tile_a[kRows * kDepth], tile_b[kColumns * kDepth];
  __shared__ alignas(8) uint64_t loaded, multiplied;
  __shared__ uint32_t memory;
  const uint32_t load = SharedAddress(&loaded), multiply = SharedAddress(&multiplied);
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(SharedAddress(&memory))
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(load) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(multiply) : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta; tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const uint32_t sums = memory, words = memory + kColumns;
  const uint32_t mine = static_cast<uint32_t>(thread / 32 * 32) << 16;
  for (int k = 0; k < kK; k += kDepth) {
    if (thread == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(load),
                   "r"(static_cast<unsigned>(sizeof tile_a + sizeof tile_b))
                   : "memory");
#define LOAD(map, tile, first)                                                                                  \
  asm volatile(                                                                                                 \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], " \
      "[%4];" ::"r"(SharedAddress(tile)),                                                                       \
      "l"(&map), "r"(k), "r"(first), "r"(load)                                                                  \
      : "memory")
      LOAD(a, tile_a, row);
      LOAD(b, tile_b, column);
    }
    Wait(load, k / kDepth);
    if (kTensorA) {
      const auto* from = reinterpret_cast<const uint32_t*>(plain_a + (row + thread) * kK + k);
      for (int n = 0; n < kDepth / 2; n += 4)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};" ::"r"(words + mine + n),
                     "r"(from[n]), "r"(from[n + 1]), "r"(from[n + 2]), "r"(from[n + 3])
                     : "memory");
      asm volatile("tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;" ::: "memory");
      __syncthreads();
    }
    if (thread == 0) {
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
      for (int step = 0; step < kDepth / kStep; ++step) {
        const uint64_t at_a = Descriptor(SharedAddress(tile_a) + 2 * kStep * step);
        const uint64_t at_b = Descriptor(SharedAddress(tile_b) + 2 * kStep * step);
        if (kTensorA) {
          asm volatile(
              "{ .reg .pred add; setp.ne.b32 add, %4, 0;\n"
              "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, add; }" ::"r"(sums),
              "r"(words + step * kStep / 2), "l"(at_b), "r"(kInstruction), "r"(k + step)
              : "memory");
        } else {
          asm volatile(
              "{ .reg .pred add; setp.ne.b32 add, %4, 0;\n"
              "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add; }" ::"r"(sums),
              "l"(at_a), "l"(at_b), "r"(kInstruction), "r"(k + step)
              : "memory");
        }
      }
      Commit(multiply);
    }
    Wait(multiply, k / kDepth);
    __syncthreads();
  }
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int x = 0; x < kColumns; x += 32) {
    uint32_t v[32];
    Load32(v, sums + mine + x);
    for (int n = 0; n < 32; ++n) c[(row + thread) * kN + column + x + n] = __uint_as_float(v[n]);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (thread < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(memory));
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  HalfProduct product(kM, kN, kK);
  const CUtensorMap map_a = product.MapOf(product.device_a, kM, kDepth, kRows);
  const CUtensorMap map_b = product.MapOf(product.device_b, kN, kDepth, kColumns);
  for (const bool tensor_a : {false, true}) {
    CUDA_CHECK(cudaMemset(product.device_c, 0, product.c.size() * sizeof(float)));
    (tensor_a ? Product<true> : Product<false>)<<<dim3(kN / kColumns, kM / kRows), kRows>>>(
        map_a, map_b, product.device_a, product.device_c);
    CUDA_CHECK_LAUNCH();
    product.Check();
  }
  std::printf("tcgen05: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
