// SPDX-License-Identifier: Apache-2.0
// One launched kernel: what its CTAs share, and the CTAs that are resident.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/memory/lock_ranks.h"
#include "gpu/soft/run/cta_set.h"

namespace vgpud::soft {

class DeviceLaunches;

class Grid final : public GpuGrid {
 public:
  // `params`: as checked by the launch. `workspace`: of a cooperative launch, the address that its kernel finds in
  // %envreg1 and %envreg2; all its CTAs are resident at once. The program and the device outlive the grid.
  Grid(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
       std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace);
  ~Grid() override;
  // Host memory that the state of one CTA takes.
  static size_t CtaBytes(const Program& program, const CodeFunction& function, const LaunchShape& shape) {
    return LayOutCta(function, shape, LayOutFrames(program, function).stack_bytes).bytes;
  }
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  uint64_t warp_instructions() const override;
  uint64_t short_of() const override;
  bool holds_blocks() const override;
  uint64_t held_bytes() const override;
  // From now on counts what each warp instruction is for one lane; slow, the results are the same, and one thread does
  // it all. Before the first Run().
  void CountThreads();
  // Lanes of the warp instructions that ran since CountThreads(); a guard does not lessen them.
  uint64_t thread_instructions() const { return sets_[0]->thread_instructions(); }

  // grid_state.cc: how far it is. Load into a grid that has not run.
  void Save(StateWriter& out) const;
  void Load(StateReader& in);
  const GridFacts& facts() const { return facts_; }

  // --- for what runs inside of Run(), on any of its threads ---
  // The next CTAs to start, those of one cluster: the order of the first one; nullopt: all have been started.
  std::optional<uint64_t> TakeCluster();
  // How many CTAs have been started.
  uint64_t started() const { return next_cta_.load(std::memory_order_relaxed); }
  // Where launches of its kernel go; nullptr: its kernel has none.
  void SetLaunches(DeviceLaunches* launches) { launches_ = launches; }
  DeviceLaunches* launches() const { return launches_; }
  DeviceState& device() const { return facts_.device; }
  const Program& program() const { return *facts_.program; }
  const FrameLayout& frames() const { return facts_.frames; }
  // The first one counts.
  void SetFault(CuStatus status, std::string text);
  bool faulted() const { return faulted_.load(std::memory_order_acquire); }
  // A CTA whose barrier is complete: its waiting splits go on.
  static void ReleaseBarrier(Cta& cta, uint32_t barrier);
  std::string Describe(const Warp& warp, const Inst* inst, uint32_t lane) const;
  // "block: [x,y,z], thread: [x,y,z]"
  std::string DescribeThread(const Warp& warp, uint32_t lane) const;

 private:
  static GridFacts Facts(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
                         std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace);
  std::array<uint32_t, 3> ThreadOf(const Warp& warp, uint32_t lane) const;

  void PlaceParam(const ParamSlot& slot) const;
  // Broadcasts the parameters that code reads as registers. False: the stop word has changed before the last one.
  bool PlaceParams(const StopWord& stop);

  // grid_run.cc
  struct Shift;  // one Run() with several sets
  uint64_t UnfinishedCtas() const;
  void Share();
  Progress RunSets(const StopWord& stop, uint64_t budget);
  Progress RunSet(CtaSet& set, const StopWord& stop, uint64_t part);

  GridFacts facts_;
  size_t placed_ = 0;  // of facts_.function.param_slots
  // Written for every CTA: on a cache line apart from what all threads read.
  alignas(64) std::atomic<uint64_t> next_cta_{0};
  alignas(64) std::vector<std::unique_ptr<CtaSet>> sets_;  // the first one is always there
  std::deque<CtaSet*> waiting_;  // those that are not done and that nobody runs, whose turn is next first
  bool alone_ = false;
  Mutex fault_mutex_{lock_rank::kFault};
  std::optional<GpuError> fault_ GUARDED_BY(fault_mutex_);
  std::atomic<bool> faulted_{false};
  DeviceLaunches* launches_ = nullptr;
};

}  // namespace vgpud::soft
