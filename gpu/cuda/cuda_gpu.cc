// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/cuda/cuda_grid.h"
#include "gpu/cuda/module/cuda_module.h"
#include "gpu/cuda/piece_grid.h"
#include "gpu/cuda/rung.h"
#include "gpu/cuda/turn_grid.h"

namespace vgpud::driver {
namespace {

// Of a launch behind another: at the end of a turn the GPU has to begin each, which leaves at once.
constexpr uint64_t kMostBlocksBehind = 1 << 16;
// How drivers hand memory out: small allocations share a large page, others have pages of their own.
constexpr uint64_t kSmallGrain = 512, kLargeGrain = uint64_t{2} << 20, kSmall = uint64_t{1} << 20;

GpuResult<void> CheckWord(GpuVa address, uint32_t bytes) {
  if ((bytes == 4 || bytes == 8) && Raw(address) % bytes == 0) return {};
  return GpuFail(CuStatus::kInvalidValue, fmt::format("a word of {} bytes at {:#x}", bytes, Raw(address)));
}

}  // namespace

CudaGpu::CudaGpu(Card& card, Printed& printed)
    : card_(card),
      printed_(printed),
      info_(card.Describe()),
      shared_(std::make_unique<SharedHost>(card, ranges_)),
      mappable_(std::make_unique<Mappable>(card, ranges_)),
      stops_(std::make_unique<Stops>(card)),
      rooms_(std::make_unique<SlotRooms>(card)),
      lanes_(std::make_unique<Lanes>(card)),
      movable_(card.moves_memory() ? std::make_unique<Movable>(card, *lanes_) : nullptr),
      textures_(std::make_unique<Textures>(card, ranges_, *lanes_)) {
  size_t bytes = 0;
  if (card.api().CtxGetLimit(&bytes, ContextLimit::kHeapBytes) == kOk) heap_bytes_ = bytes;
}

bool CudaGpu::SetHeapBytes(uint64_t bytes) {
  card_.Bind();
  if (card_.api().CtxSetLimit(ContextLimit::kHeapBytes, bytes) != kOk) return false;
  heap_bytes_ = std::max(heap_bytes_, bytes);
  return true;
}

CudaGpu::~CudaGpu() {
  textures_.reset();
  if (const Ends ends = lanes_->ends; ends.by_safepoints + ends.by_blocks + ends.by_gate != 0)
    LOG(kInfo, "left the GPU with kernels on it: {} ended by safepoints, {} by blocks, {} waited for by the gate",
        ends.by_safepoints, ends.by_blocks, ends.by_gate);
  lanes_.reset();
  rooms_.reset();
  stops_.reset();
  if (const Status status = card_.Reset(); status != kOk)
    LOG(kWarning, "the driver can't reset its context: {}: what comes next in this process will fail",
        card_.api().Describe(status));
  // Kernels that had not ended have.
  movable_.reset();
  mappable_.reset();
  shared_.reset();
  printed_.Collect();
  printed_.Clear();
}

uint64_t CudaGpu::AllocationBytes(uint64_t bytes) const {
  return CheckedSize(bytes).AlignedUp(bytes < kSmall ? kSmallGrain : kLargeGrain).saturated();
}

GpuResult<GpuVa> CudaGpu::Alloc(uint64_t bytes) {
  if (bytes == 0) return GpuFail(CuStatus::kInvalidValue, "an allocation of no bytes");
  if (movable_ != nullptr && bytes >= Movable::kLeast) {
    const GpuVa address = TRY(movable_->Alloc(bytes));
    ranges_.Add(Raw(address), bytes, Ranges::Kind::kAllocation);
    return address;
  }
  card_.Bind();
  DevicePtr address = 0;
  if (const Status status = card_.api().MemAlloc(&address, bytes); status != kOk)
    return GpuFail(static_cast<CuStatus>(status),
                   fmt::format("the GPU gives no {} bytes: {}", bytes, card_.api().Describe(status)));
  ranges_.Add(address, bytes, Ranges::Kind::kAllocation);
  return GpuVa{address};
}

GpuResult<uint64_t> CudaGpu::Free(GpuVa address) {
  const auto bytes = ranges_.Remove(Raw(address), Ranges::Kind::kAllocation);
  if (!bytes) return GpuFail(CuStatus::kInvalidValue, fmt::format("{:#x} is no allocation", Raw(address)));
  textures_->Forget(Raw(address), *bytes);
  if (movable_ != nullptr && movable_->Free(address)) return AllocationBytes(*bytes);
  card_.Bind();
  if (const Status status = card_.api().MemFree(Raw(address)); status != kOk)
    return GpuFail(static_cast<CuStatus>(status), "cuMemFree: " + card_.api().Describe(status));
  return AllocationBytes(*bytes);
}

GpuResult<void> CudaGpu::Check(GpuVa address, uint64_t bytes) const {
  if (Contains(address, bytes)) return {};
  return GpuFail(CuStatus::kInvalidValue,
                 fmt::format("{} bytes at {:#x} are not inside one allocation", bytes, Raw(address)));
}

template <class F>
GpuResult<void> CudaGpu::Copy(const char* what, Span read, Span written, F start) {
  card_.Bind();
  const Stream stream = TRY(lanes_->copies());
  Status status = kOk;
  for (const Span& span : {read, written})
    if (status == kOk && span.bytes != 0) status = textures_->BeforeCopy(Raw(span.address), span.bytes, stream);
  if (status == kOk) status = start(stream);
  if (status == kOk && written.bytes != 0) status = textures_->AfterWrite(Raw(written.address), written.bytes, stream);
  if (status == kOk) status = card_.api().StreamSynchronize(stream);
  if (status == kOk) return {};
  return GpuFail(static_cast<CuStatus>(status), fmt::format("{}: {}", what, card_.api().Describe(status)));
}

GpuResult<std::byte*> CudaGpu::InHost(GpuVa address, uint64_t bytes, bool written) {
  if (std::byte* const shared = shared_->Find(address, bytes); shared != nullptr) return shared;
  if (movable_ == nullptr) return nullptr;
  return TRY(movable_->OffCard(address, bytes, written)).data();
}

GpuResult<void> CudaGpu::CopyIn(GpuVa to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  TRY(Check(to, from.size()));
  if (std::byte* const here = TRY(InHost(to, from.size(), true)); here != nullptr) {
    std::memmove(here, from.data(), from.size());
    return {};
  }
  return Copy("copy to the device", {}, {to, from.size()},
              [&](Stream stream) { return card_.api().MemcpyHtoDAsync(Raw(to), from.data(), from.size(), stream); });
}

GpuResult<void> CudaGpu::CopyOut(std::span<std::byte> to, GpuVa from) {
  if (to.empty()) return {};
  TRY(Check(from, to.size()));
  if (const std::byte* const here = TRY(InHost(from, to.size(), false)); here != nullptr) {
    std::memmove(to.data(), here, to.size());
    return {};
  }
  return Copy("copy from the device", {from, to.size()}, {},
              [&](Stream stream) { return card_.api().MemcpyDtoHAsync(to.data(), Raw(from), to.size(), stream); });
}

GpuResult<void> CudaGpu::CopyDev(GpuVa to, GpuVa from, uint64_t bytes) {
  if (bytes == 0) return {};
  TRY(Check(to, bytes));
  TRY(Check(from, bytes));
  if (const std::byte* const here = TRY(InHost(from, bytes, false)); here != nullptr) return CopyIn(to, {here, bytes});
  if (std::byte* const here = TRY(InHost(to, bytes, true)); here != nullptr) return CopyOut({here, bytes}, from);
  return Copy("copy within the device", {from, bytes}, {to, bytes},
              [&](Stream stream) { return card_.api().MemcpyDtoDAsync(Raw(to), Raw(from), bytes, stream); });
}

GpuResult<void> CudaGpu::Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) {
  if (count == 0) return {};
  const uint64_t bytes = (CheckedSize(count) * element_bytes).saturated();
  TRY(Check(to, bytes));
  if (std::byte* const here = TRY(InHost(to, bytes, true)); here != nullptr) {
    for (uint64_t at = 0; at < bytes; at += element_bytes) std::memcpy(here + at, &value, element_bytes);
    return {};
  }
  const Api& api = card_.api();
  return Copy("fill", {}, {to, bytes}, [&](Stream stream) {
    switch (element_bytes) {
      case 1:
        return api.MemsetD8Async(Raw(to), static_cast<uint8_t>(value), count, stream);
      case 2:
        return api.MemsetD16Async(Raw(to), static_cast<uint16_t>(value), count, stream);
      default:
        return api.MemsetD32Async(Raw(to), value, count, stream);
    }
  });
}

