// SPDX-License-Identifier: Apache-2.0
// What a driver asks of a chip, as tables. What no table has is 0.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/first_contact/kernel_side/abi/control_layouts.h"

namespace vgpud::kernel_side {

struct Chip {
  std::string_view option;  // --chip
  const char* name;
  const char* short_name;
  uint16_t device;
  uint32_t architecture, implementation;
  uint32_t gpcs, tpcs_per_gpc, sms;
  uint64_t memory_kib;
  std::span<const uint32_t> classes, engine_classes, copy_classes;
  std::span<const Info> gr, fb, bus, gpu;
};

inline constexpr uint32_t kHeapFree = 0x16;  // in the table `fb`: in KiB, when nobody has any of it

const Chip* FindChip(std::string_view option);
uint32_t ValueOf(std::span<const Info> table, uint32_t index);

}  // namespace vgpud::kernel_side
