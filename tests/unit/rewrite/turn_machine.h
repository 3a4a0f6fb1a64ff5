// SPDX-License-Identifier: Apache-2.0
// A soft GPU whose programs are rewritten before they are loaded, and whose kernels run in turns that end by the stop
// word alone: nobody takes them off the soft GPU.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/rewrite/rewrite.h"
#include "gpu/rewrite/turns.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::rewrite {

struct Ran {
  std::string error;          // "" = none
  uint64_t cuts = 0;          // turns that the kernel was still running at the end of
  uint64_t instructions = 0;  // warp instructions in all
  uint64_t latest = 0;        // the most warp instructions between a changed stop word and the end of a launch
};

class TurnMachine : public soft::SoftMachine {
 public:
  explicit TurnMachine(const Options& options, const ComputeCapability& capability = kDefaultCapability)
      : SoftMachine(soft::BestIsa(), 64 << 20, 1, capability), options_(options) {}

  soft::Outcome Load(const std::string& ptx) override;
  // Notes the launch and makes none.
  std::unique_ptr<GpuGrid> Launch(const std::string& kernel, const LaunchShape& shape,
                                  const soft::Params& params) override;
  std::function<uint64_t()> most_of_piece = [] { return UINT64_MAX; };
  // Runs what was noted. `turn`: after how many warp instructions the stop word changes. `slots`: for how many blocks
  // there is room at most.
  Ran Run(const std::function<uint64_t()>& turn, uint32_t slots = UINT32_MAX);

  const std::string& text() const { return text_; }
  const std::vector<KernelPlan>& plans() const { return plans_; }
  const KernelPlan& plan() const { return *plan_; }  // of the launched kernel

 private:
  GpuResult<void> RunTurn(GridTurns::Launch& launch, uint64_t length, Ran& ran);
  uint64_t Run(GpuGrid& grid, uint64_t budget, bool* done);

  Options options_;
  std::string text_;
  std::vector<KernelPlan> plans_;
  const KernelPlan* plan_ = nullptr;
  std::string kernel_;
  LaunchShape shape_{};
  std::vector<std::byte> params_;
  GpuVa stop_word_{}, control_{}, saved_{};
  uint32_t expected_ = 7;
};

}  // namespace vgpud::rewrite
