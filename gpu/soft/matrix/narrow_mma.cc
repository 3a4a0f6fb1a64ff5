// SPDX-License-Identifier: Apache-2.0
// mma.sync of elements of eight bits and less in floating point, without and with scales for blocks of them.
#include "gpu/soft/matrix/narrow_mma.h"

namespace vgpud::soft::VGPUD_ISA {

namespace {

constexpr uint32_t kM = kNarrowM;

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

template <uint32_t kK, uint32_t kVector, class Scale>
[[gnu::noinline]] void ScaledProduct(const Warp& w, const Inst* i, uint32_t first_c, const float* a, const float* b) {
  constexpr uint32_t kBlock = kK / kVector;
  alignas(64) float sum[kM * kN];
  GatherC<kM, F32>(w, i, first_c, sum);
  const BlockScales<kVector, Scale> scales(w, i, first_c + kM * kN / kLanes);
  for (uint32_t block = 0; block < kVector; ++block) {
    double scale_b[kN];
    for (uint32_t n = 0; n < kN; ++n) scale_b[n] = scales.OfColumn(n, block);
    for (uint32_t m = 0; m < kM; ++m) {
      const double scale_a = scales.OfRow(m, block);
      float products[kN] = {};
      for (uint32_t k = block * kBlock; k < (block + 1) * kBlock; ++k)
        for (uint32_t n = 0; n < kN; ++n) products[n] += a[m * kK + k] * b[k * kN + n];
      for (uint32_t n = 0; n < kN; ++n) sum[m * kN + n] = AddScaled(sum[m * kN + n], products[n], scale_a, scale_b[n]);
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
