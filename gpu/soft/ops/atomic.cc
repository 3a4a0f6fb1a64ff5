// SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA "atom"). Operands: address 0, result 1, b 2, c 3; aux = MemSpace. Lanes go in ascending order.
// Shared memory belongs to one block, which never runs on two threads at once: no lock is needed there.
#include "gpu/soft/number/half.h"
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

#define ATOMIC(Name, expr)         \
  struct Name {                    \
    template <class T>             \
    ALWAYS T Do(T d, T b, T c) {   \
      static_cast<void>(b);        \
      static_cast<void>(c);        \
      static_cast<void>(d);        \
      return static_cast<T>(expr); \
    }                              \
  };
ATOMIC(AtomAdd, d + b)
ATOMIC(AtomMin, d < b ? d : b)
ATOMIC(AtomMax, d > b ? d : b)
ATOMIC(AtomAnd, d& b)
ATOMIC(AtomOr, d | b)
ATOMIC(AtomXor, d ^ b)
ATOMIC(AtomExch, b)
ATOMIC(AtomCas, d == b ? c : d)
ATOMIC(AtomInc, d >= b ? 0 : d + 1)
ATOMIC(AtomDec, d == 0 || d > b ? b : d - 1)
struct AtomAddFloat {
  template <class B>
  ALWAYS B Do(B d, B b, B) {
    if constexpr (sizeof(B) == 4) {
      return Bits<B>(Canonical(Bits<float>(d) + Bits<float>(b)));
    } else {
      return Bits<B>(Bits<double>(d) + Bits<double>(b));
    }
  }
};

// Two halves as one word.
struct AtomAddHalves {
  template <class B>
  ALWAYS B Do(B d, B b, B) {
    B r = 0;
    for (int part = 0; part < 32; part += 16)
      r |= static_cast<B>(FloatToHalf(static_cast<double>(HalfToFloat(d >> part & 0xffff)) +
                                      static_cast<double>(HalfToFloat(b >> part & 0xffff))))
           << part;
    return r;
  }
};

template <class F, class T>
const Inst* Atomic(Warp& w, const Inst* i) {
  std::byte* at[kLanes];
  if (!ReachAtomic(w, i, static_cast<MemSpace>(i->aux), sizeof(T), at)) return i;
  T* d = Out<T>(w, i, 1);
  const T* b = In<T>(w, i, 2);
  const T* c = In<T>(w, i, 3);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    T* p = reinterpret_cast<T*>(at[l]);
    if (static_cast<MemSpace>(i->aux) == MemSpace::kShared) {
      const T before = *p;
      *p = F::template Do<T>(before, b[l], c[l]);
      d[l] = before;
      continue;
    }
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, F::template Do<T>(old, b[l], c[l]), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    d[l] = old;
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows AtomicRows() {
  static const OpRow kRows[] = {
      {"@atom.add.u32", Atomic<AtomAdd, uint32_t>, ""},         {"@atom.add.s32", Atomic<AtomAdd, uint32_t>, ""},
      {"@atom.add.u64", Atomic<AtomAdd, uint64_t>, ""},         {"@atom.add.s64", Atomic<AtomAdd, uint64_t>, ""},
      {"@atom.add.f32", Atomic<AtomAddFloat, uint32_t>, ""},    {"@atom.add.f64", Atomic<AtomAddFloat, uint64_t>, ""},
      {"@atom.add.f16x2", Atomic<AtomAddHalves, uint32_t>, ""}, {"@atom.min.u32", Atomic<AtomMin, uint32_t>, ""},
      {"@atom.min.s32", Atomic<AtomMin, int32_t>, ""},          {"@atom.min.u64", Atomic<AtomMin, uint64_t>, ""},
      {"@atom.min.s64", Atomic<AtomMin, int64_t>, ""},          {"@atom.max.u32", Atomic<AtomMax, uint32_t>, ""},
      {"@atom.max.s32", Atomic<AtomMax, int32_t>, ""},          {"@atom.max.u64", Atomic<AtomMax, uint64_t>, ""},
      {"@atom.max.s64", Atomic<AtomMax, int64_t>, ""},          {"@atom.inc.u32", Atomic<AtomInc, uint32_t>, ""},
      {"@atom.dec.u32", Atomic<AtomDec, uint32_t>, ""},         {"@atom.and.b32", Atomic<AtomAnd, uint32_t>, ""},
      {"@atom.and.b64", Atomic<AtomAnd, uint64_t>, ""},         {"@atom.or.b32", Atomic<AtomOr, uint32_t>, ""},
      {"@atom.or.b64", Atomic<AtomOr, uint64_t>, ""},           {"@atom.xor.b32", Atomic<AtomXor, uint32_t>, ""},
      {"@atom.xor.b64", Atomic<AtomXor, uint64_t>, ""},         {"@atom.exch.b32", Atomic<AtomExch, uint32_t>, ""},
      {"@atom.exch.b64", Atomic<AtomExch, uint64_t>, ""},       {"@atom.cas.b32", Atomic<AtomCas, uint32_t>, ""},
      {"@atom.cas.b64", Atomic<AtomCas, uint64_t>, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
