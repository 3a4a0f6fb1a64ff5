// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async.sp: as wgmma.mma_async, with twice as many columns of A, of which half are stored (sparse.h). Each
// warp has the metadata of its rows.
#include "gpu/soft/matrix/sparse.h"
#include "gpu/soft/matrix/wgmma.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class A, uint32_t kStored, uint32_t kChunks>
[[gnu::noinline]] void ColumnsOfRows(const uint32_t* metadata, uint32_t selector, uint8_t* at) {
  for (uint32_t m = 0; m < kWarpRows; ++m)
    for (uint32_t s = 0; s < kStored; ++s)
      at[m * kStored + s] = static_cast<uint8_t>(StoredColumn<A, kChunks>(metadata, selector, m, s));
}

template <class Math, uint32_t kStored>
[[gnu::noinline]] void MultiplyStored(const Math* a, const uint8_t* at, const Math* b, Math* sum, uint32_t columns,
                                      bool saturate) {
  for (uint32_t m = 0; m < kWarpRows; ++m) {
    Math* row = sum + m * columns;
    Math products[kWgmmaMostN] = {};
    Math* to = saturate ? products : row;
    for (uint32_t s = m * kStored; s < (m + 1) * kStored; ++s)
      for (uint32_t n = 0; n < columns; ++n) to[n] += a[s] * b[at[s] * columns + n];
    if (saturate) AddSaturated(products, row, columns);
  }
}

// Operands: those of the dense product, and the metadata 3.
template <uint32_t kK, class D, class A, class B>
const Inst* WgmmaSparse(Warp& w, const Inst* i) {
  using Math = typename D::Math;
  using S = Sparsity<A>;
  constexpr uint32_t kStored = kK / 2;
  constexpr uint32_t kChunks = kK / S::kPlaces;
  if (!WholeWarp(w, i)) return i;
  const uint32_t columns = ColumnsOf(i);
  alignas(64) Math a[kWarpRows * kStored];
  alignas(64) Math b[kK * kWgmmaMostN];
  alignas(64) Math sum[kWarpRows * kWgmmaMostN];
  uint8_t at[kWarpRows * kStored];
  if (!ReadA<kStored, A>(w, i, columns / 2 / kPerRegister<D>, a) || !ReadB<kK, B>(w, i, columns, b)) return i;
  ColumnsOfRows<A, kStored, kChunks>(In<uint32_t>(w, i, 3), static_cast<uint32_t>(i->imm) / (kWgmmaColumns + 1), at);
  ReadSums<D>(w, i, columns, sum);
  MultiplyStored<Math, kStored>(a, at, b, sum, columns, (i->aux & kSaturates) != 0);
  WriteSums<D>(w, i, columns, sum);
  return i + 1;
}

}  // namespace

OpRows WgmmaSparseRows() {
#define WGMMA(k, K, d, D, a, A, b, B) \
  { "@wgmma.mma_async.sp.m64nNk" k "." d "." a "." b, WgmmaSparse<K, D, A, B>, "" }
#define WGMMA_BYTES(a, A, b, B) WGMMA("64", 64, "f32", F32, a, A, b, B), WGMMA("64", 64, "f16", F16, a, A, b, B)
  static const OpRow kRows[] = {
      WGMMA("32", 32, "f16", F16, "f16", F16, "f16", F16),
      WGMMA("32", 32, "f32", F32, "f16", F16, "f16", F16),
      WGMMA("32", 32, "f32", F32, "bf16", Bf16, "bf16", Bf16),
      WGMMA("16", 16, "f32", F32, "tf32", Tf32, "tf32", Tf32),
      WGMMA_BYTES("e4m3", WgmmaByte<E4m3>, "e4m3", WgmmaByte<E4m3>),
      WGMMA_BYTES("e4m3", WgmmaByte<E4m3>, "e5m2", WgmmaByte<E5m2>),
      WGMMA_BYTES("e5m2", WgmmaByte<E5m2>, "e4m3", WgmmaByte<E4m3>),
      WGMMA_BYTES("e5m2", WgmmaByte<E5m2>, "e5m2", WgmmaByte<E5m2>),
      WGMMA("64", 64, "s32", S32, "s8", S8, "s8", S8),
      WGMMA("64", 64, "s32", S32, "s8", S8, "u8", U8),
      WGMMA("64", 64, "s32", S32, "u8", U8, "s8", S8),
      WGMMA("64", 64, "s32", S32, "u8", U8, "u8", U8),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
