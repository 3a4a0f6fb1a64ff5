// SPDX-License-Identifier: Apache-2.0
// wmma (PTX ISA "Warp-level Matrix Multiply-Accumulate"). Which lane and register holds which element is the
// implementation's business. Here, with n elements per lane: element e of lane l is number l * n + e of A by rows
// (number modulo the size: binary16 fragments hold elements twice or more), of B by columns; and number e * 32 + l of C
// and D by rows. So a register of C is a stretch of the matrix, and one of A is a stretch of a column where lanes are
// rows.
#include "gpu/soft/matrix/fragment.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class E>
inline constexpr bool kIsHalf = false;
template <>
inline constexpr bool kIsHalf<F16> = true;

// kOuter rows (A, C, D) or columns (B) of kInner elements each. kByRegister: the mapping of C and D.
template <class E, uint32_t kOuter, uint32_t kInner, bool kByRegister>
struct Shape {
  static constexpr uint32_t kElements = kOuter * kInner;
  static constexpr uint32_t kPerLane = kIsHalf<E> && !kByRegister ? 16 : kElements / kLanes;
  static constexpr uint32_t kRegisters = kPerLane / kPerRegister<E>;
  static_assert(kRegisters >= 1 && kRegisters <= 8);
  ALWAYS uint32_t Number(uint32_t lane, uint32_t e) {
    return kByRegister ? e * kLanes + lane : (lane * kPerLane + e) % kElements;
  }
};

// matrix[outer * kInner + inner] <-> memory. kInnerRuns: the inner index is the one that runs through memory.
template <class M, uint32_t kOuter, uint32_t kInner, bool kStore, bool kInnerRuns>
ALWAYS bool TransferRuns(Warp& w, const Inst* i, M* matrix) {
  constexpr uint32_t kRuns = kInnerRuns ? kOuter : kInner;
  constexpr uint32_t kLength = kInnerRuns ? kInner : kOuter;
  constexpr auto kBytes = static_cast<uint32_t>(kLength * sizeof(M));
  const auto lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  const auto space = static_cast<MemSpace>(i->aux >> 1);
  const uint64_t address = i->flags & kAddress32
                               ? static_cast<uint32_t>(In<uint32_t>(w, i, 0)[lane] + static_cast<uint32_t>(i->imm))
                               : In<uint64_t>(w, i, 0)[lane] + static_cast<uint64_t>(i->imm);
  const uint32_t given = In<uint32_t>(w, i, 1)[lane];
  const uint64_t stride = given != 0 ? given : kLength;
  for (uint32_t run = 0; run < kRuns; ++run) {
    const uint64_t at = address + run * stride * sizeof(M);
    std::byte* first = LaneAddress(w, space, lane, at, kBytes, kStore);
    const bool mapped = first != nullptr && LaneAddress(w, space, lane, at + kBytes - 1, 1, kStore) != nullptr;
    if (!mapped || at % sizeof(M) != 0) {
      RaiseAddressFault(w, i, mapped ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, lane, at, kBytes,
                        kStore ? "store of a matrix's row" : "load of a matrix's row");
      return false;
    }
    M* memory = reinterpret_cast<M*>(first);
    for (uint32_t n = 0; n < kLength; ++n) {
      // The size is a power of two; saying so keeps the compiler from seeing what is not there.
      M& element = matrix[(kInnerRuns ? run * kInner + n : n * kInner + run) % (kOuter * kInner)];
      if constexpr (kStore) {
        memory[n] = element;
      } else {
        element = memory[n];
      }
    }
  }
  return true;
}
template <class M, uint32_t kOuter, uint32_t kInner, bool kStore>
ALWAYS bool Transfer(Warp& w, const Inst* i, M* matrix, bool inner_runs) {
  return inner_runs ? TransferRuns<M, kOuter, kInner, kStore, true>(w, i, matrix)
                    : TransferRuns<M, kOuter, kInner, kStore, false>(w, i, matrix);
}

// kColumns: the matrix is B, whose outer index is the column.
template <class E, uint32_t kOuter, uint32_t kInner, bool kByRegister, bool kColumns>
const Inst* LoadMatrix(Warp& w, const Inst* i) {
  using S = Shape<E, kOuter, kInner, kByRegister>;
  using Reg = typename E::Reg;
  if (!WholeWarp(w, i)) return i;
  alignas(64) typename E::Memory matrix[S::kElements];
  const bool column_major = i->aux & 1;
  if (!Transfer<typename E::Memory, kOuter, kInner, false>(w, i, matrix, column_major == kColumns)) return i;
  for (uint32_t r = 0; r < S::kRegisters; ++r) {
    alignas(64) Reg t[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l) {
      Reg v = 0;
      for (uint32_t part = 0; part < kPerRegister<E>; ++part)
        v |= static_cast<Reg>(matrix[S::Number(l, r * kPerRegister<E> + part)])
             << (8 * sizeof(typename E::Memory) * part);
      t[l] = v;
    }
    StoreMasked(Fragment<E>(w, i, r), t, w.mask);
  }
  return i + 1;
}

