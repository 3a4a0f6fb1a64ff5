// SPDX-License-Identifier: Apache-2.0
// What the handlers of wgmma.mma_async share: D and A in registers, A and B in shared memory.
#pragma once

#include "gpu/soft/code/wgmma_form.h"
#include "gpu/soft/matrix/mma.h"
#include "gpu/soft/matrix/shared_matrix.h"
#include "gpu/soft/number/narrow.h"

namespace vgpud::soft::VGPUD_ISA {

inline constexpr uint32_t kWarpRows = 16;  // of a warp
inline constexpr uint32_t kWarps = 4;      // of a warpgroup

template <class F>
struct WgmmaByte {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return NarrowToFloat<F>(v); }
};

// Row and column of element number e of D: as in mma, 8 columns after the others.
ALWAYS Element PlaceInWideC(uint32_t lane, uint32_t e) {
  const Element at = PlaceInC(lane, e % 4);
  return {at.row, at.column + e / 4 * 8};
}
// Operands: does D count 0 (predicate), descriptors of A 1 and B 2; extra operands: D, A.
template <class D>
ALWAYS void ReadSums(const Warp& w, const Inst* i, uint32_t columns, typename D::Math* sum) {
  const uint32_t counts = Pred(w, i, 0);
  for (uint32_t e = 0; e < columns / 2; ++e) {
    const auto* from = Fragment<D>(w, i, e / kPerRegister<D>);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const Element at = PlaceInWideC(l, e);
      const auto v = ElementOf<D>(from[l], e % kPerRegister<D>);
      sum[at.row * columns + at.column] = (counts >> l & 1) != 0 ? v : typename D::Math{};
    }
  }
}
template <class D>
ALWAYS void WriteSums(const Warp& w, const Inst* i, uint32_t columns, const typename D::Math* sum) {
  for (uint32_t r = 0; r < columns / 2 / kPerRegister<D>; ++r) {
    alignas(64) typename D::Reg t[kLanes] = {};
    for (uint32_t part = 0; part < kPerRegister<D>; ++part) {
      for (uint32_t l = 0; l < kLanes; ++l) {
        const Element at = PlaceInWideC(l, r * kPerRegister<D> + part);
        t[l] |= static_cast<typename D::Reg>(D::Put(sum[at.row * columns + at.column])) << (kElementBits<D> * part);
      }
    }
    StoreMasked(Fragment<D>(w, i, r), t, w.mask);
  }
}
// All lanes have the same one.
ALWAYS uint64_t DescriptorAt(const Warp& w, const Inst* i, int operand) {
  return In<uint64_t>(w, i, operand)[__builtin_ctz(w.mask)];
}

// The rows of A that the warp has, as a[row * kK + k]. False: a fault was raised.
template <uint32_t kK, class A>
[[gnu::noinline]] bool ReadA(Warp& w, const Inst* i, uint32_t first_register, typename A::Math* a) {
  if ((i->aux & kSharedA) != 0) {
    const SharedMatrix matrix(DescriptorAt(w, i, 1));
    const auto put = [&](uint32_t row, uint32_t k, typename A::Math v) { a[row * kK + k] = v; };
    if (!ReadLines<A, kK>(w, i, matrix, (i->aux & kByKA) != 0, w.index % kWarps * kWarpRows, kWarpRows, put))
      return false;
  } else {
    GatherA<kWarpRows, kK, A>(w, i, first_register, a);
  }
  for (uint32_t n = 0; (i->aux & kNegativeA) != 0 && n < kWarpRows * kK; ++n) a[n] = -a[n];
  return true;
}
// B as b[k * columns + column].
template <uint32_t kK, class B>
[[gnu::noinline]] bool ReadB(Warp& w, const Inst* i, uint32_t columns, typename B::Math* b) {
  const SharedMatrix matrix(DescriptorAt(w, i, 2));
  const auto put = [&](uint32_t column, uint32_t k, typename B::Math v) { b[k * columns + column] = v; };
  if (!ReadLines<B, kK>(w, i, matrix, (i->aux & kByKB) != 0, 0, columns, put)) return false;
  for (uint32_t n = 0; (i->aux & kNegativeB) != 0 && n < kK * columns; ++n) b[n] = -b[n];
  return true;
}

ALWAYS uint32_t ColumnsOf(const Inst* i) { return static_cast<uint32_t>(i->imm) & kWgmmaColumns; }

// .satfinite: the products of a row do not overflow, their sum with D may.
template <class Math>
ALWAYS void AddSaturated(const Math* products, Math* row, uint32_t columns) {
  for (uint32_t n = 0; !kIsFloat<Math> && n < columns; ++n) {
    const int64_t v = static_cast<int64_t>(row[n]) + static_cast<int64_t>(products[n]);
    row[n] = static_cast<Math>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
  }
}

}  // namespace vgpud::soft::VGPUD_ISA
