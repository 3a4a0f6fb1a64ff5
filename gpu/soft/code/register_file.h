// SPDX-License-Identifier: Apache-2.0
// The registers of a multiprocessor, as the device reports them. Warps here have all the registers that they name: the
// figures are what programs compute occupancy from, and what bounds cooperative launches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/soft/code/inst.h"

namespace vgpud::soft {

inline constexpr uint32_t kRegistersPerMultiprocessor = 65536;
inline constexpr uint32_t kMostRegisters = 255;  // of a thread
inline constexpr uint32_t kRegisterUnit = 8;     // of a thread: a warp gets a multiple of it
inline constexpr uint32_t kLeastRegisters = 16;  // that no bound goes below

constexpr uint32_t WholeWarps(uint32_t threads) { return (threads + kLanes - 1) / kLanes * kLanes; }

// The most registers of a thread with which `blocks` blocks of `threads` threads, both at least 1, fit on a
// multiprocessor.
constexpr uint32_t RegistersThatFit(uint32_t threads, uint32_t blocks) {
  const uint64_t all = uint64_t{WholeWarps(threads)} * blocks;
  const auto fit = static_cast<uint32_t>(kRegistersPerMultiprocessor / all) / kRegisterUnit * kRegisterUnit;
  return std::clamp(fit, kLeastRegisters, kMostRegisters);
}

}  // namespace vgpud::soft
