// SPDX-License-Identifier: Apache-2.0
// mma.sync of elements of eight bits and less in floating point, without and with scales for blocks of them.
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
// Eight of four bits in a register.
struct PackedE2m1 : Octet<E2m1> {};
template <>
inline constexpr uint32_t kElementBits<PackedE2m1> = 4;

namespace {

constexpr uint32_t kM = 16;

// One function each, as every pair of types has a handler of its own.
template <uint32_t kK, class A>
[[gnu::noinline]] void NarrowA(const Warp& w, const Inst* i, uint32_t first, float* a) {
  GatherA<kM, kK, A>(w, i, first, a);
}
template <uint32_t kK, class B>
[[gnu::noinline]] void NarrowB(const Warp& w, const Inst* i, uint32_t first, float* b) {
  GatherB<kK, B>(w, i, first, b);
}
template <uint32_t kK, class D>
[[gnu::noinline]] void NarrowProduct(const Warp& w, const Inst* i, uint32_t first_c, const float* a, const float* b) {
  alignas(64) float sum[kM * kN];
  GatherC<kM, D>(w, i, first_c, sum);
  MultiplyAdd<float, kM, kK>(a, b, sum, false);
  ScatterD<kM, D>(w, i, sum);
}

// D = A * B + C; C and D have the same type. Products are exact and added as f32 in order of k.
template <uint32_t kK, class D, class A, class B>
const Inst* NarrowMma(Warp& w, const Inst* i) {
  constexpr uint32_t kRegistersD = kM * kN / kLanes / kPerRegister<D>;
  constexpr uint32_t kRegistersA = kM * kK / kLanes / kPerRegister<A>;
  constexpr uint32_t kRegistersB = kN * kK / kLanes / kPerRegister<B>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) float a[kM * kK];
  alignas(64) float b[kK * kN];
  NarrowA<kK, A>(w, i, kRegistersD, a);
  NarrowB<kK, B>(w, i, kRegistersD + kRegistersA, b);
  NarrowProduct<kK, D>(w, i, kRegistersD + kRegistersA + kRegistersB, a, b);
  return i + 1;
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

// The sum of a block's products, as f32 in order of k, is multiplied by its two scales exactly and added to the
// accumulator with one rounding.
template <uint32_t kK, uint32_t kVector, class Scale>
[[gnu::noinline]] void ScaledProduct(const Warp& w, const Inst* i, uint32_t first_c, const float* a, const float* b) {
  constexpr uint32_t kBlock = kK / kVector;
  alignas(64) float sum[kM * kN];
  GatherC<kM, F32>(w, i, first_c, sum);
  const uint32_t first_scale = first_c + kM * kN / kLanes;
  const uint32_t* scales_a = Fragment<S32>(w, i, first_scale);
  const ScaleSelector of_a = SelectorAt<kVector>(w, i, first_scale + 1, 2);
  const uint32_t* scales_b = Fragment<S32>(w, i, first_scale + 3);
  const ScaleSelector of_b = SelectorAt<kVector>(w, i, first_scale + 4, 4);
  for (uint32_t block = 0; block < kVector; ++block) {
    double scale_b[kN];
    for (uint32_t n = 0; n < kN; ++n)
      scale_b[n] = Scale::Get(scales_b[4 * n + of_b.thread] >> (8 * (of_b.byte + block)) & 0xff);
    for (uint32_t m = 0; m < kM; ++m) {
      const double scale_a =
          Scale::Get(scales_a[4 * (m % 8) + m / 8 + 2 * of_a.thread] >> (8 * (of_a.byte + block)) & 0xff);
      float products[kN] = {};
      for (uint32_t k = block * kBlock; k < (block + 1) * kBlock; ++k)
        for (uint32_t n = 0; n < kN; ++n) products[n] += a[m * kK + k] * b[k * kN + n];
      for (uint32_t n = 0; n < kN; ++n) {
        float& to = sum[m * kN + n];
        to = static_cast<float>(static_cast<double>(to) + static_cast<double>(products[n]) * (scale_a * scale_b[n]));
      }
    }
  }
  ScatterD<kM, F32>(w, i, sum);
}
// D = (A * scales of A) * (B * scales of B) + C, all of C and D f32.
template <uint32_t kK, uint32_t kVector, class Scale, class A, class B>
const Inst* ScaledMma(Warp& w, const Inst* i) {
  constexpr uint32_t kRegistersD = kM * kN / kLanes;
  constexpr uint32_t kRegistersA = kM * kK / kLanes / kPerRegister<A>;
  constexpr uint32_t kRegistersB = kN * kK / kLanes / kPerRegister<B>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) float a[kM * kK];
  alignas(64) float b[kK * kN];
  NarrowA<kK, A>(w, i, kRegistersD, a);
  NarrowB<kK, B>(w, i, kRegistersD + kRegistersA, b);
  ScaledProduct<kK, kVector, Scale>(w, i, kRegistersD + kRegistersA + kRegistersB, a, b);
  return i + 1;
}

}  // namespace

