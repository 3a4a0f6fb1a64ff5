// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_grid.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"

namespace vgpud::driver {
namespace {

// What may be on the GPU together when none of it can be stopped: a slice can end so much later, which is debt.
constexpr uint64_t kMostGateNs = 250'000;
// Of a kernel that has not ended yet.
constexpr uint64_t kUnknownNs = kMostGateNs;

uint64_t BlocksOf(const LaunchShape& shape) { return uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2]; }

}  // namespace

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
                                                     std::span<const std::byte> params, uint32_t max_dynamic_shared,
                                                     const std::optional<Place>& place) {
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
  Lane lane = TRY(place ? lanes.TakeBehind(place->lane) : lanes.Take());
  config.stream = lane.stream();
  Status status = api.LaunchKernelEx(&config, kernel.handle, nullptr, params.empty() ? nullptr : extra);
  if (status == kOk) status = api.EventRecord(lane.done, lane.stream());
  if (status != kOk) {
    lanes.Abandon(std::move(lane));
    return tl::unexpected(KernelFailed(card, status, kernel, "launch"));
  }
  return std::unique_ptr<GpuGrid>(new CudaGrid(card, lanes, printed, std::move(lane), kernel, shape));
}

CudaGrid::CudaGrid(const Card& card, Lanes& lanes, Printed& printed, Lane lane, const Kernel& kernel,
                   const LaunchShape& shape)
    : card_(card),
      lanes_(lanes),
      printed_(printed),
      lane_(std::move(lane)),
      kernel_(kernel),
      blocks_(BlocksOf(shape)),
      launched_ns_(MonotonicNs()),
      waits_(lanes.waits),
      expect_ns_(kernel.length.Expect(blocks_).value_or(kUnknownNs)) {
  lanes_.gate_events.push_back(lane_.done);
  lanes_.gate_ns += expect_ns_;
}

bool CudaGrid::Fits(const Lanes& lanes, const Kernel& kernel, const LaunchShape& shape) {
  const auto expect = kernel.length.Expect(BlocksOf(shape));
  return expect && *expect <= kMostGateNs && lanes.gate_ns + *expect <= kMostGateNs;
}

std::optional<Place> CudaGrid::Behind() const {
  if (!runs_) return std::nullopt;
  return Place{lane_, std::nullopt};
}

void CudaGrid::NoLongerRuns() {
  runs_ = false;
  std::erase(lanes_.gate_events, lane_.done);
  lanes_.gate_ns -= expect_ns_;
}

CudaGrid::~CudaGrid() {
  if (!runs_) return;
  NoLongerRuns();
  card_.Bind();
  lanes_.Abandon(std::move(lane_));
}

GpuResult<GpuGrid::Progress> CudaGrid::End(Status status) {
  NoLongerRuns();
  const uint64_t ended_ns = MonotonicNs(), begun_ns = std::max(launched_ns_, lane_.on->ended_ns);
  lane_.on->ended_ns = ended_ns;
  // Not if the executor was off the GPU meanwhile.
  if (waits_ == lanes_.waits) kernel_.length.Note(ended_ns - begun_ns, blocks_);
  // The driver hands out what kernels have printed when their event is waited for.
  if (status == kOk) status = card_.api().EventSynchronize(lane_.done);
  printed_.Collect();
  if (status == kOk) {
    lanes_.GiveBack(std::move(lane_));
    return Progress::kDone;
  }
  lanes_.Abandon(std::move(lane_));
  return tl::unexpected(KernelFailed(card_, status, kernel_, "kernel"));
}

GpuResult<GpuGrid::Progress> CudaGrid::Run(const StopWord& stop, uint64_t) {
  card_.Bind();
  const Api& api = card_.api();
  const Status status = wait_.Await(api, lane_.done, stop);
  if (status != kNotReady) return End(status);
  if (!stop.Stopped()) return Progress::kYield;
  ++lanes_.ends.by_gate;
  std::erase(lanes_.gate_events, lane_.done);  // counted
  return End(api.EventSynchronize(lane_.done));
}

}  // namespace vgpud::driver
