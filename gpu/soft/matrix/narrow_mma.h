// SPDX-License-Identifier: Apache-2.0
// Elements of eight bits and less in floating point as mma has them in registers, and scales for blocks of them.
#pragma once

#include "gpu/soft/matrix/mma.h"
#include "gpu/soft/number/narrow.h"

namespace vgpud::soft::VGPUD_ISA {

// An element in eight bits, kAt bits from the lowest on: those of four bits lie in the middle.
template <class F, uint32_t kAt = 0>
struct Octet {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return NarrowToFloat<F>(v >> kAt); }
};
using OctetE4m3 = Octet<E4m3>;
using OctetE5m2 = Octet<E5m2>;
using OctetE3m2 = Octet<E3m2>;
using OctetE2m3 = Octet<E2m3>;
using OctetE2m1 = Octet<E2m1, 2>;
// By the name that PTX has for the type.
#define OCTET(a) OCTET_##a
#define OCTET_e4m3 OctetE4m3
#define OCTET_e5m2 OctetE5m2
#define OCTET_e3m2 OctetE3m2
#define OCTET_e2m3 OctetE2m3
#define OCTET_e2m1 OctetE2m1
// Eight of four bits in a register.
struct PackedE2m1 : Octet<E2m1> {};
template <>
inline constexpr uint32_t kElementBits<PackedE2m1> = 4;

// Rows of A, C and D.
inline constexpr uint32_t kNarrowM = 16;

// One function each, as every pair of types has a handler of its own.
template <uint32_t kK, class A>
[[gnu::noinline]] void NarrowA(const Warp& w, const Inst* i, uint32_t first, float* a) {
  GatherA<kNarrowM, kK, A>(w, i, first, a);
}
template <uint32_t kK, class B>
[[gnu::noinline]] void NarrowB(const Warp& w, const Inst* i, uint32_t first, float* b) {
  GatherB<kK, B>(w, i, first, b);
}
struct Ue8m0 {
  ALWAYS double Get(uint32_t v) { return static_cast<double>(ScaleToFloat(v)); }
};
// e4m3 without a sign.
struct Ue4m3 {
  ALWAYS double Get(uint32_t v) { return static_cast<double>(NarrowToFloat<E4m3>(v & 0x7fu)); }
};

// Which lanes and bytes hold scales: those of A row m in lane 4 * (m % 8) + m / 8 + 2 * thread, those of B column n in
// lane 4 * n + thread, kVector bytes each from number `byte` on.
struct ScaleSelector {
  uint32_t byte;
  uint32_t thread;
};
// All lanes name the same.
template <uint32_t kVector>
ALWAYS ScaleSelector SelectorAt(const Warp& w, const Inst* i, uint32_t first, uint32_t threads) {
  const auto lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  return {Fragment<S32>(w, i, first)[lane] & (4 - kVector), Fragment<S32>(w, i, first + 1)[lane] & (threads - 1)};
}

// The scales of a product, from register number `first` on: those of A and their selector, those of B.
template <uint32_t kVector, class Scale>
class BlockScales {
 public:
  BlockScales(const Warp& w, const Inst* i, uint32_t first)
      : a_(Fragment<S32>(w, i, first)),
        b_(Fragment<S32>(w, i, first + 3)),
        of_a_(SelectorAt<kVector>(w, i, first + 1, 2)),
        of_b_(SelectorAt<kVector>(w, i, first + 4, 4)) {}
  double OfRow(uint32_t m, uint32_t block) const {
    return Scale::Get(a_[4 * (m % 8) + m / 8 + 2 * of_a_.thread] >> (8 * (of_a_.byte + block)) & 0xff);
  }
  double OfColumn(uint32_t n, uint32_t block) const {
    return Scale::Get(b_[4 * n + of_b_.thread] >> (8 * (of_b_.byte + block)) & 0xff);
  }

 private:
  const uint32_t* a_;
  const uint32_t* b_;
  ScaleSelector of_a_;
  ScaleSelector of_b_;
};
// What a block's products, summed up as f32 in the order of k from zero, add to the accumulator: the sum is multiplied
// by its two scales exactly and added with one rounding.
ALWAYS float AddScaled(float to, float products, double scale_a, double scale_b) {
  return static_cast<float>(static_cast<double>(to) + static_cast<double>(products) * (scale_a * scale_b));
}

}  // namespace vgpud::soft::VGPUD_ISA
