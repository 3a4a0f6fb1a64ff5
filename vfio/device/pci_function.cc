// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/pci_function.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kRegionBytes[wire::kRegions] = {VGPU_BAR0_BYTES, 0, 0, 0, 0, 0, 0, kConfigBytes, 0};

Result<void> CheckRange(uint32_t region, uint64_t offset, uint64_t bytes) {
  if (region >= wire::kRegions || offset > kRegionBytes[region] || bytes > kRegionBytes[region] - offset || bytes == 0)
    return Fail(std::errc::invalid_argument, fmt::format("region {} has no {:#x}+{:#x}", region, offset, bytes));
  return {};
}

}  // namespace

Result<wire::RegionInfo> PciFunction::RegionInfo(uint32_t index) {
  if (index >= wire::kRegions) return Fail(std::errc::invalid_argument, fmt::format("GET_REGION_INFO index {}", index));
  const uint64_t bytes = kRegionBytes[index];
  // No region can be mapped: QEMU posts BAR writes only when none can.
  return wire::RegionInfo{
      sizeof(wire::RegionInfo), bytes != 0 ? wire::kRegionReadable | wire::kRegionWritable : 0, index, 0, bytes, 0};
}

Result<void> PciFunction::Read(uint32_t region, uint64_t offset, std::span<std::byte> out) {
  TRY(CheckRange(region, offset, out.size()));
  if (vanished_) {
    std::fill(out.begin(), out.end(), std::byte{0xff});
    return {};
  }
  if (region == wire::kBar0) {
    bar0_.Read(static_cast<uint32_t>(offset), out);
    return {};
  }
  // Channels that were ended because the guest has forbidden the use of its memory end a little later.
  config_.SetTransactionsPending(!config_.bus_master() && channels_.any_guest_memory());
  config_.Read(offset, out);
  return {};
}

Result<void> PciFunction::Write(uint32_t region, uint64_t offset, std::span<const std::byte> in) {
  TRY(CheckRange(region, offset, in.size()));
  if (vanished_) return {};
  if (region == wire::kBar0) {
    bar0_.Write(static_cast<uint32_t>(offset), in);
    return {};
  }
  const bool was_master = config_.bus_master();
  if (config_.Write(offset, in)) {
    LOG_LIMITED(limiter_, kInfo, "vf={} function level reset by the guest", figures_.name);
    Reset();
  } else if (was_master && !config_.bus_master()) {
    // Executors can't pause their use of memory: their channels end, and the guest sets the control page anew.
    bar0_.Reset();
    control_.Reset();
  }
  control_.SetBusMaster(config_.bus_master());
  return {};
}

void PciFunction::ResetByHost() {
  bar0_.Reset();
  control_.ResetAndTell();
}

void PciFunction::Reset() {
  guard_.Count(GuardedEvent::kReset);
  config_.Reset();
  bar0_.Reset();
  control_.Reset();
  control_.SetBusMaster(false);
}

void PciFunction::Disconnect() {
  Reset();
  irqs.Clear();
  dma.Clear();
}

}  // namespace vgpud::vfio
