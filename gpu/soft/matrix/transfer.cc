// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix (PTX ISA "Warp-level Matrix Instructions"): matrices whose rows of 16 bytes lie in
// shared memory, each where a lane says. With g = lane / 4 and t = lane % 4:
//   8 x 8 of 16 bits: row g, columns 2 * t and 2 * t + 1; transposed: column g, rows 2 * t and 2 * t + 1
//   8 x 16 of 8 bits: row g, columns 4 * t to 4 * t + 3
//   16 x 16 of 8 bits, transposed: in register r byte b row 4 * t + 2 * r + b % 2, column g + 8 * (b / 2)
//   16 x 8 of 8 bits, transposed as it is stored: byte b goes to row 2 * t + b % 2, column g + 8 * (b / 2)
#include "gpu/soft/matrix/fragment.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kRowBytes = 16;

// nullptr: a fault was raised.
ALWAYS std::byte* RowAt(Warp& w, const Inst* i, uint32_t lane, bool store) {
  const uint64_t address = LaneOperandAddress(w, i, lane);
  std::byte* row = LaneAddress(w, static_cast<MemSpace>(i->aux), lane, address, kRowBytes, store);
  if (row != nullptr && address % kRowBytes == 0) return row;
  RaiseAddressFault(w, i, row == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, lane, address,
                    kRowBytes, store ? "store of a matrix's row" : "load of a matrix's row");
  return nullptr;
}

// kCount matrices of 8 rows; lane 8 * n + r has the address of row r of matrix n.
template <uint32_t kCount, bool kTranspose>
const Inst* LoadMatrices(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  uint16_t elements[kCount][8][8];
  for (uint32_t l = 0; l < 8 * kCount; ++l) {
    const std::byte* row = RowAt(w, i, l, false);
    if (row == nullptr) return i;
    __builtin_memcpy(elements[l / 8][l % 8], row, kRowBytes);
  }
  for (uint32_t n = 0; n < kCount; ++n) {
    alignas(64) uint32_t t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t outer = l / 4;
      const uint32_t inner = l % 4 * 2;
      const uint32_t low = kTranspose ? elements[n][inner][outer] : elements[n][outer][inner];
      const uint32_t high = kTranspose ? elements[n][inner + 1][outer] : elements[n][outer][inner + 1];
      t[l] = low | high << 16;
    }
    StoreMasked(Fragment<S32>(w, i, n), t, w.mask);
  }
  return i + 1;
}
template <uint32_t kCount, bool kTranspose>
const Inst* StoreMatrices(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  uint16_t elements[kCount][8][8];
  for (uint32_t n = 0; n < kCount; ++n) {
    const uint32_t* from = Fragment<S32>(w, i, n);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t outer = l / 4;
      const uint32_t inner = l % 4 * 2;
      (kTranspose ? elements[n][inner][outer] : elements[n][outer][inner]) = static_cast<uint16_t>(from[l]);
      (kTranspose ? elements[n][inner + 1][outer] : elements[n][outer][inner + 1]) =
          static_cast<uint16_t>(from[l] >> 16);
    }
  }
  for (uint32_t l = 0; l < 8 * kCount; ++l) {
    std::byte* row = RowAt(w, i, l, true);
    if (row == nullptr) return i;
    __builtin_memcpy(row, elements[l / 8][l % 8], kRowBytes);
  }
  return i + 1;
}

