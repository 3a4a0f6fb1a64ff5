// SPDX-License-Identifier: Apache-2.0
// BAR0 of the VF: the registers of vgpu_abi.h. Any size and alignment can be read; what is not a register reads 0.
// Writes count only as whole registers: 4 bytes at a multiple of 4, or 8 bytes over a _LO/_HI pair.
#pragma once

#include <cstdint>
#include <span>

#include "vfio/channel/channel_table.h"
#include "vfio/channel/vf_figures.h"
#include "vfio/device/control_page.h"

namespace vgpud::vfio {

class Bar0 {
 public:
  Bar0(const VfFigures& figures, IrqTable& irqs, ChannelTable& channels, ControlPage& control)
      : figures_(figures), irqs_(irqs), channels_(channels), control_(control) {}
  // Both want [offset, offset + size) inside VGPU_BAR0_BYTES.
  void Read(uint32_t offset, std::span<std::byte> out) const;
  void Write(uint32_t offset, std::span<const std::byte> in);
  void Reset() { control_address_ = driver_features_ = driver_version_ = 0; }

 private:
  uint32_t Register(uint32_t offset) const;
  void WriteRegister(uint32_t offset, uint32_t value);

  const VfFigures& figures_;
  IrqTable& irqs_;
  ChannelTable& channels_;
  ControlPage& control_;
  uint64_t control_address_ = 0;
  uint64_t driver_features_ = 0;
  uint32_t driver_version_ = 0;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
