// Sums, minimum and maximum through warp shuffles, shared memory and atomics, integer and float.
#include <vector>

#include "check.h"
#include "reference.h"

namespace {

struct Totals {
  unsigned long long sum;
  float float_sum;
  int minimum;
  int maximum;
  unsigned blocks;
};

template <class T>
__device__ T WarpSum(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}
__device__ int WarpMin(int value) {
  for (int offset = 16; offset > 0; offset /= 2) value = min(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

}  // namespace

extern "C" __global__ void reduction(const int* values, const float* floats, unsigned n, Totals* totals) {
  __shared__ unsigned long long sums[32];
  __shared__ float float_sums[32];
  unsigned long long sum = 0;
  float float_sum = 0.0f;
  int minimum = INT_MAX, maximum = INT_MIN;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += static_cast<long long>(values[i]);
    float_sum += floats[i];
    minimum = min(minimum, values[i]);
    maximum = max(maximum, values[i]);
  }
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = WarpSum(sum);
  float_sum = WarpSum(float_sum);
  minimum = WarpMin(minimum);
  maximum = -WarpMin(-maximum);
  if (lane == 0) {
    sums[warp] = sum;
    float_sums[warp] = float_sum;
    atomicMin(&totals->minimum, minimum);
    atomicMax(&totals->maximum, maximum);
  }
  __syncthreads();
  if (warp == 0) {
    const unsigned warps = blockDim.x / 32;
    sum = WarpSum(lane < warps ? sums[lane] : 0ull);
    float_sum = WarpSum(lane < warps ? float_sums[lane] : 0.0f);
    if (lane == 0) {
      atomicAdd(&totals->sum, sum);
      atomicAdd(&totals->float_sum, float_sum);
      __threadfence();
      atomicInc(&totals->blocks, 0xffffffffu);
    }
  }
}

int main() {
  const unsigned n = 400003;
  const unsigned blocks = 24;
  std::vector<int> values(n);
  std::vector<float> floats(n);
  Totals expected{0, 0.0f, INT_MAX, INT_MIN, blocks};
  for (unsigned i = 0; i < n; ++i) {
    values[i] = static_cast<int>(reference::Hash(i)) / 2;
    // Quarters below 1: every partial sum is exact, whatever the order.
    floats[i] = static_cast<float>(reference::Hash(i) % 4) * 0.25f;
    expected.sum += static_cast<long long>(values[i]);
    expected.float_sum += floats[i];
    expected.minimum = std::min(expected.minimum, values[i]);
    expected.maximum = std::max(expected.maximum, values[i]);
  }
  int* device_values;
  float* device_floats;
  Totals* device_totals;
  CUDA_CHECK(cudaMalloc(&device_values, n * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&device_floats, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_totals, sizeof(Totals)));
  CUDA_CHECK(cudaMemcpy(device_values, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_floats, floats.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  Totals totals{0, 0.0f, INT_MAX, INT_MIN, 0};
  CUDA_CHECK(cudaMemcpy(device_totals, &totals, sizeof totals, cudaMemcpyHostToDevice));
  reduction<<<blocks, 256>>>(device_values, device_floats, n, device_totals);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(&totals, device_totals, sizeof totals, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_values));
  CUDA_CHECK(cudaFree(device_floats));
  CUDA_CHECK(cudaFree(device_totals));

  const bool good = totals.sum == expected.sum && totals.float_sum == expected.float_sum &&
                    totals.minimum == expected.minimum && totals.maximum == expected.maximum &&
                    totals.blocks == expected.blocks;
  std::printf("reduction: %s n=%u sum=%lld float_sum=%.2f min=%d max=%d blocks=%u\n", good ? "PASSED" : "FAILED", n,
              static_cast<long long>(totals.sum), static_cast<double>(totals.float_sum), totals.minimum, totals.maximum,
              totals.blocks);
  if (!good)
    std::printf("reduction: expected sum=%lld float_sum=%.2f min=%d max=%d blocks=%u\n",
                static_cast<long long>(expected.sum), static_cast<double>(expected.float_sum), expected.minimum,
                expected.maximum, expected.blocks);
  return good ? 0 : 1;
}
