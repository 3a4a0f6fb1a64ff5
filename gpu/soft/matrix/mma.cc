// SPDX-License-Identifier: Apache-2.0
// mma.sync of elements of a bit, four bits, a byte and more, wmma of elements of less than a byte.
#include "gpu/soft/matrix/mma.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// D = A * B + C. Products are exact (of f64 they are rounded once with the sum) and added in order of k.
template <uint32_t kM, uint32_t kK, class D, class A, class B, class C>
const Inst* Mma(Warp& w, const Inst* i) {
  using Math = typename D::Math;
  constexpr uint32_t kRegistersA = kM * kK / kLanes / kPerRegister<A>;
  constexpr uint32_t kRegistersB = kN * kK / kLanes / kPerRegister<B>;
  constexpr uint32_t kElementsC = kM * kN / kLanes;
  constexpr uint32_t kRegistersD = kElementsC / kPerRegister<D>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) Math a[kM * kK];
  alignas(64) Math b[kK * kN];
  alignas(64) Math sum[kM * kN];
  GatherA<kM, kK, A>(w, i, kRegistersD, a);
  GatherB<kK, B>(w, i, kRegistersD + kRegistersA, b);
  GatherC<kM, C>(w, i, kRegistersD + kRegistersA + kRegistersB, sum);
  MultiplyAdd<Math, kM, kK>(a, b, sum, i->aux & 1);
  ScatterD<kM, D>(w, i, sum);
  return i + 1;
}

// Of single bits: the number of ones in the "and" or "xor" of a row and a column.
template <uint32_t kM, uint32_t kK, bool kXor>
const Inst* MmaBits(Warp& w, const Inst* i) {
  constexpr uint32_t kWords = kK / 32;
  constexpr uint32_t kEighths = kM / 8;
  constexpr uint32_t kRegistersD = 2 * kEighths;
  constexpr uint32_t kRegistersA = kEighths * kWords / 4;
  if (!WholeWarp(w, i)) return i;
  uint32_t a[kM][kWords];
  uint32_t b[kN][kWords];
  for (uint32_t r = 0; r < kRegistersA; ++r)
    for (uint32_t l = 0; l < kLanes; ++l)
      a[l / 4 + 8 * (r % kEighths)][l % 4 + r / kEighths * 4] = Fragment<S32>(w, i, kRegistersD + r)[l];
  for (uint32_t r = 0; r < kWords / 4; ++r)
    for (uint32_t l = 0; l < kLanes; ++l)
      b[l / 4][l % 4 + 4 * r] = Fragment<S32>(w, i, kRegistersD + kRegistersA + r)[l];
  for (uint32_t e = 0; e < kRegistersD; ++e) {
    const uint32_t* c = Fragment<S32>(w, i, kRegistersD + kRegistersA + kWords / 4 + e);
    alignas(64) uint32_t t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      const Element at = PlaceInC(l, e);
      t[l] = c[l];
      for (uint32_t k = 0; k < kWords; ++k) {
        const uint32_t x = a[at.row][k];
        const uint32_t y = b[at.column][k];
        t[l] += static_cast<uint32_t>(__builtin_popcount(kXor ? x ^ y : x & y));
      }
    }
    StoreMasked(Fragment<S32>(w, i, e), t, w.mask);
  }
  return i + 1;
}

// nullptr: a fault was raised.
ALWAYS std::byte* MatrixWords(Warp& w, const Inst* i, uint32_t lane, uint64_t address, uint32_t bytes, bool store) {
  const auto space = static_cast<MemSpace>(i->aux >> 1);
  std::byte* at = LaneAddress(w, space, lane, address, bytes, store);
  const bool mapped = at != nullptr && LaneAddress(w, space, lane, address + bytes - 1, 1, store) != nullptr;
  if (mapped && address % 4 == 0) return at;
  RaiseAddressFault(w, i, mapped ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, lane, address, bytes,
                    store ? "store of a matrix's row" : "load of a matrix's row");
  return nullptr;
}

// wmma of elements of less than a byte: the fragments are those of mma. A row of A, or a column of B, is 4 words.
template <uint32_t kBits>
const Inst* LoadSmallElements(Warp& w, const Inst* i) {
  constexpr uint32_t kWords = 4;
  if (!WholeWarp(w, i)) return i;
  const auto lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  const uint64_t address = LaneOperandAddress(w, i, lane);
  const uint32_t given = In<uint32_t>(w, i, 1)[lane];
  const uint64_t stride = (given != 0 ? given : kWords * 32 / kBits) * uint64_t{kBits} / 8;
  alignas(64) uint32_t t[kLanes];
  for (uint32_t run = 0; run < kLanes / kWords; ++run) {
    const std::byte* at = MatrixWords(w, i, lane, address + run * stride, 4 * kWords, false);
    if (at == nullptr) return i;
    __builtin_memcpy(t + run * kWords, at, 4 * kWords);
  }
  StoreMasked(Fragment<S32>(w, i, 0), t, w.mask);
  return i + 1;
}
// C and D of such a wmma.
template <bool kStore>
const Inst* TransferSums(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  const auto lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  const uint64_t address = LaneOperandAddress(w, i, lane);
  const uint32_t given = In<uint32_t>(w, i, 1)[lane];
  const uint64_t stride = given != 0 ? given : kN;
  uint32_t matrix[kN][kN];
  for (uint32_t e = 0; kStore && e < 2; ++e)
    for (uint32_t l = 0; l < kLanes; ++l) matrix[PlaceInC(l, e).row][PlaceInC(l, e).column] = Fragment<S32>(w, i, e)[l];
  for (uint32_t outer = 0; outer < kN; ++outer) {
    std::byte* at = MatrixWords(w, i, lane, address + 4 * outer * stride, 4 * kN, kStore);
    if (at == nullptr) return i;
    for (uint32_t inner = 0; inner < kN; ++inner) {
      uint32_t& element = i->aux & 1 ? matrix[inner][outer] : matrix[outer][inner];
      if constexpr (kStore) {
        __builtin_memcpy(at + 4 * inner, &element, 4);
      } else {
        __builtin_memcpy(&element, at + 4 * inner, 4);
      }
    }
  }
  for (uint32_t e = 0; !kStore && e < 2; ++e) {
    alignas(64) uint32_t t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) t[l] = matrix[PlaceInC(l, e).row][PlaceInC(l, e).column];
    StoreMasked(Fragment<S32>(w, i, e), t, w.mask);
  }
  return i + 1;
}

}  // namespace

