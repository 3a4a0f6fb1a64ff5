// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_grid.h"

#include <fmt/core.h>

#include <algorithm>

namespace vgpud::driver {

GpuError KernelFailed(const Card& card, Status status, const Kernel& kernel, const char* what) {
  return {static_cast<CuStatus>(status), fmt::format("{} of {}: {}", what, kernel.name, card.api().Describe(status))};
}

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

GpuResult<std::unique_ptr<GpuGrid>> CudaGrid::Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                     const Kernel& kernel, const LaunchShape& shape,
                                                     std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  card.Bind();
  const Api& api = card.api();
  if (shape.dynamic_shared > kernel.dynamic_shared_set) {
    const Status set =
        api.FuncSetAttribute(kernel.handle, FunctionAttribute::kMaxDynamicShared, static_cast<int>(max_dynamic_shared));
    if (set != kOk) return tl::unexpected(KernelFailed(card, set, kernel, "dynamic shared memory"));
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
    return tl::unexpected(KernelFailed(card, status, kernel, "launch"));
  }
  return std::unique_ptr<GpuGrid>(new CudaGrid(card, lanes, printed, lane, kernel));
}

CudaGrid::~CudaGrid() {
  if (!runs_) return;
  --lanes_.ends.running_by_gate;
  card_.Bind();
  lanes_.Abandon(lane_);
}

GpuResult<GpuGrid::Progress> CudaGrid::End(Status status) {
  runs_ = false;
  --lanes_.ends.running_by_gate;
  // The driver hands out what kernels have printed when their stream is waited for.
  if (status == kOk) status = card_.api().StreamSynchronize(lane_.stream);
  printed_.Collect();
  if (status == kOk) {
    lanes_.GiveBack(lane_);
    return Progress::kDone;
  }
  lanes_.Abandon(lane_);
  return tl::unexpected(KernelFailed(card_, status, kernel_, "kernel"));
}

GpuResult<GpuGrid::Progress> CudaGrid::Run(const StopWord& stop, uint64_t) {
  card_.Bind();
  const Api& api = card_.api();
  const Status status = wait_.Await(api, lane_.done, stop);
  if (status != kNotReady) return End(status);
  if (!stop.Stopped()) return Progress::kYield;
  ++lanes_.ends.by_gate;
  return End(api.EventSynchronize(lane_.done));
}

}  // namespace vgpud::driver
