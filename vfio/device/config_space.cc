// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/config_space.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {
namespace {

// 16 bits of it.
struct Field {
  uint16_t offset;
  uint16_t value;
  uint16_t mask;  // writable bits
};

constexpr uint16_t At(size_t cap, size_t offset) { return static_cast<uint16_t>(cap + offset); }

constexpr size_t kDeviceControl = kExpressCap + 8;
constexpr size_t kDeviceStatus = kExpressCap + 10;
constexpr uint8_t kTransactionsPending = 0x20;
constexpr size_t kCommand = 4;
constexpr uint8_t kBusMaster = 0x04;
constexpr uint8_t kInitiateFlr = 0x80;  // in the high byte of Device Control

static_assert(VGPU_BAR0_BYTES == 0x10000);
constexpr Field kFields[] = {
    {0x00, VGPU_PCI_VENDOR_ID, 0},
    {0x02, VGPU_PCI_DEVICE_ID, 0},
    {0x04, 0, 0x0546},  // Command: memory, bus master, parity, SERR, INTx disable
    {0x06, 0x0010, 0},  // Status: capability list
    {0x08, VGPU_ABI_VERSION | (VGPU_PCI_CLASS & 0xff) << 8, 0},
    {0x0a, VGPU_PCI_CLASS >> 8, 0},
    {0x0c, 0, 0x00ff},  // cache line size
    {0x12, 0, 0xffff},  // BAR0: 32-bit memory, not prefetchable; a guest finds its size in the bits that it can write
    {0x2c, VGPU_PCI_VENDOR_ID, 0},
    {0x2e, VGPU_PCI_DEVICE_ID, 0},
    {0x34, kPmCap, 0},
    {0x3c, 0x0100, 0x00ff},  // interrupt pin: INTA; interrupt line
    // Power management: version 3, no PME; D-state writable, no soft reset on D3hot -> D0.
    {At(kPmCap, 0x00), 0x0001 | (kMsiCap << 8), 0},
    {At(kPmCap, 0x02), 0x0003, 0},
    {At(kPmCap, 0x04), 0x0008, 0x0003},
    // MSI: 64-bit address, one vector, no per-vector mask.
    {At(kMsiCap, 0x00), 0x0005 | (kExpressCap << 8), 0},
    {At(kMsiCap, 0x02), 0x0080, 0x0071},
    {At(kMsiCap, 0x04), 0, 0xfffc},
    {At(kMsiCap, 0x06), 0, 0xffff},
    {At(kMsiCap, 0x08), 0, 0xffff},
    {At(kMsiCap, 0x0a), 0, 0xffff},
    {At(kMsiCap, 0x0c), 0, 0xffff},
    // PCI Express: version 2, endpoint; role-based errors and FLR; a 2.5 GT/s x1 link that is always up.
    {At(kExpressCap, 0x00), 0x0010, 0},
    {At(kExpressCap, 0x02), 0x0002, 0},
    {At(kExpressCap, 0x04), 0x8000, 0},
    {At(kExpressCap, 0x06), 0x1000, 0},
    {At(kExpressCap, 0x08), 0x2810, 0x7fff},
    {At(kExpressCap, 0x0c), 0x0011, 0},
    {At(kExpressCap, 0x10), 0, 0x01c3},
    {At(kExpressCap, 0x12), 0x0011, 0},
    {At(kExpressCap, 0x28), 0, 0x001f},
    {At(kExpressCap, 0x2c), 0x0002, 0},
};

}  // namespace

void ConfigSpace::Reset() {
  data_.fill(0);
  mask_.fill(0);
  for (const Field& field : kFields) {
    std::memcpy(&data_[field.offset], &field.value, sizeof field.value);
    std::memcpy(&mask_[field.offset], &field.mask, sizeof field.mask);
  }
}

void ConfigSpace::Read(size_t offset, std::span<std::byte> out) const {
  CHECK(offset <= kConfigBytes && out.size() <= kConfigBytes - offset);
  std::ranges::copy(std::as_bytes(std::span(data_)).subspan(offset, out.size()), out.begin());
}

bool ConfigSpace::Write(size_t offset, std::span<const std::byte> in) {
  CHECK(offset <= kConfigBytes && in.size() <= kConfigBytes - offset);
  bool flr = false;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t at = offset + i;
    const auto value = static_cast<uint8_t>(in[i]);
    data_[at] = static_cast<uint8_t>((data_[at] & ~mask_[at]) | (value & mask_[at]));
    flr |= at == kDeviceControl + 1 && (value & kInitiateFlr) != 0;
  }
  return flr;
}

bool ConfigSpace::bus_master() const { return (data_[kCommand] & kBusMaster) != 0; }

void ConfigSpace::SetTransactionsPending(bool pending) { data_[kDeviceStatus] = pending ? kTransactionsPending : 0; }

}  // namespace vgpud::vfio
