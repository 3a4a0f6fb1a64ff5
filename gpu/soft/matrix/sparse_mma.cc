// SPDX-License-Identifier: Apache-2.0
// mma.sp: A has zeros by a rule, and only the others are there (sparse.h).
#include "gpu/soft/matrix/mma.h"
#include "gpu/soft/matrix/sparse.h"
#include "gpu/soft/number/narrow.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kM = 16;

struct ByteE4m3 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return NarrowToFloat<E4m3>(v); }
};
struct ByteE5m2 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return NarrowToFloat<E5m2>(v); }
};

// D = A * B + C; the products of what is stored, in order of k.
template <uint32_t kK, class D, class A, class B, class C>
const Inst* SparseMma(Warp& w, const Inst* i) {
  using Math = typename D::Math;
  using S = Sparsity<A>;
  constexpr uint32_t kStoredK = kK / S::kPlaces * S::kStored;
  constexpr uint32_t kChunks = kK / (S::kPlaces * S::kUnit);
  constexpr uint32_t kRegistersD = kM * kN / kLanes / kPerRegister<D>;
  constexpr uint32_t kRegistersA = kM * kStoredK / kLanes / kPerRegister<A>;
  constexpr uint32_t kRegistersB = kN * kK / kLanes / kPerRegister<B>;
  constexpr uint32_t kFirstC = kRegistersD + kRegistersA + kRegistersB;
  constexpr uint32_t kMetadata = kFirstC + kM * kN / kLanes / kPerRegister<C>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) Math a[kM * kStoredK];
  alignas(64) Math b[kK * kN];
  alignas(64) Math sum[kM * kN];
  GatherA<kM, kStoredK, A>(w, i, kRegistersD, a);
  GatherB<kK, B>(w, i, kRegistersD + kRegistersA, b);
  GatherC<kM, C>(w, i, kFirstC, sum);
  const uint32_t* metadata = Fragment<S32>(w, i, kMetadata);
  const uint32_t selector = Fragment<S32>(w, i, kMetadata + 1)[__builtin_ctz(w.mask)];
  const bool saturate = !kIsFloat<Math> && (i->aux & 1) != 0;
  for (uint32_t m = 0; m < kM; ++m) {
    Math products[kN] = {};
    Math* to = saturate ? products : sum + m * kN;
    for (uint32_t stored = 0; stored < kStoredK; ++stored) {
      const uint32_t k = StoredColumn<A, kChunks>(metadata, selector, m, stored);
      const Math x = a[m * kStoredK + stored];
      for (uint32_t n = 0; n < kN; ++n) to[n] += x * b[k * kN + n];
    }
    if constexpr (!kIsFloat<Math>) {
      for (uint32_t n = 0; saturate && n < kN; ++n) {
        const int64_t v = static_cast<int64_t>(sum[m * kN + n]) + products[n];
        sum[m * kN + n] = static_cast<Math>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
      }
    }
  }
  ScatterD<kM, D>(w, i, sum);
  return i + 1;
}

}  // namespace

OpRows SparseMmaRows() {
// Operands: registers per fragment, of the metadata, of the selector.
#define SPARSE(shape, K, d, D, a, A, b, B, c, C, regs) \
  { "@mma.sp." shape "." d "." a "." b "." c, SparseMma<K, D, A, B, C>, regs "11" }
#define SPARSE_HALVES(shape, K, ra, rb)                                                \
  SPARSE(shape, K, "f16", F16, "f16", F16, "f16", F16, "f16", F16, "2" ra rb "2"),     \
      SPARSE(shape, K, "f32", F32, "f16", F16, "f16", F16, "f32", F32, "4" ra rb "4"), \
      SPARSE(shape, K, "f32", F32, "bf16", Bf16, "bf16", Bf16, "f32", F32, "4" ra rb "4")
#define SPARSE_INTEGERS(shape, K, s, S, u, U, regs)               \
  SPARSE(shape, K, "s32", S32, s, S, s, S, "s32", S32, regs),     \
      SPARSE(shape, K, "s32", S32, s, S, u, U, "s32", S32, regs), \
      SPARSE(shape, K, "s32", S32, u, U, s, S, "s32", S32, regs), \
      SPARSE(shape, K, "s32", S32, u, U, u, U, "s32", S32, regs)
#define SPARSE_BYTES(a, A, b, B)                                      \
  SPARSE("m16n8k64", 64, "f32", F32, a, A, b, B, "f32", F32, "4444"), \
      SPARSE("m16n8k64", 64, "f16", F16, a, A, b, B, "f16", F16, "2442")
  static const OpRow kRows[] = {
      SPARSE_HALVES("m16n8k16", 16, "2", "2"),
      SPARSE_HALVES("m16n8k32", 32, "4", "4"),
      SPARSE("m16n8k8", 8, "f32", F32, "tf32", Tf32, "tf32", Tf32, "f32", F32, "4224"),
      SPARSE("m16n8k16", 16, "f32", F32, "tf32", Tf32, "tf32", Tf32, "f32", F32, "4444"),
      SPARSE_INTEGERS("m16n8k32", 32, "s8", S8, "u8", U8, "4224"),
      SPARSE_INTEGERS("m16n8k64", 64, "s8", S8, "u8", U8, "4444"),
      SPARSE_INTEGERS("m16n8k64", 64, "s4", S4, "u4", U4, "4224"),
      SPARSE_INTEGERS("m16n8k128", 128, "s4", S4, "u4", U4, "4444"),
      SPARSE_BYTES("e4m3", ByteE4m3, "e4m3", ByteE4m3),
      SPARSE_BYTES("e4m3", ByteE4m3, "e5m2", ByteE5m2),
      SPARSE_BYTES("e5m2", ByteE5m2, "e4m3", ByteE4m3),
      SPARSE_BYTES("e5m2", ByteE5m2, "e5m2", ByteE5m2),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
