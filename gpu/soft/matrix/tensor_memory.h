// SPDX-License-Identifier: Apache-2.0
// What the instructions of tcgen05 share: addresses of tensor memory, the lane in the upper 16 bits, the column in the
// lower ones; and descriptors of matrices.
#pragma once

#include <fmt/format.h>

#include "gpu/soft/matrix/shared_matrix.h"

namespace vgpud::soft::VGPUD_ISA {

ALWAYS uint32_t TensorLane(uint32_t address) { return address >> 16; }
ALWAYS uint32_t TensorColumn(uint32_t address) { return address & 0xffff; }

ALWAYS uint32_t FirstLane(const Warp& w) { return static_cast<uint32_t>(__builtin_ctz(w.mask)); }

// The guest has made a mistake: its context ends.
inline const Inst* TensorFault(Warp& w, const Inst* i, CuStatus status, const std::string& what) {
  return RaiseFault(w, i, status, FirstLane(w), what);
}

// Are `columns` columns from that of `address` on allocated? False: a fault was raised.
inline bool ReachColumns(Warp& w, const Inst* i, uint32_t address, uint32_t columns) {
  const uint32_t begin = TensorColumn(address);
  const TensorMemory& memory = w.cta->tensor;
  bool there = memory.bytes != nullptr && begin < kTensorColumns && columns <= kTensorColumns - begin;
  for (uint32_t unit = begin / kTensorUnit; there && unit * kTensorUnit < begin + columns; ++unit)
    there = (memory.used >> unit & 1) != 0;
  if (!there)
    TensorFault(w, i, CuStatus::kIllegalAddress,
                fmt::format("tensor memory at {:#x}: not all of the {} columns from number {} on are allocated",
                            address, columns, begin));
  return there;
}

// Lane and column are ones that ReachColumns or the caller has checked.
ALWAYS std::byte* TensorAt(const Warp& w, uint32_t lane, uint32_t column) {
  return w.cta->tensor.bytes + lane * kTensorRowBytes + size_t{column} * 4;
}

// A descriptor of a matrix in shared memory: that of wgmma but for the numbers of the modes. False: a fault was raised.
inline bool MatrixOf(Warp& w, const Inst* i, uint64_t d, SharedMatrix& matrix) {
  constexpr uint64_t kModes = uint64_t{7} << 61;
  const auto mode = static_cast<uint32_t>(d >> 61);
  if ((d >> 52 & 1) != 0 || mode % 2 != 0) {
    TensorFault(w, i, CuStatus::kIllegalInstruction,
                fmt::format("matrix descriptor {:#x}: {}", d,
                            mode % 2 != 0 ? "its swizzle mode is not one that the soft GPU has"
                                          : "an absolute leading dimension is not something that the soft GPU has"));
    return false;
  }
  matrix = SharedMatrix(d & ~kModes);
  matrix.bits = mode == 0 ? 0 : 4 - mode / 2;
  return true;
}

}  // namespace vgpud::soft::VGPUD_ISA
