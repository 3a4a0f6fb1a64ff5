// SPDX-License-Identifier: Apache-2.0
// mma.sp with .kind: sparse matrices (sparse.h) of elements of eight bits and less, without and with scales for blocks
// of them. As in narrow_mma.cc; a block has as many columns of the full A as it would have there.
#include "gpu/soft/matrix/narrow_mma.h"
#include "gpu/soft/matrix/sparse.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kM = kNarrowM;
// In all shapes: chunks of a row.
constexpr uint32_t kChunks = 16;

// The columns of all that is stored, row after row.
template <class A, uint32_t kStoredK>
[[gnu::noinline]] void ColumnsOf(const uint32_t* metadata, uint8_t* columns) {
  for (uint32_t m = 0; m < kM; ++m)
    for (uint32_t stored = 0; stored < kStoredK; ++stored)
      columns[m * kStoredK + stored] = static_cast<uint8_t>(StoredColumn<A, kChunks>(metadata, 0, m, stored));
}

// Registers: D, A, B, C, metadata, selector, scales.
template <uint32_t kK, class D, class A, class B>
struct Sizes {
  static constexpr uint32_t kStored = kK / 2;
  static constexpr uint32_t kD = kM * kN / kLanes / kPerRegister<D>;
  static constexpr uint32_t kA = kM * kStored / kLanes / kPerRegister<A>;
  static constexpr uint32_t kB = kN * kK / kLanes / kPerRegister<B>;
  static constexpr uint32_t kFirstC = kD + kA + kB;
  static constexpr uint32_t kMetadata = kFirstC + kD;
};

template <uint32_t kStored, class D>
[[gnu::noinline]] void SparseProduct(const Warp& w, const Inst* i, uint32_t first_c, const float* a,
                                     const uint8_t* columns, const float* b) {
  alignas(64) float sum[kM * kN];
  GatherC<kM, D>(w, i, first_c, sum);
  for (uint32_t m = 0; m < kM; ++m) {
    for (uint32_t at = m * kStored; at < (m + 1) * kStored; ++at)
      for (uint32_t n = 0; n < kN; ++n) sum[m * kN + n] += a[at] * b[columns[at] * kN + n];
  }
  ScatterD<kM, D>(w, i, sum);
}
// A and B of one instruction, with where the stored values of A stand in their rows.
template <uint32_t kK, class D, class A, class B>
struct SparseOperands : Sizes<kK, D, A, B> {
  using S = Sizes<kK, D, A, B>;
  SparseOperands(const Warp& w, const Inst* i) {
    NarrowA<S::kStored, A>(w, i, S::kD, a);
    NarrowB<kK, B>(w, i, S::kD + S::kA, b);
    ColumnsOf<A, S::kStored>(Fragment<S32>(w, i, S::kMetadata), columns);
  }
  alignas(64) float a[kM * S::kStored];
  alignas(64) float b[kK * kN];
  uint8_t columns[kM * S::kStored];
};

template <uint32_t kK, class D, class A, class B>
const Inst* SparseNarrow(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  using Operands = SparseOperands<kK, D, A, B>;
  const Operands from(w, i);
  SparseProduct<Operands::kStored, D>(w, i, Operands::kFirstC, from.a, from.columns, from.b);
  return i + 1;
}

template <uint32_t kStored, uint32_t kVector, class Scale>
[[gnu::noinline]] void ScaledSparseProduct(const Warp& w, const Inst* i, uint32_t first_c, const float* a,
                                           const uint8_t* columns, const float* b) {
  constexpr uint32_t kBlock = kStored / kVector;
  alignas(64) float sum[kM * kN];
  GatherC<kM, F32>(w, i, first_c, sum);
  const BlockScales<kVector, Scale> scales(w, i, first_c + kM * kN / kLanes + 2);
  for (uint32_t m = 0; m < kM; ++m) {
    for (uint32_t block = 0; block < kVector; ++block) {
      float products[kN] = {};
      const uint32_t first = m * kStored + block * kBlock;
      for (uint32_t at = first; at < first + kBlock; ++at)
        for (uint32_t n = 0; n < kN; ++n) products[n] += a[at] * b[columns[at] * kN + n];
      for (uint32_t n = 0; n < kN; ++n)
        sum[m * kN + n] = AddScaled(sum[m * kN + n], products[n], scales.OfRow(m, block), scales.OfColumn(n, block));
    }
  }
  ScatterD<kM, F32>(w, i, sum);
}
template <uint32_t kK, uint32_t kVector, class Scale, class A, class B>
const Inst* ScaledSparse(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  using Operands = SparseOperands<kK, F32, A, B>;
  const Operands from(w, i);
  ScaledSparseProduct<Operands::kStored, kVector, Scale>(w, i, Operands::kFirstC, from.a, from.columns, from.b);
  return i + 1;
}

}  // namespace

OpRows SparseNarrowMmaRows() {
// Operands: registers per fragment, of the metadata and its selector, of the scales of A and their selectors, of B.
#define BY_KIND(a, b)                                                                                                 \
  {"@mma.sp.kind::f8f6f4.m16n8k64.f32." #a "." #b ".f32", SparseNarrow<64, F32, OCTET(a), OCTET(b)>, "444411"},       \
      {"@mma.sp.kind::f8f6f4.m16n8k64.f16." #a "." #b ".f16", SparseNarrow<64, F16, OCTET(a), OCTET(b)>, "244211"}, { \
    "@mma.sp.kind::mxf8f6f4.scale_vec::1X.m16n8k64.f32." #a "." #b ".f32.ue8m0",                                      \
        ScaledSparse<64, 1, Ue8m0, OCTET(a), OCTET(b)>, "4444111212"                                                  \
  }
#define BY_KINDS(a) BY_KIND(a, e4m3), BY_KIND(a, e5m2), BY_KIND(a, e3m2), BY_KIND(a, e2m3), BY_KIND(a, e2m1)
#define FOUR_BITS(kind, vector, kVector, scale, Scale)                                 \
  {                                                                                    \
    "@mma.sp.kind::" kind ".scale_vec::" vector ".m16n8k128.f32.e2m1.e2m1.f32." scale, \
        ScaledSparse<128, kVector, Scale, PackedE2m1, PackedE2m1>, "4444111212"        \
  }
  static const OpRow kRows[] = {
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
