// SPDX-License-Identifier: Apache-2.0
// Fragments of mma (PTX ISA "Warp-level Matrix Instructions"): which lane and register holds which element is the same
// on every implementation. With g = lane / 4, t = lane % 4 and n elements per register:
//   A (M x K) register r: row g + 8 * (r % (M / 8)), columns t * n + 0.. + (r / (M / 8)) * 4 * n
//   B (K x 8) register r: rows t * n + 0.. + r * 4 * n, column g
//   C, D (M x 8) element e: row g + 8 * (e / 2), column 2 * t + e % 2
#pragma once

#include "gpu/soft/matrix/fragment.h"

namespace vgpud::soft::VGPUD_ISA {

// Columns of B, C and D.
inline constexpr uint32_t kN = 8;

struct Element {
  uint32_t row;
  uint32_t column;
};
template <uint32_t kM, class E>
ALWAYS Element PlaceInA(uint32_t lane, uint32_t reg, uint32_t part) {
  constexpr uint32_t kEighths = kM / 8;
  return {lane / 4 + 8 * (reg % kEighths), lane % 4 * kPerRegister<E> + part + reg / kEighths * 4 * kPerRegister<E>};
}
template <class E>
ALWAYS Element PlaceInB(uint32_t lane, uint32_t reg, uint32_t part) {
  return {lane % 4 * kPerRegister<E> + part + reg * 4 * kPerRegister<E>, lane / 4};
}
ALWAYS Element PlaceInC(uint32_t lane, uint32_t e) { return {lane / 4 + 8 * (e / 2), lane % 4 * 2 + e % 2}; }

// a: kM rows of kK; b: kK rows of kN; sum: kM rows of kN.
template <class Math, uint32_t kM, uint32_t kK>
ALWAYS void MultiplyAdd(const Math* a, const Math* b, Math* sum, bool saturate) {
  for (uint32_t m = 0; m < kM; ++m) {
    Math* row = sum + m * kN;
    Math product[kN] = {};
    Math* to = !kIsFloat<Math> && saturate ? product : row;
    for (uint32_t k = 0; k < kK; ++k) {
      const Math x = a[m * kK + k];
      for (uint32_t n = 0; n < kN; ++n) {
        if constexpr (sizeof(Math) == 8) {
          to[n] = __builtin_fma(x, b[k * kN + n], to[n]);
        } else {
          to[n] += x * b[k * kN + n];
        }
      }
    }
    if constexpr (!kIsFloat<Math>) {
      // .satfinite: the products of one row do not overflow, their sum with C may.
      for (uint32_t n = 0; saturate && n < kN; ++n) {
        const int64_t v = static_cast<int64_t>(row[n]) + product[n];
        row[n] = static_cast<Math>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
      }
    }
  }
}

// Matrices as the product wants them, from the registers that begin with number `first`.
template <uint32_t kM, uint32_t kK, class A>
ALWAYS void GatherA(const Warp& w, const Inst* i, uint32_t first, typename A::Math* a) {
  for (uint32_t r = 0; r < kM * kK / kLanes / kPerRegister<A>; ++r) {
    const auto* from = Fragment<A>(w, i, first + r);
    for (uint32_t l = 0; l < kLanes; ++l) {
      for (uint32_t part = 0; part < kPerRegister<A>; ++part) {
        const Element at = PlaceInA<kM, A>(l, r, part);
        a[at.row * kK + at.column] = ElementOf<A>(from[l], part);
      }
    }
  }
}
template <uint32_t kK, class B>
ALWAYS void GatherB(const Warp& w, const Inst* i, uint32_t first, typename B::Math* b) {
  for (uint32_t r = 0; r < kN * kK / kLanes / kPerRegister<B>; ++r) {
    const auto* from = Fragment<B>(w, i, first + r);
    for (uint32_t l = 0; l < kLanes; ++l) {
      for (uint32_t part = 0; part < kPerRegister<B>; ++part) {
        const Element at = PlaceInB<B>(l, r, part);
        b[at.row * kN + at.column] = ElementOf<B>(from[l], part);
      }
    }
  }
}
template <uint32_t kM, class C>
ALWAYS void GatherC(const Warp& w, const Inst* i, uint32_t first, typename C::Math* sum) {
  for (uint32_t e = 0; e < kM * kN / kLanes; ++e) {
    const auto* from = Fragment<C>(w, i, first + e / kPerRegister<C>);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const Element at = PlaceInC(l, e);
      sum[at.row * kN + at.column] = ElementOf<C>(from[l], e % kPerRegister<C>);
    }
  }
}
// D, which begins with register 0.
template <uint32_t kM, class D>
ALWAYS void ScatterD(const Warp& w, const Inst* i, const typename D::Math* sum) {
  for (uint32_t r = 0; r < kM * kN / kLanes / kPerRegister<D>; ++r) {
    alignas(64) typename D::Reg t[kLanes] = {};
    for (uint32_t part = 0; part < kPerRegister<D>; ++part) {
      for (uint32_t l = 0; l < kLanes; ++l) {
        const Element at = PlaceInC(l, r * kPerRegister<D> + part);
        t[l] |= static_cast<typename D::Reg>(D::Put(sum[at.row * kN + at.column])) << (kElementBits<D> * part);
      }
    }
    StoreMasked(Fragment<D>(w, i, r), t, w.mask);
  }
}

}  // namespace vgpud::soft::VGPUD_ISA
