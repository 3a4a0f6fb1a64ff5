// Tensor maps as programs use them: made by the driver, given to a kernel as a parameter, boxes of a plane and of a
// space loaded, stored and reduced through them, each compared with plain loads of the same kernel.
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "tests/cuda/driver_call.h"

namespace {

constexpr int kBoxX = 32, kBoxY = 16;

__device__ uint32_t SharedAddress(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void WaitFor(uint32_t barrier, unsigned phase) {
  asm volatile(
      "{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra WAIT; }" ::"r"(
          barrier),
      "r"(phase)
      : "memory");
}

// A block loads the box at its place and says how many values are other than those of plain loads; then it adds 1 to
// each and stores the box to the same place of another plane, and adds it to a third one.
__global__ void CopyBoxes(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                          const __grid_constant__ CUtensorMap sums, const float* plane, int width, int height,
                          int swizzled, unsigned* wrong) {
  __shared__ alignas(1024) float box[kBoxY][kBoxX];
  __shared__ alignas(8) uint64_t barrier;
  const int x0 = static_cast<int>(blockIdx.x) * kBoxX - 5, y0 = static_cast<int>(blockIdx.y) * kBoxY - 3;
  const bool first = threadIdx.x == 0;
  if (first) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(&barrier)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (first) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
                 "r"(static_cast<unsigned>(sizeof box))
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(SharedAddress(box)),
        "l"(&from), "r"(x0), "r"(y0), "r"(SharedAddress(&barrier))
        : "memory");
  }
  WaitFor(SharedAddress(&barrier), 0);
  for (int n = static_cast<int>(threadIdx.x); n < kBoxX * kBoxY; n += static_cast<int>(blockDim.x)) {
    const int x = n % kBoxX, y = n / kBoxX;
    const bool inside = x0 + x >= 0 && x0 + x < width && y0 + y >= 0 && y0 + y < height;
    const float expected = inside ? plane[(y0 + y) * width + x0 + x] : 0.0f;
    // 16 bytes stay together; their number in the row is mixed with that of the row.
    const int column = swizzled ? (x / 4 ^ y % 8) * 4 + x % 4 : x;
    if (box[y][column] != expected) atomicAdd(wrong, 1u);
    box[y][column] += 1.0f;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (first && x0 >= 0 && y0 >= 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(x0),
                 "r"(y0), "r"(SharedAddress(box))
                 : "memory");
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                     &sums),
                 "r"(x0), "r"(y0), "r"(SharedAddress(box))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

CUtensorMap PlaneMap(decltype(&cuTensorMapEncodeTiled) encode, void* plane, int width, int height, bool swizzled) {
  CUtensorMap map;
  const cuuint64_t size[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(height)};
  const cuuint64_t stride[] = {width * sizeof(float)};
  const cuuint32_t box[] = {kBoxX, kBoxY}, step[] = {1, 1};
  expect("encode",
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, plane, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
         CUDA_SUCCESS);
  return map;
}

void CheckWrongMaps(decltype(&cuTensorMapEncodeTiled) encode, void* plane) {
  CUtensorMap map;
  const cuuint64_t size[] = {64, 64}, stride[] = {256}, odd[] = {250};
  const cuuint32_t box[] = {32, 4}, narrow[] = {3, 4}, step[] = {1, 1}, far[] = {1, 9};
  const auto ask = [&](void* at, const cuuint64_t* strides, const cuuint32_t* boxes, const cuuint32_t* steps,
                       CUtensorMapSwizzle swizzle) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, size, strides, boxes, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  constexpr auto kNone = CU_TENSOR_MAP_SWIZZLE_NONE;
  expect("odd address", ask(static_cast<char*>(plane) + 4, stride, box, step, kNone), CUDA_ERROR_INVALID_VALUE);
  expect("odd stride", ask(plane, odd, box, step, kNone), CUDA_ERROR_INVALID_VALUE);
  expect("odd box", ask(plane, stride, narrow, step, kNone), CUDA_ERROR_INVALID_VALUE);
  expect("far step", ask(plane, stride, box, far, kNone), CUDA_ERROR_INVALID_VALUE);
  expect("wide box", ask(plane, stride, box, step, CU_TENSOR_MAP_SWIZZLE_64B), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  int possible = 0;
  constexpr auto kPossible = static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
  CUDA_CHECK(cudaDeviceGetAttribute(&possible, kPossible, 0));
  if (possible == 0) {
    std::printf("tensormap: SKIPPED, this device has no tensor maps\n");
    return 0;
  }
  CUDA_CHECK(cudaFree(nullptr));
  const auto encode = driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  const auto replace = driver<decltype(cuTensorMapReplaceAddress)>("cuTensorMapReplaceAddress");
  constexpr int kWidth = 100, kHeight = 70;
  std::vector<float> plane(kWidth * kHeight), stored(plane.size()), summed(plane.size());
  for (size_t n = 0; n < plane.size(); ++n) plane[n] = static_cast<float>(n % 977) + 0.5f;
  float *from, *to, *sums;
  unsigned *wrong_values, count = 0;
  CUDA_CHECK(cudaMalloc(&from, plane.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&to, plane.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&sums, plane.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&wrong_values, sizeof *wrong_values));
  CUDA_CHECK(cudaMemcpy(from, plane.data(), plane.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(wrong_values, 0, sizeof *wrong_values));
  CheckWrongMaps(encode, from);
  const dim3 grid((kWidth + 5 + kBoxX - 1) / kBoxX, (kHeight + 3 + kBoxY - 1) / kBoxY);
  for (const bool swizzled : {false, true}) {
    CUDA_CHECK(cudaMemset(to, 0, plane.size() * sizeof(float)));
    CUDA_CHECK(cudaMemset(sums, 0, plane.size() * sizeof(float)));
    const CUtensorMap load = PlaneMap(encode, from, kWidth, kHeight, swizzled);
    CUtensorMap store = load;
    expect("replace", replace(&store, to), CUDA_SUCCESS);
    const CUtensorMap reduce = PlaneMap(encode, sums, kWidth, kHeight, swizzled);
    for (int times = 0; times < 2; ++times) {
      CopyBoxes<<<grid, 128>>>(load, store, reduce, from, kWidth, kHeight, swizzled ? 1 : 0, wrong_values);
      CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(&count, wrong_values, sizeof count, cudaMemcpyDeviceToHost));
    expect("values of boxes", count, 0);
    CUDA_CHECK(cudaMemcpy(stored.data(), to, plane.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(summed.data(), sums, plane.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t n = 0; n < plane.size(); ++n) {
      const bool there = n % kWidth >= kBoxX - 5 && n / kWidth >= kBoxY - 3;
      const float expected = there ? plane[n] + 1.0f : 0.0f;
      expect("stored", static_cast<long long>(stored[n] * 2), static_cast<long long>(expected * 2));
      expect("summed", static_cast<long long>(summed[n] * 2), static_cast<long long>(expected * 4));
    }
  }
  std::printf("tensormap: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
