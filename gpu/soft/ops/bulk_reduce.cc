// SPDX-License-Identifier: Apache-2.0
// cp.reduce.async.bulk (PTX ISA "cp.reduce.async.bulk"): an atomic operation for each element of a stretch of memory.
// As with bulk copies, it is done when its instruction is. Operands: to 0, from 1 (generic addresses), bytes 2.
#include <utility>

#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

#define REDUCTION(Name, expr)      \
  struct Name {                    \
    template <class T>             \
    ALWAYS T Do(T d, T b) {        \
      return static_cast<T>(expr); \
    }                              \
  };
REDUCTION(ReduceAdd, d + b)
REDUCTION(ReduceMin, d < b ? d : b)
REDUCTION(ReduceMax, d > b ? d : b)
REDUCTION(ReduceAnd, d& b)
REDUCTION(ReduceOr, d | b)
REDUCTION(ReduceXor, d ^ b)
REDUCTION(ReduceInc, d >= b ? 0 : d + 1)
REDUCTION(ReduceDec, d == 0 || d > b ? b : d - 1)
struct ReduceAddFloat {
  template <class B>
  ALWAYS B Do(B d, B b) {
    if constexpr (sizeof(B) == 4) return Bits<B>(Canonical(Bits<float>(d) + Bits<float>(b)));
    if constexpr (sizeof(B) == 8) return Bits<B>(Bits<double>(d) + Bits<double>(b));
  }
};
template <class Format>
struct ReduceAddSmall {
  template <class T>
  ALWAYS T Do(T d, T b) {
    return static_cast<T>(Format::Put(SumToOdd(Format::Get(d), Format::Get(b))));
  }
};
// A NaN loses against a number; -0 is below +0.
template <class Format, bool kMax>
struct ReducePickSmall {
  template <class T>
  ALWAYS T Do(T d, T b) {
    if (SmallIsNan<Format>(d)) return SmallIsNan<Format>(b) ? static_cast<T>(kSmallNan) : b;
    if (SmallIsNan<Format>(b)) return d;
    const auto rank = [](uint32_t v) {
      const auto size = static_cast<int32_t>(v & ~kSmallSign);
      return (v & kSmallSign) != 0 ? -size - 1 : size;
    };
    return (rank(d) > rank(b)) == kMax ? d : b;
  }
};

// Are all pages of the stretch there? nullptr: no.
std::byte* Stretch(const Warp& w, uint32_t lane, uint64_t address, uint32_t bytes, bool store) {
  std::byte* at = LaneAddress(w, MemSpace::kGeneric, lane, address, bytes, store);
  if (at == nullptr) return nullptr;
  for (uint64_t page = 1; page << kPageShift < bytes; ++page)
    if (LaneAddress(w, MemSpace::kGeneric, lane, address + (page << kPageShift), 1, store) == nullptr) return nullptr;
  return LaneAddress(w, MemSpace::kGeneric, lane, address + bytes - 1, 1, store) != nullptr ? at : nullptr;
}

template <class F, class T>
const Inst* BulkReduce(Warp& w, const Inst* i) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t bytes = In<uint32_t>(w, i, 2)[l];
    if (bytes == 0) continue;
    std::byte* places[2];
    for (const uint32_t n : {0u, 1u}) {
      const uint64_t address = In<uint64_t>(w, i, static_cast<int>(n))[l];
      places[n] = Stretch(w, l, address, bytes, n == 0);
      if (places[n] != nullptr && (address | bytes) % 16 == 0) continue;
      return RaiseAddressFault(w, i, places[n] != nullptr ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, l,
                               address, bytes, n == 0 ? "bulk reduction to" : "bulk reduction from");
    }
    auto* to = reinterpret_cast<T*>(places[0]);
    const auto* from = reinterpret_cast<const T*>(places[1]);
    for (uint32_t n = 0; n < bytes / sizeof(T); ++n) {
      T old = __atomic_load_n(to + n, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(to + n, &old, F::template Do<T>(old, from[n]), false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED)) {
      }
    }
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows BulkReduceRows() {
#define REDUCE(op, F, type, T) \
  { "@cp.reduce.async.bulk." op "." type, BulkReduce<F, T>, "" }
#define REDUCE_SMALL(type, Format)                                                                     \
  REDUCE("add", ReduceAddSmall<Format>, type, uint16_t),                                               \
      {"@cp.reduce.async.bulk.min." type, BulkReduce<ReducePickSmall<Format, false>, uint16_t>, ""}, { \
    "@cp.reduce.async.bulk.max." type, BulkReduce<ReducePickSmall<Format, true>, uint16_t>, ""         \
  }
#define REDUCE_ORDER(type, T) REDUCE("min", ReduceMin, type, T), REDUCE("max", ReduceMax, type, T)
#define REDUCE_LOGIC(type, T) \
  REDUCE("and", ReduceAnd, type, T), REDUCE("or", ReduceOr, type, T), REDUCE("xor", ReduceXor, type, T)
  static const OpRow kRows[] = {
      REDUCE("add", ReduceAdd, "u32", uint32_t),
      REDUCE("add", ReduceAdd, "s32", uint32_t),
      REDUCE("add", ReduceAdd, "u64", uint64_t),
      REDUCE("add", ReduceAddFloat, "f32", uint32_t),
      REDUCE("add", ReduceAddFloat, "f64", uint64_t),
      REDUCE("inc", ReduceInc, "u32", uint32_t),
      REDUCE("dec", ReduceDec, "u32", uint32_t),
      REDUCE_ORDER("u32", uint32_t),
      REDUCE_ORDER("s32", int32_t),
      REDUCE_ORDER("u64", uint64_t),
      REDUCE_ORDER("s64", int64_t),
      REDUCE_LOGIC("b32", uint32_t),
      REDUCE_LOGIC("b64", uint64_t),
      REDUCE_SMALL("f16", Binary16),
      REDUCE_SMALL("bf16", Bfloat16),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
