// SPDX-License-Identifier: Apache-2.0
// Products of small whole numbers in half precision, which are exact in float, for kernels whose tiles come through
// tensor maps with the swizzle of 128 bytes.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include <vector>

#include "tests/cuda/driver_call.h"

// A of `m` rows and B of `n` columns, both by k, on the device too; C there.
struct HalfProduct {
  HalfProduct(int m, int n, int k) : m(m), n(n), k(k), a(m * k), b(n * k), c(m * n) {
    for (size_t e = 0; e < a.size(); ++e) a[e] = __float2half(static_cast<float>(static_cast<int>(e * 7 % 17) - 8));
    for (size_t e = 0; e < b.size(); ++e) b[e] = __float2half(static_cast<float>(static_cast<int>(e * 5 % 13) - 6));
    CUDA_CHECK(cudaMalloc(&device_a, a.size() * sizeof(__half)));
    CUDA_CHECK(cudaMalloc(&device_b, b.size() * sizeof(__half)));
    CUDA_CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(__half), cudaMemcpyHostToDevice));
  }
  // Of `rows` rows at `matrix`, in boxes of `depth` elements of k and `tile` rows.
  CUtensorMap MapOf(void* matrix, int rows, int depth, int tile) const {
    CUtensorMap map;
    const auto encode = driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
    const cuuint64_t size[] = {static_cast<cuuint64_t>(k), static_cast<cuuint64_t>(rows)};
    const cuuint64_t stride[] = {k * sizeof(__half)};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(depth), static_cast<cuuint32_t>(tile)}, step[] = {1, 1};
    expect(
        "encode",
        encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        CUDA_SUCCESS);
    return map;
  }
  // What is in C on the device is their product.
  void Check() {
    CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < m; ++y) {
      for (int x = 0; x < n; ++x) {
        float sum = 0;
        for (int e = 0; e < k; ++e) sum += __half2float(a[y * k + e]) * __half2float(b[x * k + e]);
        expect("element", static_cast<long long>(c[y * n + x]), static_cast<long long>(sum));
      }
    }
  }

  const int m, n, k;
  std::vector<__half> a, b;
  std::vector<float> c;
  __half *device_a = nullptr, *device_b = nullptr;
  float* device_c = nullptr;
};
