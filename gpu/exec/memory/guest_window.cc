// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/guest_window.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/jail/rules.h"
#include "base/sanitizer.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGap = 64 * 1024;
// Behind the guest window, where this process may map memory of its own.
constexpr uint64_t kDeviceMemory = kGuestWindowEnd + ReachSpace::kGuard / 2;
constexpr uint64_t kKernelsReach = kDeviceMemory - ReachSpace::kBytes;
static_assert(kDeviceMemory - ReachSpace::kGuard < kGuestFence);

std::byte* At(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

GuestWindow::GuestWindow()
    : GuestWindow({At(kGuestWindowBegin), (kFixedAddresses ? kKernelsReach : kGuestWindowEnd) - kGuestWindowBegin},
                  kPage) {}

GuestWindow::GuestWindow(std::span<std::byte> range, uint64_t alignment)
    : begin_(reinterpret_cast<uint64_t>(range.data())),
      end_(begin_ + range.size()),
      alignment_(alignment),
      from_(begin_) {}

Result<Mapping> GuestWindow::Reserve(size_t bytes) {
  if (!kFixedAddresses) return Mapping::Reserve(bytes);
  const auto aligned = [this](uint64_t at) { return (at + alignment_ - 1) / alignment_ * alignment_; };
  uint64_t at = aligned(from_ + kGap);
  for (const auto& [begin, end] : taken_) {
    if (end <= at) continue;
    if (begin > at && begin - at >= bytes + kGap) break;
    at = aligned(end);
  }
  if (at >= end_ || bytes + kGap > end_ - at)
    return Fail(std::errc::not_enough_memory, fmt::format("no addresses left for {} bytes of guest memory", bytes));
  Mapping mapping = TRY(Mapping::ReserveAt(at, bytes));
  taken_.emplace(at, at + bytes + kGap);
  return mapping;
}

void GuestWindow::Release(const Mapping& mapping) { taken_.erase(reinterpret_cast<uint64_t>(mapping.data())); }

void GuestWindow::BeginAt(uint32_t part, uint32_t parts) {
  if (part < parts) from_ = begin_ + (end_ - begin_) / parts / alignment_ * alignment_ * part;
}

ReachSpace KernelReach() { return kFixedAddresses ? ReachSpace{At(kDeviceMemory)} : ReachSpace{}; }

}  // namespace vgpud::exec
