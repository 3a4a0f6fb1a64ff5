// One launched kernel: what its CTAs share, and the CTAs that are resident.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/cta_set.h"

namespace vgpud::soft {

class Grid final : public GpuGrid {
 public:
  // `params`: as checked by the launch. `workspace`: of a cooperative launch, the address that its kernel finds in
  // %envreg1 and %envreg2; all its CTAs are resident at once. The program and the device outlive the grid.
  Grid(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
       std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace);
  ~Grid() override;
  // Host memory that the state of one CTA takes.
  static size_t CtaBytes(const CodeFunction& function, const LaunchShape& shape) {
    return LayOutCta(function, shape).bytes;
  }
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  uint64_t warp_instructions() const override { return sets_[0]->warp_instructions(); }
  // From now on counts what each warp instruction is for one lane; slow, the results are the same.
  void CountThreads() { sets_[0]->CountThreads(); }
  // Lanes of the warp instructions that ran since CountThreads(); a guard does not lessen them.
  uint64_t thread_instructions() const { return sets_[0]->thread_instructions(); }

  // The linear id of the next CTA to start; nullopt: all have been started.
  std::optional<uint64_t> TakeCta();
  DeviceState& device() const { return facts_.device; }
  const Program& program() const { return *facts_.program; }
  void SetFault(CuStatus status, std::string text);
  bool faulted() const { return fault_.has_value(); }
  // A CTA whose barrier is complete: its waiting splits go on.
  static void ReleaseBarrier(Cta& cta, uint32_t barrier);
  std::string Describe(const Warp& warp, const Inst* inst, uint32_t lane) const;
  // "block: [x,y,z], thread: [x,y,z]"
  std::string DescribeThread(const Warp& warp, uint32_t lane) const;

 private:
  static GridFacts Facts(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
                         std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace);
  std::array<uint32_t, 3> ThreadOf(const Warp& warp, uint32_t lane) const;

  GridFacts facts_;
  uint64_t next_cta_ = 0;
  std::vector<std::unique_ptr<CtaSet>> sets_;  // the first one is always there
  std::optional<GpuError> fault_;
};

}  // namespace vgpud::soft
