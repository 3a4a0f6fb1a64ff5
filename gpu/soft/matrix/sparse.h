// SPDX-License-Identifier: Apache-2.0
// Sparse matrices A (PTX ISA "Matrix multiply-accumulate operation using mma.sp"). A row of A is cut into chunks, of
// which half of the elements are stored; four bits of metadata say which:
//   two numbers of two bits, of the places of the two stored elements (or pairs of them, where they have four bits);
//   of tf32, where a chunk has two elements, 0b0100 for the first and 0b1110 for the second.
// A group of four lanes has the metadata of rows g and g + 8 (g = lane / 4), n chunks a row:
//   n = 4: in the selected lane; n = 8: in the selected pair, four chunks each; row g in the low half, g + 8 in the
//   high n = 16: in all four, lane t has chunks 8 * (t / 2) and on of row g + 8 * (t % 2)
#pragma once

#include "gpu/soft/matrix/fragment.h"

namespace vgpud::soft::VGPUD_ISA {

// How elements of a type are left out: kUnit neighbours together, kPlaces units in a chunk.
template <class A>
struct Sparsity {
  static constexpr uint32_t kUnit = kElementBits<A> == 4 ? 2 : 1;
  static constexpr uint32_t kPlaces = 4;
  static constexpr uint32_t kStored = 2;
};
template <>
struct Sparsity<Tf32> {
  static constexpr uint32_t kUnit = 1;
  static constexpr uint32_t kPlaces = 2;
  static constexpr uint32_t kStored = 1;
};

// The metadata of chunk number `chunk` of a row.
template <uint32_t kChunks>
ALWAYS uint32_t ChunkMetadata(const uint32_t* metadata, uint32_t selector, uint32_t row, uint32_t chunk) {
  static_assert(kChunks == 4 || kChunks == 8 || kChunks == 16);
  const uint32_t group = 4 * (row % 8);
  const uint32_t half = row / 8;
  if constexpr (kChunks == 16) return metadata[group + half + 2 * (chunk / 8)] >> (4 * (chunk % 8)) & 15;
  const uint32_t lane = kChunks == 4 ? selector % 4 : 2 * (selector % 2) + chunk / 4;
  return metadata[group + lane] >> (16 * half + 4 * (chunk % 4)) & 15;
}

// The column of A, and row of B, that element number `stored` of a row stands for.
template <class A, uint32_t kChunks>
ALWAYS uint32_t StoredColumn(const uint32_t* metadata, uint32_t selector, uint32_t row, uint32_t stored) {
  using S = Sparsity<A>;
  constexpr uint32_t kInChunk = S::kStored * S::kUnit;
  const uint32_t chunk = stored / kInChunk;
  const uint32_t nibble = ChunkMetadata<kChunks>(metadata, selector, row, chunk);
  const uint32_t unit = stored % kInChunk / S::kUnit;
  const uint32_t place = S::kPlaces == 2 ? nibble >> 1 & 1 : nibble >> (2 * unit) & 3;
  return (chunk * S::kPlaces + place) * S::kUnit + stored % S::kUnit;
}

}  // namespace vgpud::soft::VGPUD_ISA