OpRows NarrowMmaRows() {
// Operands: registers per fragment, then of the scales of A and their selectors, of B.
#define NARROW_BOTH(kind, shape, K, ra, rb, a, b)                                                           \
  {"@mma" kind "." shape ".f32." #a "." #b ".f32", NarrowMma<K, F32, OCTET(a), OCTET(b)>, "4" ra rb "4"}, { \
    "@mma" kind "." shape ".f16." #a "." #b ".f16", NarrowMma<K, F16, OCTET(a), OCTET(b)>, "2" ra rb "2"    \
  }
#define OCTET(a) OCTET_##a
#define OCTET_e4m3 OctetE4m3
#define OCTET_e5m2 OctetE5m2
#define OCTET_e3m2 OctetE3m2
#define OCTET_e2m3 OctetE2m3
#define OCTET_e2m1 OctetE2m1
#define SCALED(a, b)                                                          \
  {                                                                           \
    "@mma.kind::mxf8f6f4.scale_vec::1X.m16n8k32.f32." #a "." #b ".f32.ue8m0", \
        ScaledMma<32, 1, Ue8m0, OCTET(a), OCTET(b)>, "44241212"               \
  }
#define EIGHT_BITS(shape, K, ra, rb)                                                            \
  NARROW_BOTH("", shape, K, ra, rb, e4m3, e4m3), NARROW_BOTH("", shape, K, ra, rb, e4m3, e5m2), \
      NARROW_BOTH("", shape, K, ra, rb, e5m2, e4m3), NARROW_BOTH("", shape, K, ra, rb, e5m2, e5m2)
#define BY_KIND(a, b) NARROW_BOTH(".kind::f8f6f4", "m16n8k32", 32, "4", "2", a, b), SCALED(a, b)
#define BY_KINDS(a) BY_KIND(a, e4m3), BY_KIND(a, e5m2), BY_KIND(a, e3m2), BY_KIND(a, e2m3), BY_KIND(a, e2m1)
#define FOUR_BITS(kind, vector, kVector, scale, Scale)                             \
  {                                                                                \
    "@mma.kind::" kind ".scale_vec::" vector ".m16n8k64.f32.e2m1.e2m1.f32." scale, \
        ScaledMma<64, kVector, Scale, PackedE2m1, PackedE2m1>, "44241212"          \
  }
  static const OpRow kRows[] = {
      EIGHT_BITS("m16n8k16", 16, "2", "1"),
      EIGHT_BITS("m16n8k32", 32, "4", "2"),
      BY_KINDS(e4m3),
      BY_KINDS(e5m2),
      BY_KINDS(e3m2),
      BY_KINDS(e2m3),
      BY_KINDS(e2m1),
      FOUR_BITS("mxf4", "2X", 2, "ue8m0", Ue8m0),
      FOUR_BITS("mxf4nvf4", "2X", 2, "ue8m0", Ue8m0),
      FOUR_BITS("mxf4nvf4", "4X", 4, "ue4m3", Ue4m3),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
