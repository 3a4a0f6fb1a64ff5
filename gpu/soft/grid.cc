#include "gpu/soft/grid.h"

#include <fmt/format.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "gpu/soft/special_registers.h"

namespace vgpud::soft {
namespace {

uint64_t RoundUp(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

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

Grid::Grid(std::shared_ptr<const Program> program, const CodeFunction& function, const LaunchShape& shape,
           std::span<const std::byte> params, DeviceState& device, std::optional<GpuVa> workspace)
    : program_(std::move(program)),
      function_(function),
      shape_(shape),
      device_(device),
      workspace_(workspace),
      params_(params.begin(), params.end()) {
  threads_ = shape.block[0] * shape.block[1] * shape.block[2];
  warps_per_cta_ = (threads_ + kLanes - 1) / kLanes;
  const auto dynamic_base = static_cast<uint32_t>(RoundUp(function.shared_bytes, 16));
  shared_bytes_ = LayOutCta(function, shape).shared_bytes;
  total_ctas_ = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];

  uint32_t area_bytes = kGridAreaFixed;
  area_bytes = std::max(area_bytes, function.grid_area_bytes);
  area_memory_.resize(area_bytes + kSlotAlign);
  area_ = reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(area_memory_.data()), kSlotAlign));
  const uint64_t environment = workspace ? Raw(*workspace) : 0;
  const uint32_t specials[kGridSpecialCount] = {shape.block[0],
                                                shape.block[1],
                                                shape.block[2],
                                                shape.grid[0],
                                                shape.grid[1],
                                                shape.grid[2],
                                                warps_per_cta_,
                                                1,
                                                shared_bytes_,
                                                shape.dynamic_shared,
                                                static_cast<uint32_t>(environment >> 32),
                                                static_cast<uint32_t>(environment)};
  for (uint32_t s = 0; s < kGridSpecialCount; ++s) Broadcast(area_ + s * kSlot32, specials[s]);
  Broadcast(area_ + kDynamicBase32, dynamic_base);
  Broadcast(area_ + kDynamicBase64, uint64_t{dynamic_base});
  for (const ParamSlot& s : function.param_slots) {
    uint64_t v = 0;
    std::memcpy(&v, params_.data() + s.param_offset, s.bytes);
    if (s.is_signed && s.bytes < 8) {
      const uint32_t up = 64 - 8u * s.bytes;
      v = static_cast<uint64_t>(static_cast<int64_t>(v << up) >> up);
    }
    if (s.slot_bytes == 4) {
      Broadcast(area_ + s.area_offset, static_cast<uint32_t>(v));
    } else {
      Broadcast(area_ + s.area_offset, v);
    }
  }
}

Grid::~Grid() {
  if (workspace_) device_.arena.Free(*workspace_, true);
}

void Grid::SetFault(CuStatus status, std::string text) {
  if (!fault_) fault_ = GpuError{status, std::move(text)};
}

std::array<uint32_t, 3> Grid::ThreadOf(const Warp& w, uint32_t lane) const {
  const uint32_t linear = w.index * kLanes + lane;
  return {linear % shape_.block[0], linear / shape_.block[0] % shape_.block[1],
          linear / shape_.block[0] / shape_.block[1]};
}

std::string Grid::DescribeThread(const Warp& w, uint32_t lane) const {
  const auto [x, y, z] = ThreadOf(w, lane);
  return fmt::format("block: [{},{},{}], thread: [{},{},{}]", w.cta->id[0], w.cta->id[1], w.cta->id[2], x, y, z);
}

std::string Grid::Describe(const Warp& w, const Inst* inst, uint32_t lane) const {
  const auto at = static_cast<size_t>(inst - program_->code.data());
  const Origin origin = at < program_->origins.size() ? program_->origins[at] : Origin{0, 0};
  const auto [x, y, z] = ThreadOf(w, lane);
  const CodeFunction& f = *program_->functions[origin.function];
  return fmt::format("kernel {}, {}PTX line {}, block ({},{},{}), thread ({},{},{})", function_.info.name,
                     f.is_kernel ? "" : fmt::format("function {}, ", f.info.name), origin.line, w.cta->id[0],
                     w.cta->id[1], w.cta->id[2], x, y, z);
}