template <class T>
GpuResult<uint64_t> CudaGpu::ReadWordAs(GpuVa address) {
  TRY(Check(address, sizeof(T)));
  if (std::byte* const here = TRY(InHost(address, sizeof(T), false)); here != nullptr)
    return std::atomic_ref(*reinterpret_cast<T*>(here)).load(std::memory_order_acquire);
  // Copies of an aligned word are done in one piece.
  T word = 0;
  TRY(CopyOut(std::as_writable_bytes(std::span{&word, 1}), address));
  return word;
}

template <class T>
GpuResult<void> CudaGpu::WriteWordAs(GpuVa address, T word) {
  TRY(Check(address, sizeof word));
  std::byte* const here = TRY(InHost(address, sizeof word, true));
  if (here == nullptr) return CopyIn(address, std::as_bytes(std::span{&word, 1}));
  std::atomic_ref(*reinterpret_cast<T*>(here)).store(word, std::memory_order_release);
  return {};
}

GpuResult<uint64_t> CudaGpu::ReadWord(GpuVa address, uint32_t bytes) {
  TRY(CheckWord(address, bytes));
  return bytes == 8 ? ReadWordAs<uint64_t>(address) : ReadWordAs<uint32_t>(address);
}

GpuResult<void> CudaGpu::WriteWord(GpuVa address, uint32_t bytes, uint64_t value) {
  TRY(CheckWord(address, bytes));
  return bytes == 8 ? WriteWordAs<uint64_t>(address, value)
                    : WriteWordAs<uint32_t>(address, static_cast<uint32_t>(value));
}

