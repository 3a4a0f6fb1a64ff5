// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/drill/drill_gpu.h"

#include <utility>

namespace vgpud::exec {
namespace {

class DrillGrid final : public GpuGrid {
 public:
  DrillGrid(std::unique_ptr<GpuGrid> grid, const FunctionInfo& function, const LaunchShape& shape, PreemptDrill& drill,
            bool cuts)
      : grid_(std::move(grid)), function_(function), shape_(shape), drill_(drill), cuts_(cuts) {}
  ~DrillGrid() override { drill_.words.Forget(grid_.get()); }

  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override {
    const uint64_t before = grid_->warp_instructions();
    auto progress = grid_->Run(cuts_ ? drill_.Arm(stop) : stop, budget);
    const uint64_t ran = grid_->warp_instructions();
    drill_.CountInstructions(ran - before);
    drill_.CountCut();
    drill_.words.Ran(grid_.get(), function_, shape_, ran, !progress || *progress == Progress::kDone);
    return progress;
  }
  uint64_t short_of() const override { return grid_->short_of(); }
  bool holds_blocks() const override { return grid_->holds_blocks(); }
  uint64_t held_bytes() const override { return grid_->held_bytes(); }
  uint64_t warp_instructions() const override { return grid_->warp_instructions(); }

  std::unique_ptr<GpuGrid>& inner() { return grid_; }

 private:
  std::unique_ptr<GpuGrid> grid_;
  const FunctionInfo& function_;
  const LaunchShape shape_;
  PreemptDrill& drill_;
  const bool cuts_;
};

}  // namespace

DrillGpu::DrillGpu(std::unique_ptr<Gpu> gpu, PreemptDrill& drill) : gpu_(std::move(gpu)), drill_(drill) {
  TripsMidKernel* const trips = gpu_->capabilities().mid_kernel_trips;
  cuts_ = trips != nullptr && drill.trip() != nullptr;
  if (cuts_) trips->SetTrip(drill.trip());
}

GpuCapabilities DrillGpu::capabilities() {
  GpuCapabilities can = gpu_->capabilities();
  if (can.async_work != nullptr) can.async_work = this;
  if (can.output != nullptr) can.output = this;
  can.saved_context = nullptr;
  return can;
}

// Longer copies come in pieces: what is left at the end of one may be as short as a word.
GpuResult<void> DrillGpu::CopyIn(GpuVa to, std::span<const std::byte> from) {
  const bool word = from.size() == sizeof(uint32_t);
  auto copied = gpu_->CopyIn(to, from);
  if (copied && word && to != copied_to_) drill_.words.Wrote();
  copied_to_ = word ? GpuVa{} : GpuVa{Raw(to) + from.size()};
  return copied;
}

GpuResult<void> DrillGpu::CopyOut(std::span<std::byte> to, GpuVa from) {
  auto copied = gpu_->CopyOut(to, from);
  if (copied) drill_.AddCopy(from, to);
  return copied;
}

GpuResult<std::unique_ptr<GpuGrid>> DrillGpu::Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                     std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  auto grid = gpu_->Launch(function, shape, params, max_dynamic_shared);
  if (!grid) return grid;
  return std::make_unique<DrillGrid>(std::move(*grid), function, shape, drill_, cuts_);
}

bool DrillGpu::LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                            const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  AsyncWork& work = *gpu_->capabilities().async_work;
  GpuGrid& first = *static_cast<DrillGrid&>(before).inner();
  std::unique_ptr<GpuGrid> fresh;
  std::unique_ptr<GpuGrid>& inner = grid != nullptr ? static_cast<DrillGrid&>(*grid).inner() : fresh;
  if (!work.LaunchBehind(inner, first, function, shape, params, max_dynamic_shared)) return false;
  if (grid == nullptr) grid = std::make_unique<DrillGrid>(std::move(fresh), function, shape, drill_, cuts_);
  return true;
}

size_t DrillGpu::TakePrinted(std::span<std::byte> out, bool* to_stderr) {
  const size_t bytes = gpu_->capabilities().output->TakePrinted(out, to_stderr);
  drill_.AddPrinted(out.first(bytes));
  return bytes;
}

}  // namespace vgpud::exec
