// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_grid.h"

#include <fmt/core.h>
#include <immintrin.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"

namespace vgpud::driver {
namespace {

// Other streams of the guest get a look in after that long.
constexpr uint64_t kPatienceNs = 100'000;
// Kernels of some microseconds are looked at without a sleep; the others get naps that grow with them.
constexpr uint64_t kLooksNs = 20'000;
constexpr uint64_t kFirstNapNs = 10'000, kMostNapNs = 100'000;

void Nap(uint64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

GpuError Failed(const Card& card, Status status, const Kernel& kernel, const char* what) {
  return {static_cast<CuStatus>(status), fmt::format("{} of {}: {}", what, kernel.name, card.api().Describe(status))};
}

// What the driver takes for granted, and a guest may have wrong.
GpuResult<void> CheckLaunch(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
                            uint32_t max_dynamic_shared) {
  if (params.size() < kernel.param_bytes)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("launch of {}: {} bytes of parameters, it takes {}",
                                                        kernel.name, params.size(), kernel.param_bytes));
  if (shape.dynamic_shared > max_dynamic_shared)
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("launch of {}: {} bytes of dynamic shared memory, it may have {}", kernel.name,
                               shape.dynamic_shared, max_dynamic_shared));
  return {};
}

}  // namespace

GpuResult<std::unique_ptr<GpuGrid>> CudaGrid::Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                     const Kernel& kernel, const LaunchShape& shape,
                                                     std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  TRY(CheckLaunch(kernel, shape, params, max_dynamic_shared));
  card.Bind();
  const Api& api = card.api();
  if (shape.dynamic_shared > kernel.dynamic_shared_set) {
    const Status set =
        api.FuncSetAttribute(kernel.handle, FunctionAttribute::kMaxDynamicShared, static_cast<int>(max_dynamic_shared));
    if (set != kOk) return tl::unexpected(Failed(card, set, kernel, "dynamic shared memory"));
    kernel.dynamic_shared_set = max_dynamic_shared;
  }
  LaunchAttribute attributes[2] = {};
  LaunchConfig config{};
  std::copy_n(shape.grid, 3, config.grid);
  std::copy_n(shape.block, 3, config.block);
  config.dynamic_shared = shape.dynamic_shared;
  config.attributes = attributes;
  if (shape.cooperative) {
    LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = LaunchAttribute::Id::kCooperative;
    attribute.cooperative = 1;
  }
  if (shape.cluster[0] != 0) {
    LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = LaunchAttribute::Id::kCluster;
    for (int d = 0; d < 3; ++d) attribute.cluster[d] = std::max(shape.cluster[d], 1u);
  }
  size_t bytes = params.size();
  void* extra[] = {reinterpret_cast<void*>(kParamBuffer), const_cast<std::byte*>(params.data()),
                   reinterpret_cast<void*>(kParamBufferBytes), &bytes, reinterpret_cast<void*>(kParamEnd)};
  const Lane lane = TRY(lanes.Take());
  config.stream = lane.stream;
  Status status = api.LaunchKernelEx(&config, kernel.handle, nullptr, params.empty() ? nullptr : extra);
  if (status == kOk) status = api.EventRecord(lane.done, lane.stream);
  if (status != kOk) {
    lanes.Abandon(lane);
    return tl::unexpected(Failed(card, status, kernel, "launch"));
  }
  return std::unique_ptr<GpuGrid>(new CudaGrid(card, lanes, printed, lane, kernel));
}

CudaGrid::~CudaGrid() {
  if (!runs_) return;
  card_.Bind();
  lanes_.Abandon(lane_);
}

GpuResult<GpuGrid::Progress> CudaGrid::End(Status status) {
  runs_ = false;
  // The driver hands out what kernels have printed when their stream is waited for.
  if (status == kOk) status = card_.api().StreamSynchronize(lane_.stream);
  printed_.Collect();
  if (status == kOk) {
    lanes_.GiveBack(lane_);
    return Progress::kDone;
  }
  lanes_.Abandon(lane_);
  return tl::unexpected(Failed(card_, status, kernel_, "kernel"));
}

GpuResult<GpuGrid::Progress> CudaGrid::Run(const StopWord& stop, uint64_t) {
  card_.Bind();
  const Api& api = card_.api();
  const uint64_t begun = MonotonicNs();
  for (;;) {
    const Status status = api.EventQuery(lane_.done);
    if (status != kNotReady) return End(status);
    if (stop.Stopped()) return End(api.EventSynchronize(lane_.done));
    const uint64_t looked = MonotonicNs() - begun;
    if (looked >= kPatienceNs) return Progress::kYield;
    if (nap_ns_ == 0 && looked < kLooksNs) {
      _mm_pause();
      continue;
    }
    nap_ns_ = std::clamp(nap_ns_ + nap_ns_ / 4, kFirstNapNs, kMostNapNs);
    Nap(nap_ns_);
  }
}

}  // namespace vgpud::driver