GpuResult<std::unique_ptr<GpuModule>> CudaGpu::Load(std::span<const std::byte> image) {
  code_bytes_read_ += image.size();
  return CudaModule::Load(card_, ranges_, image);
}

std::string CudaGpu::WhyNotInTurns(const FunctionInfo& function, const LaunchShape& shape) {
  const auto most = [this](auto attribute) { return info_.attributes[attribute]; };
  const int shared = std::max(most(cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                              most(cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  std::string why_not =
      driver::WhyNotInTurns(static_cast<const Kernel&>(function), shape, static_cast<uint32_t>(std::max(shared, 0)));
  if (why_not.empty())
    if (const auto prepared = stops_->Prepare(); !prepared) why_not = "no stop word: " + prepared.error().text;
  return why_not;
}

std::string CudaGpu::WhyAsItIs(const Kernel& kernel, const LaunchShape& shape, const Short& launch) {
  std::string why = WhyNotInTurns(kernel, shape);
  if (why.empty() && EndsSoon(kernel, launch, shape, card_.multiprocessors()))
    why = "its threads end after a few instructions, and so few of them soon";
  return why;
}

void CudaGpu::Tell(const Kernel& kernel, rewrite::Rung rung, const std::string& why_not_better) {
  const unsigned bit = 1u << static_cast<unsigned>(rung);
  unsigned suppressed = 0;
  if ((kernel.told & bit) != 0 || !rungs_told_.Allow(&suppressed)) return;
  kernel.told |= bit;
  LOG(kInfo, "kernel {} is taken away by {}{}{}", kernel.name,
      rung == rewrite::Rung::kNone ? "the gate only" : RungName(rung), why_not_better.empty() ? "" : ": ",
      why_not_better);
}

uint64_t CudaGpu::RoomFor(const FunctionInfo& function, const LaunchShape& shape) {
  card_.Bind();
  return SlotNeedOf(card_, static_cast<const Kernel&>(function), shape).bytes;
}

GpuResult<std::unique_ptr<GpuGrid>> CudaGpu::Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                    std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  const auto& kernel = static_cast<const Kernel&>(function);
  TRY(CheckLaunch(kernel, shape, params, max_dynamic_shared));
  TRY(textures_->BeforeLaunch());
  const Short launch = ShortOf(kernel, shape, params);
  if (const std::string why_not = WhyAsItIs(kernel, shape, launch); !why_not.empty()) {
    Tell(kernel, rewrite::Rung::kNone, why_not);
    return CudaGrid::Launch(card_, *lanes_, printed_, kernel, shape, params, max_dynamic_shared);
  }
  card_.Bind();
  if (launch.pieces != nullptr) {
    Tell(kernel, rewrite::Rung::kBlocks,
         "its threads end after a few instructions, so that a part of its blocks at a time is soon done");
    return PieceGrid::Launch(card_, *lanes_, printed_, kernel, launch, shape, params);
  }
  const SlotNeed need = SlotNeedOf(card_, kernel, shape);
  auto room = need.slots != 0 ? rooms_->Take(need.bytes) : std::nullopt;
  const rewrite::KernelPlan& plan = kernel.in_turns->plan;
  std::string why_not = plan.reasons.empty() ? "" : plan.reasons.front();
  if (plan.rung == rewrite::Rung::kSafepoints && !room)
    why_not = need.slots == 0 ? "the driver does not say how many of its blocks run at once"
                              : fmt::format("the VF has no VRAM for the {} bytes that {} of its blocks can save",
                                            SlotRooms::Rounded(need.bytes), need.slots);
  Tell(kernel, room ? rewrite::Rung::kSafepoints : rewrite::Rung::kBlocks, why_not);
  return TurnGrid::Launch({card_, *lanes_, printed_, *stops_, *rooms_}, kernel, shape, params, room, need.slots);
}

bool CudaGpu::LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                           const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  const auto& kernel = static_cast<const Kernel&>(function);
  const auto place = static_cast<const LaneGrid&>(before).Behind();
  if (!place || textures_->mixed()) return false;
  card_.Bind();
  if (grid != nullptr) return static_cast<LaneGrid&>(*grid).FollowAgain(*place);
  // What is wrong with it, it will hear when it comes first.
  if (!CheckLaunch(kernel, shape, params, max_dynamic_shared)) return false;
  GpuResult<std::unique_ptr<GpuGrid>> launched = nullptr;
  const Short launch_is = ShortOf(kernel, shape, params);
  const bool stoppable = WhyNotInTurns(kernel, shape).empty();
  const bool gate = !stoppable || (!place->expected && !WhyAsItIs(kernel, shape, launch_is).empty());
  if (gate) {
    if (place->expected || !CudaGrid::Fits(*lanes_, kernel, shape)) return false;
    launched = CudaGrid::Launch(card_, *lanes_, printed_, kernel, shape, params, max_dynamic_shared, place);
  } else {
    if (launch_is.pieces != nullptr) return false;
    if ((CheckedSize(shape.grid[0]) * shape.grid[1] * shape.grid[2]).saturated() > kMostBlocksBehind) return false;
    const SlotNeed need = SlotNeedOf(card_, kernel, shape);
    auto room = need.slots != 0 ? rooms_->Take(need.bytes) : std::nullopt;
    if (kernel.in_turns->plan.rung == rewrite::Rung::kSafepoints && !room) return false;
    launched =
        TurnGrid::Launch({card_, *lanes_, printed_, *stops_, *rooms_}, kernel, shape, params, room, need.slots, place);
  }
  if (!launched) return false;
  grid = std::move(*launched);
  return true;
}

size_t CudaGpu::TakePrinted(std::span<std::byte> out, bool* to_stderr) {
  *to_stderr = false;
  return printed_.Take(out);
}

void CudaGpu::WaitUntilIdle() {
  if (!Busy()) return;
  card_.Bind();
  stops_->Raise();
  for (const Event event : lanes_->gate_events)
    if (card_.api().EventQuery(event) == kNotReady) ++lanes_->ends.by_gate;
  ++lanes_->waits;
  // What went wrong is told by the kernel that did.
  (void)card_.api().CtxSynchronize();
}

}  // namespace vgpud::driver
