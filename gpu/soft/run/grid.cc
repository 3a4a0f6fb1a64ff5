// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/grid.h"

#include <fmt/format.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "gpu/soft/code/special_registers.h"
#include "gpu/soft/run/launch_check.h"

namespace vgpud::soft {
namespace {

uint64_t RoundUp(uint64_t v, uint64_t to) { return CheckedSize(v).AlignedUp(to).saturated(); }

// Parameters that are placed between two looks at the stop word: some 0.1 ms where their memory is fresh.
constexpr size_t kSlotsAtOnce = 512;

template <class T>
void Broadcast(std::byte* at, T value) {
  for (uint32_t l = 0; l < kLanes; ++l) std::memcpy(at + l * sizeof(T), &value, sizeof(T));
}

}  // namespace

// .rz/.rm/.rp: the same handler under another rounding mode. It is called through a pointer, so no arithmetic moves
// across the switch.
const Inst* OpRounded(Warp& w, const Inst* i) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr((mode & ~0x6000u) | static_cast<unsigned>(i->aux) << 13);
  i->inner(w, i);
  _mm_setcsr(mode);
  return i + 1;
}

GridFacts Grid::Facts(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
                      std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace) {
  FrameLayout frames = LayOutFrames(*program, function);
  const CtaLayout layout = LayOutCta(function, shape, frames.stack_bytes);
  const uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  const uint64_t ctas = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  const std::array<uint32_t, 3> cluster = ClusterOf(function, shape);
  const uint32_t cluster_size = cluster[0] * cluster[1] * cluster[2];
  const size_t fitting =
      std::clamp<size_t>(kMaxResidentBytes / device.workers.threads() / layout.bytes, 1, kMaxResidentCtas);
  const size_t max_resident = workspace ? ctas : std::max<size_t>(fitting / cluster_size, 1) * cluster_size;
  return {.program = std::move(program),
          .function = function,
          .shape = shape,
          .device = device,
          .workspace = workspace,
          .frames = std::move(frames),
          .layout = layout,
          .threads = threads,
          .warps_per_cta = (threads + kLanes - 1) / kLanes,
          .ctas = ctas,
          .cluster = {cluster[0], cluster[1], cluster[2]},
          .cluster_size = cluster_size,
          .max_resident = max_resident,
          .params = {params.begin(), params.end()},
          .area_memory = {},
          .area = nullptr};
}

Grid::Grid(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
           std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace)
    : facts_(Facts(std::move(program), function, shape, params, device, workspace)) {
  sets_.push_back(std::make_unique<CtaSet>(*this, facts_));
  const auto dynamic_base = MustFit<uint32_t>(RoundUp(function.shared_bytes, 16));
  uint32_t area_bytes = kGridAreaFixed;
  area_bytes = std::max(area_bytes, function.grid_area_bytes);
  // Not zeroed: all of it is written, and what is large is written in pieces.
  facts_.area_memory = std::make_unique_for_overwrite<std::byte[]>(size_t{area_bytes} + kSlotAlign);
  std::byte* const area =
      reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(facts_.area_memory.get()), kSlotAlign));
  facts_.area = area;
  const uint64_t environment = workspace ? Raw(*workspace) : 0;
  const uint32_t specials[kGridSpecialCount] = {shape.block[0],
                                                shape.block[1],
                                                shape.block[2],
                                                shape.grid[0],
                                                shape.grid[1],
                                                shape.grid[2],
                                                facts_.warps_per_cta,
                                                1,
                                                facts_.layout.own_shared,
                                                shape.dynamic_shared,
                                                static_cast<uint32_t>(environment >> 32),
                                                static_cast<uint32_t>(environment),
                                                facts_.layout.reserved_at,
                                                facts_.layout.reserved_at + kReservedShared / 2,
                                                facts_.layout.reserved_at + kReservedShared,
                                                facts_.cluster[0],
                                                facts_.cluster[1],
                                                facts_.cluster[2],
                                                shape.grid[0] / facts_.cluster[0],
                                                shape.grid[1] / facts_.cluster[1],
                                                shape.grid[2] / facts_.cluster[2],
                                                facts_.cluster_size,
                                                IsExplicitCluster(function, shape) ? kFullMask : 0u,
                                                facts_.layout.own_shared + device.capability.reserved_shared};
  for (uint32_t s = 0; s < kGridSpecialCount; ++s) Broadcast(area + s * kSlot32, specials[s]);
  Broadcast(area + kDynamicBase32, dynamic_base);
  Broadcast(area + kDynamicBase64, uint64_t{dynamic_base});
}

