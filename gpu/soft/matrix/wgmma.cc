// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async (PTX ISA "Asynchronous Warpgroup Level Matrix Instructions"): D = A * B + D, M = 64, done by the four
// warps of a warpgroup: each of them has 16 rows of A and D, and all of B. The result is there when the instruction is
// done, so groups have nothing to wait for. Products are exact and added in order of k, beginning with D.
#include "gpu/soft/matrix/wgmma.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class Math, uint32_t kK>
[[gnu::noinline]] void Multiply(const Math* a, const Math* b, Math* sum, uint32_t columns, bool saturate) {
  for (uint32_t m = 0; m < kWarpRows; ++m) {
    Math* row = sum + m * columns;
    Math products[kWgmmaMostN] = {};
    Math* to = !kIsFloat<Math> && saturate ? products : row;
    for (uint32_t k = 0; k < kK; ++k) {
      const Math x = a[m * kK + k];
      for (uint32_t n = 0; n < columns; ++n) to[n] += x * b[k * columns + n];
    }
    if (saturate) AddSaturated(products, row, columns);
  }
}

template <uint32_t kK, class D, class A, class B>
const Inst* Wgmma(Warp& w, const Inst* i) {
  using Math = typename D::Math;
  if (!WholeWarp(w, i)) return i;
  const uint32_t columns = ColumnsOf(i);
  alignas(64) Math a[kWarpRows * kK];
  alignas(64) Math b[kK * kWgmmaMostN];
  alignas(64) Math sum[kWarpRows * kWgmmaMostN];
  if (!ReadA<kK, A>(w, i, columns / 2 / kPerRegister<D>, a) || !ReadB<kK, B>(w, i, columns, b)) return i;
  ReadSums<D>(w, i, columns, sum);
  Multiply<Math, kK>(a, b, sum, columns, (i->aux & kSaturates) != 0);
  WriteSums<D>(w, i, columns, sum);
  return i + 1;
}

// Of single bits: the ones that a row and a column have in common.
struct Word {
  using Memory = uint32_t;
  using Reg = uint32_t;
  using Math = uint32_t;
  ALWAYS Math Get(uint32_t v) { return v; }
};
const Inst* WgmmaBits(Warp& w, const Inst* i) {
  constexpr uint32_t kWords = 8;
  if (!WholeWarp(w, i)) return i;
  const uint32_t columns = ColumnsOf(i);
  uint32_t a[kWarpRows * kWords];
  uint32_t b[kWords * kWgmmaMostN];
  int32_t sum[kWarpRows * kWgmmaMostN];
  if (!ReadA<kWords, Word>(w, i, columns / 2, a) || !ReadB<kWords, Word>(w, i, columns, b)) return i;
  ReadSums<S32>(w, i, columns, sum);
  for (uint32_t m = 0; m < kWarpRows; ++m)
    for (uint32_t k = 0; k < kWords; ++k)
      for (uint32_t n = 0; n < columns; ++n)
        sum[m * columns + n] += __builtin_popcount(a[m * kWords + k] & b[k * columns + n]);
  WriteSums<S32>(w, i, columns, sum);
  return i + 1;
}

const Inst* WgmmaDone(Warp& w, const Inst* i) { return WholeWarp(w, i) ? i + 1 : i; }

}  // namespace

OpRows WgmmaRows() {
#define WGMMA(k, K, d, D, a, A, b, B) \
  { "@wgmma.mma_async.m64nNk" k "." d "." a "." b, Wgmma<K, D, A, B>, "" }
#define WGMMA_BYTES(a, A, b, B) WGMMA("32", 32, "f32", F32, a, A, b, B), WGMMA("32", 32, "f16", F16, a, A, b, B)
  static const OpRow kRows[] = {
      WGMMA("16", 16, "f16", F16, "f16", F16, "f16", F16),
      WGMMA("16", 16, "f32", F32, "f16", F16, "f16", F16),
      WGMMA("16", 16, "f32", F32, "bf16", Bf16, "bf16", Bf16),
      WGMMA("8", 8, "f32", F32, "tf32", Tf32, "tf32", Tf32),
      WGMMA_BYTES("e4m3", WgmmaByte<E4m3>, "e4m3", WgmmaByte<E4m3>),
      WGMMA_BYTES("e4m3", WgmmaByte<E4m3>, "e5m2", WgmmaByte<E5m2>),
      WGMMA_BYTES("e5m2", WgmmaByte<E5m2>, "e4m3", WgmmaByte<E4m3>),
      WGMMA_BYTES("e5m2", WgmmaByte<E5m2>, "e5m2", WgmmaByte<E5m2>),
      WGMMA("32", 32, "s32", S32, "s8", S8, "s8", S8),
      WGMMA("32", 32, "s32", S32, "s8", S8, "u8", U8),
      WGMMA("32", 32, "s32", S32, "u8", U8, "s8", S8),
      WGMMA("32", 32, "s32", S32, "u8", U8, "u8", U8),
      {"@wgmma.mma_async.m64nNk256.s32.b1.b1", WgmmaBits, ""},
      {"@wgmma.fence", WgmmaDone, ""},
      {"@wgmma.commit_group", WgmmaDone, ""},
      {"@wgmma.wait_group", WgmmaDone, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
