// SPDX-License-Identifier: Apache-2.0
// Where a virtual function is on a PCI bus. Programs tell devices apart by that, so one that is on none gets an
// address, the same in every process and in both libraries: from its UUID, with a domain that no bus of a host has.
#pragma once

#include <cstdint>

namespace vgpud::cuda {

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const PciAddress&) const = default;
};

inline PciAddress PciAddressOf(const uint8_t (&uuid)[16]) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const uint8_t byte : uuid) hash = (hash ^ byte) * 16777619u;
  const uint32_t number = (hash ^ hash >> 28) & 0xfffffff;
  return {0x8000 | number >> 13, number >> 5 & 0xff, number & 0x1f};
}

}  // namespace vgpud::cuda