Grid::CtaLayout Grid::LayOutCta(const CodeFunction& function, const LaunchShape& shape) {
  const uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  CtaLayout layout;
  layout.shared_bytes = function.shared_bytes;
  if (shape.dynamic_shared != 0)
    layout.shared_bytes = static_cast<uint32_t>(RoundUp(function.shared_bytes, 16)) + shape.dynamic_shared;
  layout.stack = RoundUp(function.stack_bytes, kSlotAlign);
  layout.shared = RoundUp(layout.shared_bytes, kSlotAlign) + kSlotAlign;
  layout.per_warp =
      kWarpSpecialCount * kSlot32 + layout.stack + RoundUp(size_t{function.local_total} * kLanes, kSlotAlign);
  layout.bytes = kSlotAlign + layout.shared + layout.per_warp * ((threads + kLanes - 1) / kLanes);
  return layout;
}

std::unique_ptr<Cta> Grid::MakeCta() {
  auto cta = std::make_unique<Cta>();
  const size_t warp_area = kWarpSpecialCount * kSlot32;
  const auto [shared_bytes, stack, shared, per_warp, bytes] = LayOutCta(function_, shape_);
  max_resident_ = workspace_ ? total_ctas_ : std::clamp<size_t>(kMaxResidentBytes / bytes, 1, kMaxResidentCtas);
  cta->memory.reset(static_cast<std::byte*>(std::calloc(bytes, 1)));
  if (cta->memory == nullptr) {
    SetFault(CuStatus::kLaunchOutOfResources,
             fmt::format("kernel {}: no {} bytes of host memory for the state of a block", function_.info.name, bytes));
    return nullptr;
  }
  auto* at = reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(cta->memory.get()), kSlotAlign));
  cta->shared = at;
  at += shared;
  cta->warps.resize(warps_per_cta_);
  for (uint32_t n = 0; n < warps_per_cta_; ++n) {
    Warp& w = cta->warps[n];
    w = Warp{};
    w.index = n;
    w.cta = cta.get();
    w.grid = this;
    w.base[kConstants] = program_->constants;
    w.base[kGridArea] = area_;
    w.base[kWarpArea] = at;
    w.stack = at + warp_area;
    w.stack_bytes = static_cast<uint32_t>(stack);
    w.local_memory = w.stack + stack;
    w.local_stride = function_.local_total;
    w.arena = device_.arena.memory();
    w.arena_bytes = device_.arena.bytes();
    w.pages = device_.arena.pages();
    w.shared = cta->shared;
    w.shared_bytes = shared_bytes;
    w.params = params_.data();
    w.extra = program_->extra.data();
    w.param_bytes = static_cast<uint32_t>(params_.size());
    at += per_warp;
    uint32_t tid[3][kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t linear = n * kLanes + l;
      tid[0][l] = linear % shape_.block[0];
      tid[1][l] = linear / shape_.block[0] % shape_.block[1];
      tid[2][l] = linear / shape_.block[0] / shape_.block[1];
    }
    for (uint32_t d = 0; d < 3; ++d) std::memcpy(w.base[kWarpArea] + (kTidX + d) * kSlot32, tid[d], sizeof(tid[d]));
    Broadcast(w.base[kWarpArea] + kWarpId * kSlot32, n);
  }
  return cta;
}

void Grid::InitWarp(Cta& cta, uint32_t n) {
  Warp& w = cta.warps[n];
  const uint32_t lanes = std::min(kLanes, threads_ - n * kLanes);
  w.live = lanes == kLanes ? kFullMask : (1u << lanes) - 1;
  w.mask = w.live;
  w.frame = 0;
  w.local = 0;
  w.base[kFrame] = w.stack;
  w.pc = program_->code.data() + function_.entry;
  w.limit = reinterpret_cast<const Inst*>(UINTPTR_MAX);
  w.split_count = 0;
  w.force_sync = w.yielded = w.sync_seen = false;
  w.fairness = 0;
  w.polls = 0;
  w.selections = 0;
  w.slice = kWarpSlice;
  for (uint32_t d = 0; d < 3; ++d)
    if ((function_.warp_specials >> (kCtaidX + d)) & 1)
      Broadcast(w.base[kWarpArea] + (kCtaidX + d) * kSlot32, cta.id[d]);
  if ((function_.warp_specials >> kSmId) & 1)
    Broadcast(w.base[kWarpArea] + kSmId * kSlot32, (cta.id[0] + cta.id[1] + cta.id[2]) % kMultiprocessors);
}

