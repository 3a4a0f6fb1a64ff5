// SPDX-License-Identifier: Apache-2.0
// What a launch and a copy take: gpu_copies [--mib N] [--seconds S]. Lines: "GPU ...", "LATENCY what=... p50_us=...
// p99_us=...", "BANDWIDTH what=... bytes_per_s=..." (the best of the copies: what else the machine does only makes them
// slower).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "tools/gpucheck/driver.h"
#include "tools/gpucheck/kernels.h"

namespace {

using namespace gpucheck;

constexpr size_t kMostSamples = 5000, kBurst = 64;

void Latency(const char* what, double seconds, unsigned each, const std::function<void()>& call) {
  std::vector<double> took;
  for (int n = 0; n < 3; ++n) call();
  const double end = Seconds() + seconds;
  while (took.size() < kMostSamples && (took.size() < 3 || Seconds() < end)) {
    const double begun = Seconds();
    call();
    took.push_back((Seconds() - begun) / each * 1e6);
  }
  std::sort(took.begin(), took.end());
  std::printf("LATENCY what=%s p50_us=%.2f p99_us=%.2f count=%zu\n", what, took[took.size() / 2],
              took[took.size() * 99 / 100], took.size());
}

void Bandwidth(const char* what, size_t bytes, double seconds, const std::function<void()>& call) {
  call();
  double best = 0;
  int count = 0;
  for (const double end = Seconds() + seconds; count < 3 || Seconds() < end; ++count) {
    const double begun = Seconds();
    call();
    best = std::max(best, static_cast<double>(bytes) / (Seconds() - begun));
  }
  std::printf("BANDWIDTH what=%s bytes_per_s=%.0f count=%d\n", what, best, count);
}

}  // namespace

int main(int argc, char** argv) {
  size_t bytes = size_t{256} << 20;
  double seconds = 0.5;
  for (int n = 1; n + 1 < argc; n += 2) {
    if (std::string_view(argv[n]) == "--mib") bytes = std::strtoul(argv[n + 1], nullptr, 10) << 20;
    if (std::string_view(argv[n]) == "--seconds") seconds = std::strtod(argv[n + 1], nullptr);
  }
  const Gpu gpu = OpenGpu();
  int version = 0;
  CUDA(DriverGetVersion(&version));
  std::printf("GPU name=\"%s\" capability=%d multiprocessors=%d memory=%zu cuda=%d\n", gpu.name, gpu.capability,
              gpu.multiprocessors, gpu.memory, version);
  const driver::Function empty = LoadKernel(kWork, "empty");
  driver::Stream stream = nullptr;
  CUDA(StreamCreate(&stream, driver::kStreamNonBlocking));
  const auto launch = [&] { CUDA(LaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr)); };
  Latency("launch_and_wait", seconds, 1, [&] {
    launch();
    CUDA(StreamSynchronize(stream));
  });
  Latency("launch_in_a_row", seconds, kBurst, [&] {
    for (size_t n = 0; n < kBurst; ++n) launch();
    CUDA(StreamSynchronize(stream));
  });
  driver::DevicePtr device = 0, other = 0;
  void* pinned = nullptr;
  CUDA(MemAlloc(&device, bytes));
  CUDA(MemAlloc(&other, bytes));
  CUDA(MemHostAlloc(&pinned, bytes, 0));
  std::memset(pinned, 1, bytes);
  std::vector<char> pageable(bytes, 2);
  const auto copy = [&](const char* what, const std::function<void()>& call) {
    Bandwidth(what, bytes, seconds, [&] {
      call();
      CUDA(StreamSynchronize(stream));
    });
  };
  copy("to_device_pinned", [&] { CUDA(MemcpyHtoDAsync(device, pinned, bytes, stream)); });
  copy("to_host_pinned", [&] { CUDA(MemcpyDtoHAsync(pinned, device, bytes, stream)); });
  copy("within_device", [&] { CUDA(MemcpyDtoDAsync(other, device, bytes, stream)); });
  copy("to_device_pageable", [&] { CUDA(MemcpyHtoD(device, pageable.data(), bytes)); });
  copy("to_host_pageable", [&] { CUDA(MemcpyDtoH(pageable.data(), device, bytes)); });
  return 0;
}
