// One launched kernel: its CTAs, which are resident, whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/device_state.h"
#include "gpu/soft/program.h"
#include "gpu/soft/warp.h"

namespace vgpud::soft {

// CTAs are started in increasing linear id; at most this many are resident. A resident one stays until it is done.
inline constexpr uint32_t kMaxResidentCtas = 16;
// Fewer if their registers and local memory take more than this.
inline constexpr size_t kMaxResidentBytes = size_t{1} << 30;
// Warp instructions until the next warp of the CTA, and until the next CTA, has its turn.
inline constexpr uint64_t kWarpSlice = 4096;
inline constexpr uint64_t kCtaSlice = 65536;

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
  uint64_t warp_instructions() const override { return executed_; }
  // From now on counts what each warp instruction is for one lane; slow, the results are the same.
  void CountThreads() { count_threads_ = true; }
  // Lanes of the warp instructions that ran since CountThreads(); a guard does not lessen them.
  uint64_t thread_instructions() const { return thread_instructions_; }

  DeviceState& device() const { return device_; }
  const Program& program() const { return *program_; }
  void SetFault(CuStatus status, std::string text);
  bool faulted() const { return fault_.has_value(); }
  // A CTA whose barrier is complete: its waiting splits go on.
  static void ReleaseBarrier(Cta& cta, uint32_t barrier);
  std::string Describe(const Warp& warp, const Inst* inst, uint32_t lane) const;
  // "block: [x,y,z], thread: [x,y,z]"
  std::string DescribeThread(const Warp& warp, uint32_t lane) const;

 private:
  struct CtaLayout {
    uint32_t shared_bytes;  // that the kernel sees
    size_t stack;           // of a warp
    size_t shared;          // with what keeps the next apart
    size_t per_warp;
    size_t bytes;
  };
  static CtaLayout LayOutCta(const CodeFunction& function, const LaunchShape& shape);
  std::array<uint32_t, 3> ThreadOf(const Warp& warp, uint32_t lane) const;
  bool AdmitNext();
  void InitWarp(Cta& cta, uint32_t index);
  std::unique_ptr<Cta> MakeCta();
  bool PickWarp();
  void NextCta();

  std::shared_ptr<const Program> program_;
  const CodeFunction& function_;
  LaunchShape shape_;
  DeviceState& device_;
  const std::optional<GpuVa> workspace_;
  std::vector<std::byte> params_;
  std::vector<std::byte> area_memory_;
  std::byte* area_ = nullptr;
  uint32_t threads_ = 0;
  uint32_t warps_per_cta_ = 0;
  uint32_t shared_bytes_ = 0;
  size_t max_resident_ = kMaxResidentCtas;
  uint64_t next_cta_ = 0;
  uint64_t total_ctas_ = 0;
  std::vector<std::unique_ptr<Cta>> resident_;
  std::vector<std::unique_ptr<Cta>> spare_;
  size_t current_ = 0;
  Warp* warp_ = nullptr;
  uint64_t executed_ = 0;
  bool count_threads_ = false;
  uint64_t thread_instructions_ = 0;
  std::optional<GpuError> fault_;
};

}  // namespace vgpud::soft