bool Grid::AdmitNext() {
  if (next_cta_ == total_ctas_ || resident_.size() >= max_resident_ || fault_) return false;
  std::unique_ptr<Cta> cta;
  if (!spare_.empty()) {
    cta = std::move(spare_.back());
    spare_.pop_back();
  } else {
    cta = MakeCta();
    if (cta == nullptr) return false;
  }
  const uint64_t id = next_cta_++;
  cta->id[0] = static_cast<uint32_t>(id % shape_.grid[0]);
  cta->id[1] = static_cast<uint32_t>(id / shape_.grid[0] % shape_.grid[1]);
  cta->id[2] = static_cast<uint32_t>(id / shape_.grid[0] / shape_.grid[1]);
  cta->live_threads = threads_;
  cta->cursor = 0;
  cta->slice = kCtaSlice;
  for (Barrier& b : cta->barriers) b = {};
  for (uint32_t n = 0; n < warps_per_cta_; ++n) InitWarp(*cta, n);
  resident_.push_back(std::move(cta));
  return true;
}

// The CTA whose turn is over goes to the back; new ones are admitted before an old one has its next turn.
void Grid::NextCta() {
  warp_ = nullptr;
  resident_[current_]->slice = kCtaSlice;
  if (AdmitNext()) {
    current_ = resident_.size() - 1;
  } else {
    current_ = (current_ + 1) % resident_.size();
  }
}

// Makes warp_ one that can run. False: all is done, or a fault was set.
bool Grid::PickWarp() {
  for (;;) {
    if (resident_.empty()) {
      if (!AdmitNext()) return false;
      current_ = 0;
    }
    Cta& cta = *resident_[current_];
    if (cta.live_threads == 0) {
      spare_.push_back(std::move(resident_[current_]));
      resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(current_));
      if (AdmitNext()) {
        current_ = resident_.size() - 1;
      } else if (!resident_.empty()) {
        current_ %= resident_.size();
      }
      continue;
    }
    for (uint32_t tried = 0; tried < warps_per_cta_; ++tried) {
      Warp& w = cta.warps[cta.cursor];
      if (w.live != 0 && ((w.mask != 0 && w.limit != nullptr) || Reselect(w))) {
        warp_ = &w;
        return true;
      }
      cta.cursor = (cta.cursor + 1) % warps_per_cta_;
    }
    for (const Warp& w : cta.warps) {
      if (w.live == 0 || w.split_count == 0) continue;
      const auto lane = static_cast<uint32_t>(std::countr_zero(w.splits[0].mask));
      SetFault(CuStatus::kLaunchTimeout,
               Describe(w, w.splits[0].pc, lane) + ": deadlock, every thread of the block waits at a barrier");
      return false;
    }
  }
}

GpuResult<GpuGrid::Progress> Grid::Run(const StopWord& stop, uint64_t budget) {
  const std::atomic<uint32_t>* word = stop.word;
  const uint32_t expected = stop.expected;
  for (;;) {
    if (fault_) return tl::unexpected(*fault_);
    if (word->load(std::memory_order_relaxed) != expected) return Progress::kStopped;
    if (budget == 0) return Progress::kYield;
    if (warp_ == nullptr && !PickWarp()) {
      if (fault_) return tl::unexpected(*fault_);
      return Progress::kDone;
    }
    Warp& w = *warp_;
    const uint64_t most = count_threads_ ? 1 : std::min(w.slice, budget);
    if (count_threads_) thread_instructions_ += static_cast<uint64_t>(std::popcount(w.mask));
    uint64_t left = most;
    const Inst* i = w.pc;
    // One condition for all reasons to leave: the split's limit (nullptr after an event), the stop word, the count.
    do {
      i = i->fn(w, i);
      --left;
    } while ((i < w.limit) & (word->load(std::memory_order_relaxed) == expected) & (left != 0));
    w.pc = i;
    const uint64_t ran = most - left;
    executed_ += ran;
    budget -= ran;
    w.slice -= ran;
    if (fault_) continue;
    Cta& cta = *w.cta;
    cta.slice -= std::min(cta.slice, ran);
    const bool event = !(i < w.limit);
    const bool over = w.slice == 0 || w.yielded;
    if (event || (over && w.split_count != 0)) {
      if (over) w.fairness += kSelectionsPerSlice;
      if (w.yielded) cta.slice -= std::min(cta.slice, kWarpSlice);
      if (!Reselect(w) || over) {
        w.slice = kWarpSlice;
        w.yielded = false;
        cta.cursor = (w.index + 1) % warps_per_cta_;
        warp_ = nullptr;
      }
    } else if (over) {
      w.slice = kWarpSlice;
      cta.cursor = (w.index + 1) % warps_per_cta_;
      warp_ = nullptr;
    }
    if (warp_ == nullptr && cta.slice == 0 && cta.live_threads != 0) NextCta();
  }
}

}  // namespace vgpud::soft
