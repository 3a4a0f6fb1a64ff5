// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/guest_window.h"

#include <fmt/core.h>

#include "base/jail/rules.h"
#include "base/sanitizer.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kGap = 64 * 1024;

}  // namespace

Result<Mapping> GuestWindow::Reserve(size_t bytes) {
  if (kSanitizerBuild) return Mapping::Reserve(bytes);
  uint64_t at = kGuestWindowBegin + kGap;
  for (const auto& [begin, end] : taken_) {
    if (begin - at >= bytes + kGap) break;
    at = end;
  }
  if (bytes + kGap > kGuestWindowEnd - at)
    return Fail(std::errc::not_enough_memory, fmt::format("no addresses left for {} bytes of guest memory", bytes));
  Mapping mapping = TRY(Mapping::ReserveAt(at, bytes));
  taken_.emplace(at, at + bytes + kGap);
  return mapping;
}

void GuestWindow::Release(const Mapping& mapping) { taken_.erase(reinterpret_cast<uint64_t>(mapping.data())); }

}  // namespace vgpud::exec
