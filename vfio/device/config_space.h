// SPDX-License-Identifier: Apache-2.0
// The VF's PCI configuration space: 4096 bytes with a write mask (PCI Express base spec 7.5). An Express endpoint of
// class 0x030200 with power management, MSI (one vector, 64-bit) and function level reset; one 64 KiB memory BAR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpud::vfio {

inline constexpr size_t kConfigBytes = 4096;

// Where our capabilities stand, for tests and for nobody else.
inline constexpr size_t kPmCap = 0x40;
inline constexpr size_t kMsiCap = 0x50;
inline constexpr size_t kExpressCap = 0x60;

class ConfigSpace {
 public:
  ConfigSpace() { Reset(); }
  // Back to the state after power-on; also what a function level reset leaves.
  void Reset();
  // Both want [offset, offset + size) inside kConfigBytes.
  void Read(size_t offset, std::span<std::byte> out) const;
  // True when the write started a function level reset (Device Control bit 15); the caller resets the whole VF.
  [[nodiscard]] bool Write(size_t offset, std::span<const std::byte> in);
  // Command bit 2: may the function use the guest's memory?
  bool bus_master() const;
  // Device Status bit 5, which the guest waits for after it has forbidden that.
  void SetTransactionsPending(bool pending);

 private:
  std::array<uint8_t, kConfigBytes> data_{};
  std::array<uint8_t, kConfigBytes> mask_{};  // 1 = the guest may write this bit
};

}  // namespace vgpud::vfio
