// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rewrite/turn_machine.h"

namespace vgpud::rewrite {
namespace {

// A kernel that can't be left would run for ever.
constexpr uint64_t kMostInstructions = 50'000'000;

std::span<const std::byte> BytesOf(const auto& value) { return std::as_bytes(std::span(&value, 1)); }

}  // namespace

soft::Outcome TurnMachine::Load(const std::string& ptx) {
  auto rewritten = Rewrite(ptx, options_);
  if (!rewritten) return {rewritten.error().status, rewritten.error().text, 0};
  text_ = std::move(rewritten->text);
  plans_ = std::move(rewritten->kernels);
  return SoftMachine::Load(text_);
}

std::unique_ptr<GpuGrid> TurnMachine::Launch(const std::string& kernel, const LaunchShape& shape,
                                             const soft::Params& params) {
  for (const KernelPlan& plan : plans_)
    if (plan.name == kernel) plan_ = &plan;
  kernel_ = kernel;
  shape_ = shape;
  params_.assign(params.bytes().begin(), params.bytes().end());
  return nullptr;
}

// Until it is done, or has run for `budget` instructions.
uint64_t TurnMachine::Run(GpuGrid& grid, uint64_t budget, bool* done) {
  const uint64_t before = grid.warp_instructions();
  while (!*done && grid.warp_instructions() - before < budget) {
    const auto progress = grid.Run({&word, 0}, budget - (grid.warp_instructions() - before));
    if (!progress) return UINT64_MAX;
    *done = *progress == GpuGrid::Progress::kDone;
  }
  return grid.warp_instructions() - before;
}

GpuResult<void> TurnMachine::RunTurn(GridTurns::Launch& launch, uint64_t length, Ran& ran) {
  launch.turn.stop_word = Raw(stop_word_);
  launch.turn.control = Raw(control_);
  launch.turn.expected = expected_;
  launch.turn.saved = Raw(saved_);
  if (!launch.control.empty())
    if (auto put = gpu.CopyIn(control_, std::as_bytes(std::span(launch.control))); !put) return put;
  if (auto put = gpu.CopyIn(stop_word_, BytesOf(expected_)); !put) return put;
  std::vector<std::byte> params = params_;
  params.resize(plan_->turn_offset);
  params.insert(params.end(), BytesOf(launch.turn).begin(), BytesOf(launch.turn).end());
  LaunchShape shape = shape_;
  std::copy(std::begin(launch.grid), std::end(launch.grid), shape.grid);
  auto grid = gpu.Launch(*module->Function(plan_->entry), shape, params, 48 << 10);
  if (!grid) return tl::unexpected(grid.error());

  bool done = false;
  const auto failed = [&](const char* when) {
    return GpuFail(CuStatus::kLaunchFailed, std::string("fault or no end ") + when);
  };
  if (Run(**grid, length, &done) == UINT64_MAX) return failed("in its turn");
  if (!done) {
    ++ran.cuts;
    ++expected_;
    if (auto put = gpu.CopyIn(stop_word_, BytesOf(expected_)); !put) return put;
    const uint64_t late = Run(**grid, kMostInstructions, &done);
    if (late == UINT64_MAX || !done) return failed("after its turn");
    ran.latest = std::max(ran.latest, late);
  }
  ran.instructions += (*grid)->warp_instructions();
  if (launch.control.empty()) return {};
  return gpu.CopyOut(std::as_writable_bytes(std::span(launch.control)), control_);
}

Ran TurnMachine::Run(const std::function<uint64_t()>& turn, uint32_t slots) {
  Ran ran;
  const FunctionInfo* function = module == nullptr ? nullptr : module->Function(kernel_);
  if (plan_ == nullptr || function == nullptr) return {"no launch"};
  if (function->uses_heap && !gpu.MakeHeap()) return {"no heap"};
  if (plan_->rung == Rung::kNone) {
    auto grid = gpu.Launch(*function, shape_, params_, 48 << 10);
    bool done = false;
    if (!grid || Run(**grid, kMostInstructions, &done) == UINT64_MAX || !done) return {"not rewritten: no end"};
    ran.instructions = (*grid)->warp_instructions();
    return ran;
  }
  const uint32_t threads = shape_.block[0] * shape_.block[1] * shape_.block[2];
  slots = plan_->rung == Rung::kBlocks ? 0 : std::min(slots, shape_.grid[0] * shape_.grid[1] * shape_.grid[2]);
  GridTurns turns(*plan_, shape_.grid, threads, shape_.dynamic_shared, slots);
  stop_word_ = Alloc(4);
  control_ = Alloc(turns.control_words() * 4 + 4);
  if (slots != 0) saved_ = Alloc(turns.slot_area_bytes());
  const auto result = RunInTurns(
      turns, [&](GridTurns::Launch& launch) { return RunTurn(launch, turn(), ran); }, most_of_piece);
  if (!result) ran.error = result.error().text;
  return ran;
}

}  // namespace vgpud::rewrite
