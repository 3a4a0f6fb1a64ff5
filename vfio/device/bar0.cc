// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/bar0.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kFeatures = VGPU_FEATURES_ALL;
constexpr uint32_t kDoorbells = VGPU_REG_DOORBELL(0);
constexpr uint32_t kDoorbellsEnd = VGPU_REG_DOORBELL(VGPU_MAX_CHANNELS);
constexpr uint32_t kNameBytes = 64;

constexpr uint32_t Low(uint64_t v) { return static_cast<uint32_t>(v); }
constexpr uint32_t High(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
void SetLow(uint64_t* to, uint32_t value) { *to = (*to & ~0xffffffffull) | value; }
void SetHigh(uint64_t* to, uint32_t value) { *to = (*to & 0xffffffffull) | (uint64_t{value} << 32); }

uint32_t Word(std::span<const uint8_t> bytes, size_t at) {
  uint32_t word = 0;
  if (at < bytes.size()) std::memcpy(&word, &bytes[at], std::min(sizeof word, bytes.size() - at));
  return word;
}

}  // namespace

uint32_t Bar0::Register(uint32_t offset) const {
  if (offset >= VGPU_REG_UUID && offset < VGPU_REG_UUID + 16) return Word(figures_.uuid, offset - VGPU_REG_UUID);
  if (offset >= VGPU_REG_NAME && offset < VGPU_REG_NAME + kNameBytes) {
    const size_t shown = std::min<size_t>(figures_.name.size(), kNameBytes - 1);
    return Word({reinterpret_cast<const uint8_t*>(figures_.name.data()), shown}, offset - VGPU_REG_NAME);
  }
  switch (offset) {
    case VGPU_REG_MAGIC:
      return VGPU_MAGIC;
    case VGPU_REG_ABI_VERSION:
      return VGPU_ABI_OLDEST;
    case VGPU_REG_ABI_NEWEST:
      return VGPU_ABI_VERSION;
    case VGPU_REG_FEATURES_LO:
      return Low(kFeatures);
    case VGPU_REG_FEATURES_HI:
      return High(kFeatures);
    case VGPU_REG_MAX_CHANNELS:
      return VGPU_MAX_CHANNELS;
    case VGPU_REG_VF_STATE:
      return figures_.vf_state;
    case VGPU_REG_VRAM_LO:
      return Low(figures_.vram_bytes);
    case VGPU_REG_VRAM_HI:
      return High(figures_.vram_bytes);
    case VGPU_REG_SLICE_US:
      return figures_.slice_us;
    case VGPU_REG_WEIGHT:
      return figures_.weight;
    case VGPU_REG_CTRL_ADDR_LO:
      return Low(control_address_);
    case VGPU_REG_CTRL_ADDR_HI:
      return High(control_address_);
    case VGPU_REG_CTRL_SEQ:
      return control_.commands_run();
    case VGPU_REG_IRQ_STATUS:
      return irqs_.TakeLine() ? VGPU_IRQ_PENDING : 0;
    case VGPU_REG_DRIVER_VERSION:
      return driver_version_;
    case VGPU_REG_DRIVER_FEATURES_LO:
      return Low(driver_features_);
    case VGPU_REG_DRIVER_FEATURES_HI:
      return High(driver_features_);
    default:
      return 0;
  }
}

void Bar0::WriteRegister(uint32_t offset, uint32_t value) {
  if (offset >= kDoorbells && offset < kDoorbellsEnd) return channels_.Kick((offset - kDoorbells) / 4);
  if (offset == VGPU_REG_CTRL_KICK) return control_.RunCommand(driver_features_);
  switch (offset) {
    case VGPU_REG_CTRL_ADDR_LO:
      SetLow(&control_address_, value);
      return control_.SetAddress(control_address_);
    case VGPU_REG_CTRL_ADDR_HI:
      SetHigh(&control_address_, value);
      return control_.SetAddress(control_address_);
    case VGPU_REG_DRIVER_VERSION:
      driver_version_ = value;
      return;
    case VGPU_REG_DRIVER_FEATURES_LO:
      return SetLow(&driver_features_, value & Low(kFeatures & VGPU_FEATURES_TRANSPORT));
    case VGPU_REG_DRIVER_FEATURES_HI:
      SetHigh(&driver_features_, value & High(kFeatures & VGPU_FEATURES_TRANSPORT));
      LOG_LIMITED(limiter_, kInfo, "vf={} the guest's driver speaks ABI version {}, features {:#x}", figures_.name,
                  driver_version_, driver_features_);
      return;
    default:
      return;
  }
}

void Bar0::Read(uint32_t offset, std::span<std::byte> out) const {
  CHECK(offset <= VGPU_BAR0_BYTES && out.size() <= VGPU_BAR0_BYTES - offset);
  while (!out.empty()) {
    const uint32_t inside = offset % 4;
    const uint32_t word = Register(offset - inside);
    const size_t take = std::min<size_t>(4 - inside, out.size());
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&word) + inside, take);
    out = out.subspan(take);
    offset += static_cast<uint32_t>(take);
  }
}

void Bar0::Write(uint32_t offset, std::span<const std::byte> in) {
  CHECK(offset <= VGPU_BAR0_BYTES && in.size() <= VGPU_BAR0_BYTES - offset);
  if (offset % 4 != 0 || (in.size() != 4 && in.size() != 8)) return;
  for (size_t at = 0; at < in.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &in[at], sizeof word);
    WriteRegister(offset + static_cast<uint32_t>(at), word);
  }
}

}  // namespace vgpud::vfio