// A row of 16 elements of kBits, without gaps from the lowest bit on and padded to 16 bytes, as 16 bytes. An element of
// less than eight bits is in the low ones.
template <uint32_t kBits>
ALWAYS void UnpackRow(const std::byte* row, uint8_t* elements) {
  uint64_t words[2];
  __builtin_memcpy(words, row, kRowBytes);
  for (uint32_t e = 0; e < 16; ++e) {
    const uint32_t at = e * kBits;
    const uint64_t low = words[at / 64] >> at % 64;
    const uint64_t high = at % 64 + kBits > 64 ? words[1] << (64 - at % 64) : 0;
    elements[e] = static_cast<uint8_t>((low | high) & ((1u << kBits) - 1));
  }
}
template <uint32_t kCount, uint32_t kBits>
const Inst* LoadBytes(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  uint8_t elements[8 * kCount][16];
  for (uint32_t l = 0; l < 8 * kCount; ++l) {
    const std::byte* row = RowAt(w, i, l, false);
    if (row == nullptr) return i;
    UnpackRow<kBits>(row, elements[l]);
  }
  for (uint32_t n = 0; n < kCount; ++n) {
    alignas(64) uint32_t t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) __builtin_memcpy(&t[l], &elements[8 * n + l / 4][l % 4 * 4], 4);
    StoreMasked(Fragment<S32>(w, i, n), t, w.mask);
  }
  return i + 1;
}
// kCount matrices of 16 rows; lane 16 * n + r has the address of row r of matrix n.
template <uint32_t kCount, uint32_t kBits>
const Inst* LoadBytesTransposed(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  uint8_t elements[16 * kCount][16];
  for (uint32_t l = 0; l < 16 * kCount; ++l) {
    const std::byte* row = RowAt(w, i, l, false);
    if (row == nullptr) return i;
    UnpackRow<kBits>(row, elements[l]);
  }
  for (uint32_t r = 0; r < 2 * kCount; ++r) {
    alignas(64) uint32_t t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      t[l] = 0;
      for (uint32_t b = 0; b < 4; ++b) {
        const uint32_t row = r / 2 * 16 + l % 4 * 4 + r % 2 * 2 + b % 2;
        t[l] |= static_cast<uint32_t>(elements[row][l / 4 + 8 * (b / 2)]) << (8 * b);
      }
    }
    StoreMasked(Fragment<S32>(w, i, r), t, w.mask);
  }
  return i + 1;
}
template <uint32_t kCount>
const Inst* StoreBytesTransposed(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  uint8_t elements[8 * kCount][16];
  for (uint32_t n = 0; n < kCount; ++n) {
    const uint32_t* from = Fragment<S32>(w, i, n);
    for (uint32_t l = 0; l < kLanes; ++l)
      for (uint32_t b = 0; b < 4; ++b)
        elements[8 * n + l % 4 * 2 + b % 2][l / 4 + 8 * (b / 2)] = static_cast<uint8_t>(from[l] >> (8 * b));
  }
  for (uint32_t l = 0; l < 8 * kCount; ++l) {
    std::byte* row = RowAt(w, i, l, true);
    if (row == nullptr) return i;
    __builtin_memcpy(row, elements[l], kRowBytes);
  }
  return i + 1;
}

// movmatrix: one matrix, laid out as by ldmatrix, transposed.
const Inst* TransposeMatrix(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const auto at = [&](uint32_t row, uint32_t column) {
    return a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
  };
  alignas(64) uint32_t t[kLanes];
  for (uint32_t l = 0; l < kLanes; ++l) t[l] = at(l % 4 * 2, l / 4) | at(l % 4 * 2 + 1, l / 4) << 16;
  StoreMasked(Out<uint32_t>(w, i, 0), t, w.mask);
  return i + 1;
}

}  // namespace

OpRows MatrixTransferRows() {
// Operands: the number of registers.
#define MATRICES(count, n, regs)                                                                               \
  {"@ldmatrix." count, LoadMatrices<n, false>, regs}, {"@ldmatrix.trans." count, LoadMatrices<n, true>, regs}, \
      {"@stmatrix." count, StoreMatrices<n, false>, regs}, {                                                   \
    "@stmatrix.trans." count, StoreMatrices<n, true>, regs                                                     \
  }
#define WIDENED(count, n, regs)                                     \
  {"@ldmatrix.m8n16." count ".b4x16_p64", LoadBytes<n, 4>, regs}, { \
    "@ldmatrix.m8n16." count ".b6x16_p32", LoadBytes<n, 6>, regs    \
  }
#define TRANSPOSED(count, n, regs)                                                       \
  {"@ldmatrix.m16n16.trans." count, LoadBytesTransposed<n, 8>, regs},                    \
      {"@ldmatrix.m16n16.trans." count ".b4x16_p64", LoadBytesTransposed<n, 4>, regs}, { \
    "@ldmatrix.m16n16.trans." count ".b6x16_p32", LoadBytesTransposed<n, 6>, regs        \
  }
  static const OpRow kRows[] = {
      MATRICES("x1", 1, "1"),
      MATRICES("x2", 2, "2"),
      MATRICES("x4", 4, "4"),
      WIDENED("x1", 1, "1"),
      WIDENED("x2", 2, "2"),
      WIDENED("x4", 4, "4"),
      TRANSPOSED("x1", 1, "2"),
      TRANSPOSED("x2", 2, "4"),
      {"@stmatrix.m16n8.trans.x1", StoreBytesTransposed<1>, "1"},
      {"@stmatrix.m16n8.trans.x2", StoreBytesTransposed<2>, "2"},
      {"@stmatrix.m16n8.trans.x4", StoreBytesTransposed<4>, "4"},
      {"movmatrix.sync.aligned.m8n8.trans.b16", TransposeMatrix, "da", kDiverts},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
