// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/rung.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"

namespace vgpud::driver {
namespace {

// What a driver takes (CUDA C++ Programming Guide, technical specifications). In turns the grid is a row, so it would
// not see that more was asked for.
constexpr uint32_t kMostGrid[3] = {0x7fffffff, 0xffff, 0xffff};

// A launch of kSoonNs is at most so much later than the end of the slice.
constexpr uint64_t kSoonNs = 250'000;
// Of all warps of a multiprocessor, as long as no launch was measured: some tens of microseconds.
constexpr uint64_t kSoonInstructions = 4096, kWarp = 32;

bool GridIsRight(const LaunchShape& shape) {
  for (int d = 0; d < 3; ++d)
    if (shape.grid[d] == 0 || shape.grid[d] > kMostGrid[d]) return false;
  return true;
}

}  // namespace

const char* RungName(rewrite::Rung rung) { return rung == rewrite::Rung::kNone ? "gate" : rewrite::Name(rung); }

std::optional<rewrite::Rung> FindRung(std::string_view name) {
  for (const auto rung : {rewrite::Rung::kNone, rewrite::Rung::kBlocks, rewrite::Rung::kSafepoints})
    if (name == RungName(rung)) return rung;
  return std::nullopt;
}

Short ShortOf(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params) {
  if (kernel.in_turns == nullptr) return {};
  const rewrite::KernelPlan& plan = kernel.in_turns->plan;
  if (plan.most_instructions != 0)
    return {plan.most_instructions, plan.pieces ? kernel.in_turns.get() : nullptr, false};
  const InTurns* const pieces = kernel.in_pieces.get();
  if (pieces == nullptr || uint64_t{shape.block[0]} * shape.block[1] * shape.block[2] > pieces->max_threads) return {};
  const uint32_t most = rewrite::Evaluate(plan.bound, params, shape.block);
  if (most == 0 || most > rewrite::kMostOfShort) return {};
  return {most, pieces, true};
}

bool EndsSoon(const Kernel& kernel, const Short& launch, const LaunchShape& shape, uint32_t multiprocessors) {
  if (launch.most == 0) return false;
  const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  const auto expect = launch.by_launch ? std::nullopt : kernel.length.Expect(blocks);
  return expect ? *expect <= kSoonNs : blocks <= FirstPieceBlocks(launch, shape, multiprocessors);
}

uint64_t FirstPieceBlocks(const Short& launch, const LaunchShape& shape, uint32_t multiprocessors) {
  const uint64_t threads =
      (CheckedSize(uint64_t{shape.block[0]}) * uint64_t{shape.block[1]} * uint64_t{shape.block[2]}).saturated();
  const uint64_t warps = threads / kWarp + (threads % kWarp != 0 ? 1 : 0);
  const uint64_t each = (CheckedSize(std::max<uint64_t>(warps, 1)) * uint64_t{std::max(launch.most, 1u)}).saturated();
  return std::max<uint64_t>(uint64_t{multiprocessors} * kSoonInstructions / each, 1);
}

std::string WhyNotInTurns(const Kernel& kernel, const LaunchShape& shape, uint32_t most_shared) {
  if (kernel.in_turns == nullptr) return kernel.why_not_in_turns;
  const InTurns& in_turns = *kernel.in_turns;
  if (shape.cooperative) return "it is launched cooperatively: all its blocks wait for each other";
  if (shape.cluster[0] != 0) return "it is launched in clusters";
  if (!GridIsRight(shape)) return "no GPU takes a grid like that";
  const uint64_t shared = uint64_t{in_turns.static_shared_bytes} + shape.dynamic_shared;
  if (shared > most_shared)
    return fmt::format("the {} bytes of shared memory that turns take are not left: a block would need {} of {}",
                       in_turns.plan.added_shared_bytes, shared, most_shared);
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  if (threads > in_turns.max_threads && threads <= kernel.max_threads)
    return fmt::format("with the registers that turns take a block can have {} threads, and has {}",
                       in_turns.max_threads, threads);
  return {};
}

}  // namespace vgpud::driver
