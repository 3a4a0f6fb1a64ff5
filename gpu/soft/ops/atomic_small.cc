// SPDX-License-Identifier: Apache-2.0
// atom and red on 16 bits and on pairs of them (PTX ISA "atom"). Operands as in atomic.cc. Lanes go in
// ascending order.
#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

struct SmallCas {
  ALWAYS uint16_t Do(uint16_t d, uint16_t b, uint16_t c) { return d == b ? c : d; }
};
template <class Format>
struct SmallAtomicAdd {
  ALWAYS uint16_t Do(uint16_t d, uint16_t b, uint16_t) {
    return static_cast<uint16_t>(Format::Put(SumToOdd(Format::Get(d), Format::Get(b))));
  }
};
// A NaN loses against a number; -0 is below +0.
template <class Format, bool kMax>
struct SmallAtomicPick {
  ALWAYS uint16_t Do(uint16_t d, uint16_t b, uint16_t) {
    if (SmallIsNan<Format>(d)) return SmallIsNan<Format>(b) ? static_cast<uint16_t>(kSmallNan) : b;
    if (SmallIsNan<Format>(b)) return d;
    const auto rank = [](uint32_t v) {
      const auto size = static_cast<int32_t>(v & ~kSmallSign);
      return (v & kSmallSign) != 0 ? -size - 1 : size;
    };
    return (rank(d) > rank(b)) == kMax ? d : b;
  }
};
template <class F>
struct OfPair {
  ALWAYS uint32_t Do(uint32_t d, uint32_t b, uint32_t) {
    const auto part = [&](uint32_t shift) -> uint32_t {
      return F::Do(static_cast<uint16_t>(d >> shift), static_cast<uint16_t>(b >> shift), 0);
    };
    return part(0) | part(16) << 16;
  }
};
// Each of the two is atomic by itself at least; here the word is.
struct BfloatPairAdd {
  ALWAYS uint32_t Do(uint32_t d, uint32_t b, uint32_t) {
    const auto part = [&](uint32_t shift) {
      return Bfloat16::Put(SumToOdd(Bfloat16::Get(d >> shift & 0xffff), Bfloat16::Get(b >> shift & 0xffff)));
    };
    return part(0) | part(16) << 16;
  }
};

template <class F, class T>
const Inst* SmallAtomic(Warp& w, const Inst* i) {
  std::byte* at[kLanes];
  if (!ReachAtomic(w, i, static_cast<MemSpace>(i->aux), sizeof(T), at)) return i;
  uint32_t* d = Out<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    T* p = reinterpret_cast<T*>(at[l]);
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, F::Do(old, static_cast<T>(b[l]), static_cast<T>(c[l])), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    d[l] = old;
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows SmallAtomicRows() {
#define PICK(type, Format)                                                                           \
  {"@atom.min." type, SmallAtomic<SmallAtomicPick<Format, false>, uint16_t>, ""},                    \
      {"@atom.max." type, SmallAtomic<SmallAtomicPick<Format, true>, uint16_t>, ""},                 \
      {"@atom.min." type "x2", SmallAtomic<OfPair<SmallAtomicPick<Format, false>>, uint32_t>, ""}, { \
    "@atom.max." type "x2", SmallAtomic<OfPair<SmallAtomicPick<Format, true>>, uint32_t>, ""         \
  }
  static const OpRow kRows[] = {
      PICK("f16", Binary16),
      PICK("bf16", Bfloat16),
      {"@atom.cas.b16", SmallAtomic<SmallCas, uint16_t>, ""},
      {"@atom.add.f16", SmallAtomic<SmallAtomicAdd<Binary16>, uint16_t>, ""},
      {"@atom.add.bf16", SmallAtomic<SmallAtomicAdd<Bfloat16>, uint16_t>, ""},
      {"@atom.add.bf16x2", SmallAtomic<BfloatPairAdd, uint32_t>, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
