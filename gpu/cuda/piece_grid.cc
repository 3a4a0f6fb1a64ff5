// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/piece_grid.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "gpu/cuda/cuda_grid.h"
#include "gpu/cuda/rung.h"

namespace vgpud::driver {
namespace {

// On the GPU at once, so that it has work while the executor looks at the one that has ended.
constexpr size_t kMostPieces = 2;
constexpr uint64_t kMostPieceNs = 125'000, kMostPieceBlocks = 1 << 20;

}  // namespace

uint64_t NextPieceBlocks(uint64_t blocks, uint64_t took_ns) {
  if (took_ns > kMostPieceNs) return std::max<uint64_t>(blocks / 2, 1);
  return took_ns < kMostPieceNs / 2 ? std::min(blocks * 2, kMostPieceBlocks) : blocks;
}

PieceGrid::PieceGrid(const Card& card, Lanes& lanes, Printed& printed, const Kernel& kernel, const Short& launch,
                     const LaunchShape& shape, std::span<const std::byte> params)
    : card_(card),
      lanes_(lanes),
      printed_(printed),
      kernel_(kernel),
      launch_(launch),
      shape_(shape),
      params_(params.begin(), params.end()),
      turns_(launch.pieces->plan, shape.grid, shape.block[0] * shape.block[1] * shape.block[2], shape.dynamic_shared,
             0) {
  params_.resize(launch.pieces->plan.turn_offset + sizeof(rewrite::Turn));
  // What was measured of shorter ones says nothing of this one.
  if (kernel_.piece_blocks != 0 && launch.most <= kernel_.piece_most) return;
  kernel_.piece_blocks = FirstPieceBlocks(launch, shape, card.multiprocessors());
  kernel_.piece_most = launch.most;
}

GpuResult<void> PieceGrid::Prepare() {
  const InTurns& in_turns = *launch_.pieces;
  card_.Bind();
  if (shape_.dynamic_shared <= in_turns.dynamic_shared_set) return {};
  const Status set = card_.api().FuncSetAttribute(in_turns.handle, FunctionAttribute::kMaxDynamicShared,
                                                  static_cast<int>(shape_.dynamic_shared));
  if (set != kOk) return tl::unexpected(KernelFailed(card_, set, kernel_, "dynamic shared memory"));
  in_turns.dynamic_shared_set = shape_.dynamic_shared;
  return {};
}

GpuResult<std::unique_ptr<GpuGrid>> PieceGrid::Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                      const Kernel& kernel, const Short& launch,
                                                      const LaunchShape& shape, std::span<const std::byte> params) {
  std::unique_ptr<PieceGrid> grid(new PieceGrid(card, lanes, printed, kernel, launch, shape, params));
  TRY(grid->Prepare());
  TRY(grid->Begin());
  grid->begun_ns_ = grid->pieces_.front().launched_ns;
  grid->begun_waits_ = lanes.waits;
  return grid;
}

PieceGrid::~PieceGrid() {
  card_.Bind();
  Abandon();
}

void PieceGrid::Abandon() {
  for (Piece& piece : pieces_) lanes_.Abandon(std::move(piece.lane));
  pieces_.clear();
}

GpuResult<void> PieceGrid::Begin() {
  const Api& api = card_.api();
  const rewrite::GridTurns::Launch launch = turns_.Next(kernel_.piece_blocks);
  Lane lane = TRY(pieces_.empty() ? lanes_.Take() : lanes_.TakeBehind(pieces_.back().lane));
  std::memcpy(params_.data() + launch_.pieces->plan.turn_offset, &launch.turn, sizeof launch.turn);
  size_t bytes = params_.size();
  void* extra[] = {reinterpret_cast<void*>(kParamBuffer), params_.data(), reinterpret_cast<void*>(kParamBufferBytes),
                   &bytes, reinterpret_cast<void*>(kParamEnd)};
  LaunchConfig config{};
  std::copy_n(launch.grid, 3, config.grid);
  std::copy_n(shape_.block, 3, config.block);
  config.dynamic_shared = shape_.dynamic_shared;
  config.stream = lane.stream();
  Status status = api.LaunchKernelEx(&config, launch_.pieces->handle, nullptr, extra);
  if (status == kOk) status = api.EventRecord(lane.done, lane.stream());
  if (status != kOk) {
    lanes_.Abandon(std::move(lane));
    return tl::unexpected(KernelFailed(card_, status, kernel_, "launch"));
  }
  TRY(turns_.Note(launch, {}));
  pieces_.push_back({std::move(lane), MonotonicNs(), lanes_.waits, launch.blocks});
  return {};
}

GpuResult<void> PieceGrid::End(Status status) {
  printed_.Collect();
  if (status != kOk) {
    Abandon();
    return tl::unexpected(KernelFailed(card_, status, kernel_, "kernel"));
  }
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  const uint64_t ended_ns = MonotonicNs(), begun_ns = std::max(piece.launched_ns, piece.lane.on->ended_ns);
  piece.lane.on->ended_ns = ended_ns;
  // Not one that was cut short by the end of a row, nor if the executor was off the GPU meanwhile.
  if (piece.waits == lanes_.waits && piece.blocks == kernel_.piece_blocks)
    kernel_.piece_blocks = NextPieceBlocks(piece.blocks, ended_ns - begun_ns);
  lanes_.GiveBack(std::move(piece.lane));
  if (!launch_.by_launch && turns_.done() && pieces_.empty() && begun_waits_ == lanes_.waits)
    kernel_.length.Note(ended_ns - begun_ns_, turns_.blocks());
  return {};
}

GpuResult<GpuGrid::Progress> PieceGrid::Run(const StopWord& stop, uint64_t) {
  card_.Bind();
  const Api& api = card_.api();
  for (;;) {
    while (!stop.Stopped() && !turns_.done() && pieces_.size() < kMostPieces) TRY(Begin());
    if (pieces_.empty() && turns_.done()) return Progress::kDone;
    if (pieces_.empty()) {
      ++lanes_.ends.by_blocks;
      return Progress::kStopped;
    }
    Status status = wait_.Await(api, pieces_.front().lane.done, stop);
    if (status == kNotReady && !stop.Stopped()) return Progress::kYield;
    if (status == kNotReady) status = api.EventSynchronize(pieces_.front().lane.done);
    TRY(End(status));
    if (!stop.Stopped() && !(turns_.done() && pieces_.empty())) return Progress::kYield;
  }
}

}  // namespace vgpud::driver
