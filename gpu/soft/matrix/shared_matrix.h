// SPDX-License-Identifier: Apache-2.0
// Matrices in shared memory, as wgmma finds them by a descriptor (PTX ISA "Asynchronous warpgroup-level matrix shared
// memory layout", "Matrix descriptor format"). Elements lie in pieces of 16 bytes. A "line" is a row of A or a column
// of B; along it runs k.
// With a width of as many bytes as the swizzle mode has (16 without one), w pieces:
//   by lines ("K-major"): piece j of line m lies at
//     (m % 8) * width + (m / 8) * stride + (j % w) * 16 + (j / w) * leading
//   by k ("MN-major", elements of 16 bits): piece c of the lines, 8 of them, lies for k at
//     (c % w) * 16 + (c / w) * leading + (k % 8) * width + (k / 8) * stride, and without a swizzle at
//     c * stride + (k % 8) * 16 + (k / 8) * leading
#pragma once

#include "gpu/soft/matrix/fragment.h"

namespace vgpud::soft::VGPUD_ISA {

inline constexpr uint32_t kPieceBytes = 16;

struct SharedMatrix {
  uint32_t start;    // byte offset in shared memory; this and the next two: multiples of 16
  uint32_t leading;  // bytes
  uint32_t stride;   // bytes
  uint32_t phase;    // of the swizzle's pattern
  uint32_t bits;     // of an offset that the swizzle changes: 0, 1, 2, 3

  // From the 64 bits of a descriptor; every value is one.
  explicit SharedMatrix(uint64_t d)
      : start(static_cast<uint32_t>(d & 0x3fff) * kPieceBytes),
        leading(static_cast<uint32_t>(d >> 16 & 0x3fff) * kPieceBytes),
        stride(static_cast<uint32_t>(d >> 32 & 0x3fff) * kPieceBytes),
        phase(static_cast<uint32_t>(d >> 49 & 7)),
        bits(d >> 62 != 0 ? 4 - static_cast<uint32_t>(d >> 62) : 0) {}

  uint32_t Swizzle(uint32_t offset) const {
    const uint32_t pattern = ((offset >> 7) - phase) & ((1u << bits) - 1);
    return offset ^ pattern << 4;
  }
  uint32_t Width() const { return kPieceBytes << bits; }
  uint32_t ByLines(uint32_t line, uint32_t piece) const {
    const uint32_t along = (piece >> bits) * leading + (piece & ((1u << bits) - 1)) * kPieceBytes;
    return Swizzle(start + line % 8 * Width() + line / 8 * stride + along);
  }
  uint32_t ByK(uint32_t piece, uint32_t k) const {
    if (bits == 0) return start + piece * stride + k % 8 * kPieceBytes + k / 8 * leading;
    const uint32_t pieces = 1u << bits;
    return Swizzle(start + piece % pieces * kPieceBytes + piece / pieces * leading + k % 8 * Width() + k / 8 * stride);
  }
};

// A piece's bytes; nullptr: they are outside of the block's shared memory, and a fault was raised.
ALWAYS const std::byte* PieceAt(Warp& w, const Inst* i, uint32_t offset) {
  if (offset < w.shared_bytes && kPieceBytes <= w.shared_bytes - offset) return w.shared + offset;
  RaiseAddressFault(w, i, CuStatus::kIllegalAddress, static_cast<uint32_t>(__builtin_ctz(w.mask)), offset, kPieceBytes,
                    "matrix in shared memory");
  return nullptr;
}

// put(line - first, k, value) for `lines` lines from number `first` on, multiples of 8, and all kK elements of each.
// False: a fault was raised.
template <class E, uint32_t kK, class Put>
ALWAYS bool ReadLines(Warp& w, const Inst* i, const SharedMatrix& matrix, bool by_k, uint32_t first, uint32_t lines,
                      Put put) {
  using Memory = typename E::Memory;
  constexpr uint32_t kInPiece = kPieceBytes / sizeof(Memory);
  const uint32_t outer = by_k ? lines / kInPiece : lines;
  const uint32_t inner = by_k ? kK : kK / kInPiece;
  for (uint32_t o = 0; o < outer; ++o) {
    for (uint32_t n = 0; n < inner; ++n) {
      const uint32_t offset = by_k ? matrix.ByK(first / kInPiece + o, n) : matrix.ByLines(first + o, n);
      const std::byte* bytes = PieceAt(w, i, offset);
      if (bytes == nullptr) return false;
      Memory piece[kInPiece];
      __builtin_memcpy(piece, bytes, kPieceBytes);
      for (uint32_t e = 0; e < kInPiece; ++e) {
        if (by_k) {
          put(o * kInPiece + e, n, E::Get(piece[e]));
        } else {
          put(o, n * kInPiece + e, E::Get(piece[e]));
        }
      }
    }
  }
  return true;
}

}  // namespace vgpud::soft::VGPUD_ISA