OpRows MmaRows() {
// Operands: registers per fragment.
#define MMA(shape, M, K, d, D, a, A, b, B, c, C, regs) \
  { "@mma." shape "." d "." a "." b "." c, Mma<M, K, D, A, B, C>, regs }
#define MMA_HALVES(shape, K, ra, rb)                                                    \
  MMA(shape, 16, K, "f16", F16, "f16", F16, "f16", F16, "f16", F16, "2" ra rb "2"),     \
      MMA(shape, 16, K, "f32", F32, "f16", F16, "f16", F16, "f32", F32, "4" ra rb "4"), \
      MMA(shape, 16, K, "f16", F16, "f16", F16, "f16", F16, "f32", F32, "2" ra rb "4"), \
      MMA(shape, 16, K, "f32", F32, "f16", F16, "f16", F16, "f16", F16, "4" ra rb "2"), \
      MMA(shape, 16, K, "f32", F32, "bf16", Bf16, "bf16", Bf16, "f32", F32, "4" ra rb "4")
#define MMA_INTEGERS(shape, M, K, s, S, u, U, regs)               \
  MMA(shape, M, K, "s32", S32, s, S, s, S, "s32", S32, regs),     \
      MMA(shape, M, K, "s32", S32, s, S, u, U, "s32", S32, regs), \
      MMA(shape, M, K, "s32", S32, u, U, s, S, "s32", S32, regs), \
      MMA(shape, M, K, "s32", S32, u, U, u, U, "s32", S32, regs)
#define MMA_BITS(shape, M, K, regs)                                  \
  {"@mma.xor." shape ".s32.b1.b1.s32", MmaBits<M, K, true>, regs}, { \
    "@mma.and." shape ".s32.b1.b1.s32", MmaBits<M, K, false>, regs   \
  }
#define SMALL_AB(shape, type, bits)                                 \
  {"@wmma.load.a." shape "." type, LoadSmallElements<bits>, "1"}, { \
    "@wmma.load.b." shape "." type, LoadSmallElements<bits>, "1"    \
  }
#define SMALL_SUMS(shape) \
  {"@wmma.load.c." shape ".s32", TransferSums<false>, "2"}, { "@wmma.store.d." shape ".s32", TransferSums<true>, "2" }
  static const OpRow kRows[] = {
      MMA_HALVES("m16n8k8", 8, "2", "1"),
      MMA_HALVES("m16n8k16", 16, "4", "2"),
      MMA("m16n8k4", 16, 4, "f32", F32, "tf32", Tf32, "tf32", Tf32, "f32", F32, "4214"),
      MMA("m16n8k8", 16, 8, "f32", F32, "tf32", Tf32, "tf32", Tf32, "f32", F32, "4424"),
      MMA("m8n8k4", 8, 4, "f64", F64, "f64", F64, "f64", F64, "f64", F64, "2112"),
      MMA("m16n8k4", 16, 4, "f64", F64, "f64", F64, "f64", F64, "f64", F64, "4214"),
      MMA("m16n8k8", 16, 8, "f64", F64, "f64", F64, "f64", F64, "f64", F64, "4424"),
      MMA("m16n8k16", 16, 16, "f64", F64, "f64", F64, "f64", F64, "f64", F64, "4844"),
      MMA_INTEGERS("m8n8k16", 8, 16, "s8", S8, "u8", U8, "2112"),
      MMA_INTEGERS("m16n8k16", 16, 16, "s8", S8, "u8", U8, "4214"),
      MMA_INTEGERS("m16n8k32", 16, 32, "s8", S8, "u8", U8, "4424"),
      MMA_INTEGERS("m8n8k32", 8, 32, "s4", S4, "u4", U4, "2112"),
      MMA_INTEGERS("m16n8k32", 16, 32, "s4", S4, "u4", U4, "4214"),
      MMA_INTEGERS("m16n8k64", 16, 64, "s4", S4, "u4", U4, "4424"),
      MMA_BITS("m8n8k128", 8, 128, "2112"),
      MMA_BITS("m16n8k128", 16, 128, "4214"),
      MMA_BITS("m16n8k256", 16, 256, "4424"),
      SMALL_AB("m8n8k32", "s4", 4),
      SMALL_AB("m8n8k32", "u4", 4),
      SMALL_SUMS("m8n8k32"),
      {"@wmma.mma.m8n8k32.s32.s4.s4.s32", Mma<8, 32, S32, S4, S4, S32>, "2112"},
      {"@wmma.mma.m8n8k32.s32.u4.u4.s32", Mma<8, 32, S32, U4, U4, S32>, "2112"},
      SMALL_AB("m8n8k128", "b1", 1),
      SMALL_SUMS("m8n8k128"),
      {"@wmma.mma.xor.m8n8k128.s32.b1.b1.s32", MmaBits<8, 128, true>, "2112"},
      {"@wmma.mma.and.m8n8k128.s32.b1.b1.s32", MmaBits<8, 128, false>, "2112"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