template <class E, uint32_t kRows, uint32_t kColumns>
const Inst* StoreMatrix(Warp& w, const Inst* i) {
  using S = Shape<E, kRows, kColumns, true>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) typename E::Memory matrix[S::kElements];
  for (uint32_t r = 0; r < S::kRegisters; ++r) {
    const typename E::Reg* from = Fragment<E>(w, i, r);
    for (uint32_t part = 0; part < kPerRegister<E>; ++part)
      for (uint32_t l = 0; l < kLanes; ++l)
        matrix[S::Number(l, r * kPerRegister<E> + part)] =
            static_cast<typename E::Memory>(from[l] >> (8 * sizeof(typename E::Memory) * part));
  }
  if (!Transfer<typename E::Memory, kRows, kColumns, true>(w, i, matrix, (i->aux & 1) == 0)) return i;
  return i + 1;
}

// Elements of a fragment by number, k running slowest: t[inner * kOuter + outer].
template <class E, class S, uint32_t kOuter, uint32_t kInner>
ALWAYS void Unpack(const Warp& w, const Inst* i, uint32_t first, typename E::Math* t) {
  // Lanes that hold nothing new are left out.
  constexpr uint32_t kUsed = S::kElements / S::kPerLane < kLanes ? S::kElements / S::kPerLane : kLanes;
  constexpr uint32_t kBits = 8 * sizeof(typename E::Memory);
  for (uint32_t r = 0; r < S::kRegisters; ++r) {
    const typename E::Reg* from = Fragment<E>(w, i, first + r);
    for (uint32_t part = 0; part < kPerRegister<E>; ++part) {
      const uint32_t e = r * kPerRegister<E> + part;
      if constexpr (S::kPerLane == kInner) {
        for (uint32_t l = 0; l < kUsed; ++l)
          t[e * kOuter + l] = E::Get(static_cast<typename E::Memory>(from[l] >> (kBits * part)));
      } else {
        for (uint32_t l = 0; l < kUsed; ++l) {
          const uint32_t number = S::Number(l, e);
          t[number % kInner * kOuter + number / kInner] =
              E::Get(static_cast<typename E::Memory>(from[l] >> (kBits * part)));
        }
      }
    }
  }
}

// D = A * B + C. Products are exact (of f64 they are rounded once with the sum) and added in order of k.
template <uint32_t kM, uint32_t kN, uint32_t kK, class D, class A, class B, class C>
const Inst* Multiply(Warp& w, const Inst* i) {
  using Math = typename D::Math;
  using SD = Shape<D, kM, kN, true>;
  using SA = Shape<A, kM, kK, false>;
  using SB = Shape<B, kN, kK, false>;
  using SC = Shape<C, kM, kN, true>;
  if (!WholeWarp(w, i)) return i;
  alignas(64) Math a[kK * kM];
  alignas(64) Math b[kK * kN];
  alignas(64) Math sum[kM * kN];
  Unpack<A, SA, kM, kK>(w, i, SD::kRegisters, a);
  Unpack<B, SB, kN, kK>(w, i, SD::kRegisters + SA::kRegisters, b);
  constexpr uint32_t kFirstC = SD::kRegisters + SA::kRegisters + SB::kRegisters;
  constexpr uint32_t kBitsC = 8 * sizeof(typename C::Memory);
  for (uint32_t r = 0; r < SC::kRegisters; ++r) {
    const typename C::Reg* from = Fragment<C>(w, i, kFirstC + r);
    for (uint32_t part = 0; part < kPerRegister<C>; ++part)
      for (uint32_t l = 0; l < kLanes; ++l)
        sum[(r * kPerRegister<C> + part) * kLanes + l] =
            C::Get(static_cast<typename C::Memory>(from[l] >> (kBitsC * part)));
  }
  for (uint32_t m = 0; m < kM; ++m) {
    Math row[kN];
    for (uint32_t n = 0; n < kN; ++n) row[n] = sum[m * kN + n];
    if constexpr (kIsFloat<Math>) {
      for (uint32_t k = 0; k < kK; ++k) {
        const Math x = a[k * kM + m];
        for (uint32_t n = 0; n < kN; ++n) {
          if constexpr (sizeof(Math) == 8) {
            row[n] = __builtin_fma(x, b[k * kN + n], row[n]);
          } else {
            row[n] += x * b[k * kN + n];
          }
        }
      }
    } else if (i->aux & 1) {
      // .satfinite: 16 products of bytes do not overflow, their sum with C may.
      Math product[kN] = {};
      for (uint32_t k = 0; k < kK; ++k)
        for (uint32_t n = 0; n < kN; ++n) product[n] += a[k * kM + m] * b[k * kN + n];
      for (uint32_t n = 0; n < kN; ++n) {
        const int64_t v = static_cast<int64_t>(row[n]) + product[n];
        row[n] = static_cast<Math>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
      }
    } else {
      for (uint32_t k = 0; k < kK; ++k)
        for (uint32_t n = 0; n < kN; ++n) row[n] += a[k * kM + m] * b[k * kN + n];
    }
    for (uint32_t n = 0; n < kN; ++n) sum[m * kN + n] = row[n];
  }
  for (uint32_t r = 0; r < SD::kRegisters; ++r) {
    alignas(64) typename D::Reg t[kLanes] = {};
    for (uint32_t part = 0; part < kPerRegister<D>; ++part)
      for (uint32_t l = 0; l < kLanes; ++l)
        t[l] |= static_cast<typename D::Reg>(D::Put(sum[(r * kPerRegister<D> + part) * kLanes + l]))
                << (8 * sizeof(typename D::Memory) * part);
    StoreMasked(Fragment<D>(w, i, r), t, w.mask);
  }
  return i + 1;
}

}  // namespace