void Grid::PlaceParam(const ParamSlot& s) const {
  uint64_t v = 0;
  std::memcpy(&v, facts_.params.data() + s.param_offset, s.bytes);
  if (s.is_signed && s.bytes < 8) {
    const uint32_t up = 64 - 8u * s.bytes;
    v = static_cast<uint64_t>(static_cast<int64_t>(v << up) >> up);
  }
  if (s.slot_bytes == 4) {
    Broadcast(facts_.area + s.area_offset, static_cast<uint32_t>(v));
  } else {
    Broadcast(facts_.area + s.area_offset, v);
  }
}

bool Grid::PlaceParams(const StopWord& stop) {
  const std::vector<ParamSlot>& slots = facts_.function.param_slots;
  while (placed_ < slots.size()) {
    const size_t end = std::min(placed_ + kSlotsAtOnce, slots.size());
    for (; placed_ < end; ++placed_) PlaceParam(slots[placed_]);
    if (placed_ < slots.size() && stop.Stopped()) return false;
  }
  return true;
}

Grid::~Grid() {
  if (facts_.workspace) facts_.device.arena.Free(*facts_.workspace, true);
}

void Grid::SetFault(CuStatus status, std::string text) {
  MutexLock lock(fault_mutex_);
  if (!fault_) fault_ = GpuError{status, std::move(text)};
  faulted_.store(true, std::memory_order_release);
}

std::array<uint32_t, 3> Grid::ThreadOf(const Warp& w, uint32_t lane) const {
  const uint32_t linear = w.index * kLanes + lane;
  return {linear % facts_.shape.block[0], linear / facts_.shape.block[0] % facts_.shape.block[1],
          linear / facts_.shape.block[0] / facts_.shape.block[1]};
}

std::string Grid::DescribeThread(const Warp& w, uint32_t lane) const {
  const auto [x, y, z] = ThreadOf(w, lane);
  return fmt::format("block: [{},{},{}], thread: [{},{},{}]", w.cta->id[0], w.cta->id[1], w.cta->id[2], x, y, z);
}

std::string Grid::Describe(const Warp& w, const Inst* inst, uint32_t lane) const {
  const auto at = static_cast<size_t>(inst - facts_.program->code.data());
  const Origin origin = at < facts_.program->origins.size() ? facts_.program->origins[at] : Origin{0, 0};
  const auto [x, y, z] = ThreadOf(w, lane);
  const CodeFunction& f = *facts_.program->functions[origin.function];
  std::string source = facts_.program->shared->source_lines.Find(origin.function, origin.line);
  if (!source.empty()) source += ", ";
  return fmt::format("kernel {}, {}{}PTX line {}, block ({},{},{}), thread ({},{},{})", facts_.function.info.name,
                     f.is_kernel ? "" : fmt::format("function {}, ", f.info.name), source, origin.line, w.cta->id[0],
                     w.cta->id[1], w.cta->id[2], x, y, z);
}

uint64_t Grid::warp_instructions() const {
  uint64_t sum = 0;
  for (const auto& set : sets_) sum += set->warp_instructions();
  return sum;
}

uint64_t Grid::short_of() const { return facts_.layout.bytes * (facts_.workspace ? facts_.ctas : facts_.cluster_size); }

uint64_t Grid::held_bytes() const {
  uint64_t blocks = 0;
  for (const auto& set : sets_) blocks += set->held_blocks();
  return blocks * facts_.layout.bytes;
}

bool Grid::holds_blocks() const {
  return std::any_of(sets_.begin(), sets_.end(), [](const auto& set) { return set->holds_blocks(); });
}

void Grid::CountThreads() {
  alone_ = true;
  sets_[0]->CountThreads();
}

std::optional<uint64_t> Grid::TakeCluster() {
  uint64_t next = next_cta_.load(std::memory_order_relaxed);
  do {
    if (next == facts_.ctas) return std::nullopt;
  } while (!next_cta_.compare_exchange_weak(next, next + facts_.cluster_size, std::memory_order_relaxed));
  return next;
}

}  // namespace vgpud::soft
