// Five-point stencil on two fields in two streams: pinned asynchronous copies, events across streams, event timing.
#include <cmath>
#include <cstring>
#include <vector>

#include "check.h"
#include "reference.h"

namespace {

constexpr unsigned kWidth = 128;
constexpr unsigned kHeight = 96;
constexpr unsigned kCells = kWidth * kHeight;
constexpr size_t kBytes = kCells * sizeof(float);
constexpr int kFields = 2;
constexpr int kSteps = 12;

void StepOnCpu(const std::vector<float>& in, std::vector<float>& out) {
  for (unsigned y = 0; y < kHeight; ++y)
    for (unsigned x = 0; x < kWidth; ++x) {
      const unsigned i = y * kWidth + x;
      if (x == 0 || y == 0 || x == kWidth - 1 || y == kHeight - 1)
        out[i] = in[i];
      else
        out[i] = std::fmaf(0.125f, (in[i - 1] + in[i + 1]) + (in[i - kWidth] + in[i + kWidth]), 0.5f * in[i]);
    }
}

}  // namespace

extern "C" __global__ void stencil(const float* in, float* out, unsigned width, unsigned height) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const unsigned i = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    out[i] = in[i];
    return;
  }
  const float neighbours = __fadd_rn(__fadd_rn(in[i - 1], in[i + 1]), __fadd_rn(in[i - width], in[i + width]));
  out[i] = __fmaf_rn(0.125f, neighbours, __fmul_rn(0.5f, in[i]));
}

int main() {
  float* host[kFields];
  float* device[kFields][2];
  cudaStream_t streams[kFields];
  cudaEvent_t started, finished, half_way;
  CUDA_CHECK(cudaEventCreate(&started));
  CUDA_CHECK(cudaEventCreate(&finished));
  CUDA_CHECK(cudaEventCreateWithFlags(&half_way, cudaEventDisableTiming));
  std::vector<float> expected[kFields];
  for (int f = 0; f < kFields; ++f) {
    CUDA_CHECK(cudaStreamCreate(&streams[f]));
    CUDA_CHECK(cudaMallocHost(&host[f], kBytes));
    CUDA_CHECK(cudaMalloc(&device[f][0], kBytes));
    CUDA_CHECK(cudaMalloc(&device[f][1], kBytes));
    for (unsigned i = 0; i < kCells; ++i) host[f][i] = reference::RandomFloat(f * kCells + i);
    expected[f].assign(host[f], host[f] + kCells);
  }

  // Field 1 starts its second half only when field 0 has got that far: an edge between the two streams.
  const dim3 block(32, 4), grid(kWidth / 32, kHeight / 4);
  CUDA_CHECK(cudaEventRecord(started, streams[0]));
  for (int f = 0; f < kFields; ++f) {
    CUDA_CHECK(cudaMemcpyAsync(device[f][0], host[f], kBytes, cudaMemcpyHostToDevice, streams[f]));
    for (int step = 0; step < kSteps; ++step) {
      if (step == kSteps / 2) {
        if (f == 0)
          CUDA_CHECK(cudaEventRecord(half_way, streams[0]));
        else
          CUDA_CHECK(cudaStreamWaitEvent(streams[f], half_way, 0));
      }
      stencil<<<grid, block, 0, streams[f]>>>(device[f][step % 2], device[f][(step + 1) % 2], kWidth, kHeight);
      CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpyAsync(host[f], device[f][kSteps % 2], kBytes, cudaMemcpyDeviceToHost, streams[f]));
  }
  CUDA_CHECK(cudaEventRecord(finished, streams[kFields - 1]));
  CUDA_CHECK(cudaEventSynchronize(finished));
  for (int f = 0; f < kFields; ++f) CUDA_CHECK(cudaStreamSynchronize(streams[f]));
  float elapsed_ms = -1.0f;
  CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, started, finished));

  size_t bad = 0;
  for (int f = 0; f < kFields; ++f) {
    std::vector<float> next(kCells);
    for (int step = 0; step < kSteps; ++step) {
      StepOnCpu(expected[f], next);
      expected[f].swap(next);
    }
    for (unsigned i = 0; i < kCells; ++i) bad += std::memcmp(&expected[f][i], &host[f][i], sizeof(float)) != 0;
  }
  for (int f = 0; f < kFields; ++f) {
    CUDA_CHECK(cudaFree(device[f][0]));
    CUDA_CHECK(cudaFree(device[f][1]));
    CUDA_CHECK(cudaFreeHost(host[f]));
    CUDA_CHECK(cudaStreamDestroy(streams[f]));
  }
  CUDA_CHECK(cudaEventDestroy(started));
  CUDA_CHECK(cudaEventDestroy(finished));
  CUDA_CHECK(cudaEventDestroy(half_way));
  const bool good = bad == 0 && elapsed_ms >= 0.0f;
  std::printf("stencil: %s cells=%u fields=%d steps=%d wrong=%zu gpu_ms=%.3f\n", good ? "PASSED" : "FAILED", kCells,
              kFields, kSteps, bad, static_cast<double>(elapsed_ms));
  return good ? 0 : 1;
}