OpRows MatrixRows() {
// Operands: registers per fragment.
#define LOAD_AB(shape, M, N, K, type, E, ra, rb)                             \
  {"@wmma.load.a." shape "." type, LoadMatrix<E, M, K, false, false>, ra}, { \
    "@wmma.load.b." shape "." type, LoadMatrix<E, N, K, false, true>, rb     \
  }
#define ACCUMULATOR(shape, M, N, type, E, rc)                               \
  {"@wmma.load.c." shape "." type, LoadMatrix<E, M, N, true, false>, rc}, { \
    "@wmma.store.d." shape "." type, StoreMatrix<E, M, N>, rc               \
  }
#define MULTIPLY(shape, M, N, K, d, D, ab, AB, c, C, regs) \
  { "@wmma.mma." shape "." d "." ab "." ab "." c, Multiply<M, N, K, D, AB, AB, C>, regs }
#define OF_HALVES(shape, M, N)                                                               \
  LOAD_AB(shape, M, N, 16, "f16", F16, "8", "8"), ACCUMULATOR(shape, M, N, "f16", F16, "4"), \
      MULTIPLY(shape, M, N, 16, "f16", F16, "f16", F16, "f16", F16, "4884"),                 \
      MULTIPLY(shape, M, N, 16, "f16", F16, "f16", F16, "f32", F32, "4888"),                 \
      MULTIPLY(shape, M, N, 16, "f32", F32, "f16", F16, "f16", F16, "8884"),                 \
      MULTIPLY(shape, M, N, 16, "f32", F32, "f16", F16, "f32", F32, "8888")
#define OF_BYTES(shape, M, N, ra, rb)                                                     \
  LOAD_AB(shape, M, N, 16, "s8", S8, ra, rb), LOAD_AB(shape, M, N, 16, "u8", U8, ra, rb), \
      ACCUMULATOR(shape, M, N, "s32", S32, "8"),                                          \
      MULTIPLY(shape, M, N, 16, "s32", S32, "s8", S8, "s32", S32, "8" ra rb "8"),         \
      MULTIPLY(shape, M, N, 16, "s32", S32, "u8", U8, "s32", S32, "8" ra rb "8")
#define OF_BF16(shape, M, N, ra, rb)              \
  LOAD_AB(shape, M, N, 16, "bf16", Bf16, ra, rb), \
      MULTIPLY(shape, M, N, 16, "f32", F32, "bf16", Bf16, "f32", F32, "8" ra rb "8")
  static const OpRow kRows[] = {
      OF_HALVES("m16n16k16", 16, 16),
      OF_HALVES("m32n8k16", 32, 8),
      OF_HALVES("m8n32k16", 8, 32),
      ACCUMULATOR("m16n16k16", 16, 16, "f32", F32, "8"),
      ACCUMULATOR("m32n8k16", 32, 8, "f32", F32, "8"),
      ACCUMULATOR("m8n32k16", 8, 32, "f32", F32, "8"),
      OF_BYTES("m16n16k16", 16, 16, "2", "2"),
      OF_BYTES("m32n8k16", 32, 8, "4", "1"),
      OF_BYTES("m8n32k16", 8, 32, "1", "4"),
      OF_BF16("m16n16k16", 16, 16, "4", "4"),
      OF_BF16("m32n8k16", 32, 8, "8", "2"),
      OF_BF16("m8n32k16", 8, 32, "2", "8"),
      LOAD_AB("m16n16k8", 16, 16, 8, "tf32", Tf32, "4", "4"),
      ACCUMULATOR("m16n16k8", 16, 16, "f32", F32, "8"),
      MULTIPLY("m16n16k8", 16, 16, 8, "f32", F32, "tf32", Tf32, "f32", F32, "8448"),
      LOAD_AB("m8n8k4", 8, 8, 4, "f64", F64, "1", "1"),
      ACCUMULATOR("m8n8k4", 8, 8, "f64", F64, "2"),
      MULTIPLY("m8n8k4", 8, 8, 4, "f64", F64, "f64", F64, "f64", F64, "2112"),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
