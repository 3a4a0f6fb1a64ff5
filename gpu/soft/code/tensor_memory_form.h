// SPDX-License-Identifier: Apache-2.0
// Tensor memory (PTX ISA "Tensor Memory") and Inst::aux of the instructions of tcgen05 that reach it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpud::soft {

inline constexpr uint32_t kTensorLanes = 128;
inline constexpr uint32_t kTensorColumns = 512;  // of 32 bits
inline constexpr size_t kTensorRowBytes = size_t{kTensorColumns} * 4;
inline constexpr size_t kTensorBytes = kTensorLanes * kTensorRowBytes;
inline constexpr uint32_t kTensorUnit = 32;  // columns; what is allocated is a multiple of it

// Of a block: its memory, lane by lane, and which of its columns are allocated, a bit for each unit.
struct TensorMemory {
  std::byte* bytes = nullptr;  // none: the kernel has no instruction that reaches it
  uint16_t used = 0;
  uint16_t first = 0;         // of these, where an allocation begins
  bool relinquished = false;  // nothing more is to be allocated
};

// tcgen05.ld and .st: aux is the shape and, behind it, log2 of the number of registers.
enum TensorShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b };
inline constexpr uint32_t kTensorShapeBits = 2;
inline constexpr uint32_t kMostTensorRegisters = 128;

// tcgen05.mma: aux is the kind, flags, and behind them the exponent of scale-input-d. Inst::imm: what is added to the
// address of D and, in its upper half, to that of A.
enum TensorKind : uint8_t { kKindF16, kKindTf32, kKindI8, kKindF8 };
inline constexpr uint8_t kTensorKinds = 3;
inline constexpr uint8_t kTensorA = 4;        // A is in tensor memory
inline constexpr uint8_t kTensorDisable = 8;  // there is a mask of lanes that are not written
inline constexpr uint32_t kTensorScaleShift = 4;

}  // namespace vgpud::soft
