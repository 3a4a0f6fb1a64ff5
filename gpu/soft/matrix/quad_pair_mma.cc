// SPDX-License-Identifier: Apache-2.0
// mma.m8n8k4 of f16: four products of 8 x 4 and 4 x 8, each of the eight lanes of a quad pair (PTX ISA "Matrix
// Fragments for mma.m8n8k4 with .f16 floating point type"). The pair number p has lanes 4p to 4p + 3 and the same + 16,
// which have the upper four rows of C and D. With t = lane % 4, u = 4 in the upper lanes and 0 in the others, element
// e:
//   A by rows: row t + u, column e; by columns: row e + u, column t
//   B by rows: row t, column e + u; by columns: row e, column t + u
//   C, D of f16: row t + u, column e
//   C, D of f32: row (t & 1) + (e & 2) + u, column (e & 4) + (t & 2) + (e & 1)
#include "gpu/soft/matrix/mma.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kM = 8;
constexpr uint32_t kK = 4;
constexpr uint32_t kPairs = 4;
constexpr uint32_t kInputs = 2;  // registers of A, and of B

template <class E>
ALWAYS Element PlaceInSum(uint32_t lane, uint32_t e) {
  const uint32_t t = lane % 4;
  const uint32_t upper = lane / 16 * 4;
  if constexpr (kPerRegister<E> == 2) return {t + upper, e};
  return {(t & 1) + (e & 2) + upper, (e & 4) + (t & 2) + (e & 1)};
}

template <bool kRowA, bool kRowB, class D, class C>
const Inst* QuadPairMma(Warp& w, const Inst* i) {
  constexpr uint32_t kElements = 8;
  constexpr uint32_t kRegistersD = kElements / kPerRegister<D>;
  if (!WholeWarp(w, i)) return i;
  float a[kPairs][kM][kK];
  float b[kPairs][kK][kN];
  float sum[kPairs][kM][kN];
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint32_t pair = l / 4 % kPairs;
    const uint32_t t = l % 4;
    const uint32_t upper = l / 16 * 4;
    for (uint32_t e = 0; e < kK; ++e) {
      const float x = ElementOf<F16>(Fragment<F16>(w, i, kRegistersD + e / 2)[l], e % 2);
      const float y = ElementOf<F16>(Fragment<F16>(w, i, kRegistersD + kInputs + e / 2)[l], e % 2);
      a[pair][(kRowA ? t : e) + upper][kRowA ? e : t] = x;
      b[pair][kRowB ? t : e][(kRowB ? e : t) + upper] = y;
    }
    for (uint32_t e = 0; e < kElements; ++e) {
      const Element at = PlaceInSum<C>(l, e);
      const auto* from = Fragment<C>(w, i, kRegistersD + 2 * kInputs + e / kPerRegister<C>);
      sum[pair][at.row][at.column] = ElementOf<C>(from[l], e % kPerRegister<C>);
    }
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair)
    MultiplyAdd<float, kM, kK>(&a[pair][0][0], &b[pair][0][0], &sum[pair][0][0], false);
  for (uint32_t r = 0; r < kRegistersD; ++r) {
    alignas(64) uint32_t t[kLanes] = {};
    for (uint32_t l = 0; l < kLanes; ++l) {
      for (uint32_t part = 0; part < kPerRegister<D>; ++part) {
        const Element at = PlaceInSum<D>(l, r * kPerRegister<D> + part);
        t[l] |= static_cast<uint32_t>(D::Put(sum[l / 4 % kPairs][at.row][at.column])) << (kElementBits<D> * part);
      }
    }
    StoreMasked(Fragment<D>(w, i, r), t, w.mask);
  }
  return i + 1;
}

}  // namespace

OpRows QuadPairMmaRows() {
#define QUAD_PAIR(layouts, kRowA, kRowB)                                                          \
  {"@mma.m8n8k4." layouts ".f16.f16.f16.f16", QuadPairMma<kRowA, kRowB, F16, F16>, "4224"},       \
      {"@mma.m8n8k4." layouts ".f32.f16.f16.f16", QuadPairMma<kRowA, kRowB, F32, F16>, "8224"}, { \
    "@mma.m8n8k4." layouts ".f32.f16.f16.f32", QuadPairMma<kRowA, kRowB, F32, F32>, "8228"        \
  }
  static const OpRow kRows[] = {
      QUAD_PAIR("row.row", true, true),
      QUAD_PAIR("row.col", true, false),
      QUAD_PAIR("col.row", false, true),
      QUAD_PAIR("col.col", false, false),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
