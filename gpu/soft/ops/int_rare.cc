// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic that is rare or does not vectorise: division, saturation, carries, slct, dp2a, fns,
// cvt.pack.
#include "gpu/soft/ops/int.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

OP1(Cnot, a == 0 ? T(1) : T(0))

ALWAYS int32_t Clamp(int64_t v) {
  return static_cast<int32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
OP2(AddSat, Clamp(int64_t{a} + b))
OP2(SubSat, Clamp(int64_t{a} - b))
OP3(MadHiSat, Clamp(((int64_t{a} * b) >> 32) + c))
// Two saturated values side by side, the second one lowest, and what is below in the third above them.
template <int kWidth, bool kHasSign>
const Inst* Pack(Warp& w, const Inst* i) {
  constexpr int32_t kLeast = kHasSign ? -(1 << (kWidth - 1)) : 0;
  constexpr int32_t kMost = kHasSign ? (1 << (kWidth - 1)) - 1 : (1 << kWidth) - 1;
  constexpr uint32_t kOnes = (1u << kWidth) - 1;
  const int32_t* a = In<int32_t>(w, i, 1);
  const int32_t* b = In<int32_t>(w, i, 2);
  const auto get = [](int32_t v) { return static_cast<uint32_t>(v < kLeast ? kLeast : v > kMost ? kMost : v) & kOnes; };
  if constexpr (kWidth == 16) {
    Map<uint32_t>(w, i, 0, [&](uint32_t l) { return get(a[l]) << kWidth | get(b[l]); });
  } else {
    const uint32_t* c = In<uint32_t>(w, i, 3);
    Map<uint32_t>(w, i, 0, [&](uint32_t l) { return c[l] << (2 * kWidth) | get(a[l]) << kWidth | get(b[l]); });
  }
  return i + 1;
}
// Division by zero gives all ones, the remainder is the dividend; MIN / -1 wraps.
struct Div {
  template <class T>
  ALWAYS T Do(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (kSigned<T> && b == static_cast<T>(-1)) return static_cast<T>(-a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  ALWAYS T Do(T a, T b) {
    if (b == 0) return a;
    if (kSigned<T> && b == static_cast<T>(-1)) return T(0);
    return static_cast<T>(a % b);
  }
};
struct Mul24 {
  template <class T>
  ALWAYS T Do(T a, T b) {
    constexpr int kUp = 8;
    return static_cast<T>(static_cast<T>(static_cast<T>(a << kUp) >> kUp) *
                          static_cast<T>(static_cast<T>(b << kUp) >> kUp));
  }
};
ALWAYS int64_t Low24(int32_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8; }
OP3(Mad24HiSat, Clamp(((Low24(a) * Low24(b)) >> 16) + c))
// Products of the low 24 bits; kHigh: bits 16 to 47 of them.
template <bool kHigh, bool kAdd>
struct Product24 {
  template <class T>
  static const Inst* Run(Warp& w, const Inst* i) {
    const Slot<T>* a = In<T>(w, i, 1);
    const Slot<T>* b = In<T>(w, i, 2);
    const Slot<T>* c = In<T>(w, i, kAdd ? 3 : 2);
    const auto low24 = [](T v) {
      constexpr int kUp = 8;
      return static_cast<int64_t>(static_cast<T>(static_cast<T>(static_cast<uint32_t>(v) << kUp) >> kUp));
    };
    Map<uint32_t>(w, i, 0, [&](uint32_t l) {
      const auto product = static_cast<uint64_t>(low24(static_cast<T>(a[l])) * low24(static_cast<T>(b[l])));
      return static_cast<uint32_t>(kHigh ? product >> 16 : product) + (kAdd ? static_cast<uint32_t>(c[l]) : 0);
    });
    return i + 1;
  }
};
OP3(Sad, c + (a < b ? b - a : a - b))

template <class F>
struct EachBinary {
  template <class T>
  static const Inst* Run(Warp& w, const Inst* i) {
    const Slot<T>* a = In<T>(w, i, 1);
    const Slot<T>* b = In<T>(w, i, 2);
    Each<T>(w, i, 0, [&](uint32_t l) { return F::template Do<T>(Value<T>(a[l]), Value<T>(b[l])); });
    return i + 1;
  }
};

template <class T, class C>
const Inst* Slct(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const C* c = In<C>(w, i, 3);
  const bool flush = kIsFloat<C> && (i->flags & kFtz) != 0;
  Map<T>(w, i, 0, [&](uint32_t l) {
    C control = c[l];
    if constexpr (kIsFloat<C>) control = flush ? Flush(control) : control;
    return static_cast<T>(control >= C(0) ? a[l] : b[l]);
  });
  return i + 1;
}

// Extended precision: the carry of each lane is bit l of a predicate (operand 4 in, 5 out; the decoder names it).
template <class T, bool kSubtract, bool kCarryIn>
const Inst* AddCarry(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const T* b = In<T>(w, i, 2);
  const uint32_t in = kCarryIn ? Pred(w, i, 3) : 0;
  uint32_t out = 0;
  Each<T>(w, i, 0, [&](uint32_t l) {
    const auto wide = static_cast<unsigned __int128>(a[l]);
    const unsigned carry = (in >> l) & 1;
    const unsigned __int128 r = kSubtract ? wide - b[l] - carry : wide + b[l] + carry;
    out |= static_cast<uint32_t>((r >> kBits<T>)&1) << l;
    return static_cast<T>(r);
  });
  WritePred(Pred(w, i, 4), out, w.mask);
  return i + 1;
}
template <class T, bool kHigh, bool kCarryIn>
const Inst* MadCarry(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const T* b = In<T>(w, i, 2);
  const T* c = In<T>(w, i, 3);
  const uint32_t in = kCarryIn ? Pred(w, i, 4) : 0;
  uint32_t out = 0;
  Each<T>(w, i, 0, [&](uint32_t l) {
    const auto product = static_cast<Wide<T>>(a[l]) * static_cast<Wide<T>>(b[l]);
    const auto part = static_cast<U<T>>(kHigh ? product >> kBits<T> : product);
    const unsigned __int128 r = static_cast<unsigned __int128>(part) + static_cast<U<T>>(c[l]) + ((in >> l) & 1);
    out |= static_cast<uint32_t>((r >> kBits<T>)&1) << l;
    return static_cast<T>(r);
  });
  WritePred(Pred(w, i, 5), out, w.mask);
  return i + 1;
}

// Two 16-bit parts of a with two bytes of b, the lower or the upper ones.
template <class A, class B, bool kHigh>
const Inst* Dp2a(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = c[l];
    for (int k = 0; k < 2; ++k)
      r += static_cast<uint32_t>(static_cast<int>(static_cast<A>(a[l] >> (16 * k))) *
                                 static_cast<int>(static_cast<B>(b[l] >> (8 * k + (kHigh ? 16 : 0)))));
    return r;
  });
  return i + 1;
}

// The place of the n-th set bit of a mask from `base` on, upwards (n > 0) or downwards (n < 0); n = 0: base itself.
const Inst* FindNthSet(Warp& w, const Inst* i) {
  const uint32_t* mask = In<uint32_t>(w, i, 1);
  const uint32_t* base = In<uint32_t>(w, i, 2);
  const uint32_t* nth = In<uint32_t>(w, i, 3);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    const auto n = static_cast<int64_t>(static_cast<int32_t>(nth[l]));
    int64_t left = n < 0 ? -n : n == 0 ? 1 : n;
    const int64_t step = n < 0 ? -1 : 1;
    for (auto at = static_cast<int64_t>(base[l]); at >= 0 && at < 32; at += step) {
      if ((mask[l] >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
      if (n == 0) break;
    }
    return 0xffffffffu;
  });
  return i + 1;
}

// SIMD video: absolute differences of packed unsigned parts, kSum: all of them added to c.
template <class Part, bool kSum>
const Inst* AbsDiff(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = kSum ? c[l] : 0;
    for (int k = 0; k < 32; k += kBits<Part>) {
      const auto x = static_cast<uint32_t>(static_cast<Part>(a[l] >> k));
      const auto y = static_cast<uint32_t>(static_cast<Part>(b[l] >> k));
      const uint32_t d = x < y ? y - x : x - y;
      r += kSum ? d : d << k;
    }
    return r;
  });
  return i + 1;
}

}  // namespace

OpRows RareIntegerRows() {
  static const OpRow kRows[] = {
      {"add.sat.s32", BinaryOf<AddSat>::Run<int32_t>, "daa"},
      {"sub.sat.s32", BinaryOf<SubSat>::Run<int32_t>, "daa"},
      {"mad.hi.sat.s32", TernaryOf<MadHiSat>::Run<int32_t>, "daaa"},
      {"mad24.hi.sat.s32", TernaryOf<Mad24HiSat>::Run<int32_t>, "daaa"},
      {"mul24.lo.u32", BinaryOf<Mul24>::Run<uint32_t>, "daa"},
      {"mul24.lo.s32", BinaryOf<Mul24>::Run<int32_t>, "daa"},
      BOTH("sad", TernaryOf<Sad>::Run, "daaa", "DAAA"),
      BOTH("div", EachBinary<Div>::Run, "daa", "DAA"),
      BOTH("rem", EachBinary<Rem>::Run, "daa", "DAA"),
      BITS3("cnot", UnaryOf<Cnot>::Run, "da", "DA"),
#define SLCT(type, T, sig) \
  {"slct." type ".s32", Slct<T, int32_t>, sig "a"}, {"slct." type ".f32", Slct<T, float>, sig "a", kTakesFtz}
      SLCT("b16", uint16_t, "daa"),
      SLCT("u16", uint16_t, "daa"),
      SLCT("s16", int16_t, "daa"),
      SLCT("b32", uint32_t, "daa"),
      SLCT("u32", uint32_t, "daa"),
      SLCT("s32", uint32_t, "daa"),
      SLCT("f32", uint32_t, "daa"),
      SLCT("b64", uint64_t, "DAA"),
      SLCT("u64", uint64_t, "DAA"),
      SLCT("s64", uint64_t, "DAA"),
      SLCT("f64", uint64_t, "DAA"),
#define CARRY(type, T, sig, sig4)                                                                                  \
  {"add.cc." type, AddCarry<T, false, false>, sig "cC"}, {"addc." type, AddCarry<T, false, true>, sig "cx"},       \
      {"addc.cc." type, AddCarry<T, false, true>, sig "cC"}, {"sub.cc." type, AddCarry<T, true, false>, sig "cC"}, \
      {"subc." type, AddCarry<T, true, true>, sig "cx"}, {"subc.cc." type, AddCarry<T, true, true>, sig "cC"}
#define MADCARRY(type, T, sig)                                                                                       \
  {"mad.lo.cc." type, MadCarry<T, false, false>, sig "cC"}, {"mad.hi.cc." type, MadCarry<T, true, false>, sig "cC"}, \
      {"madc.lo." type, MadCarry<T, false, true>, sig "cx"}, {"madc.hi." type, MadCarry<T, true, true>, sig "cx"},   \
      {"madc.lo.cc." type, MadCarry<T, false, true>, sig "cC"}, {                                                    \
    "madc.hi.cc." type, MadCarry<T, true, true>, sig "cC"                                                            \
  }
      CARRY("u32", uint32_t, "daa", ),
      CARRY("s32", uint32_t, "daa", ),
      CARRY("u64", uint64_t, "DAA", ),
      CARRY("s64", uint64_t, "DAA", ),
      MADCARRY("u32", uint32_t, "daaa"),
      MADCARRY("s32", int32_t, "daaa"),
      MADCARRY("u64", uint64_t, "DAAA"),
      MADCARRY("s64", int64_t, "DAAA"),
      {"vabsdiff2.u32.u32.u32", AbsDiff<uint16_t, false>, "daaa"},
      {"vabsdiff2.add.u32.u32.u32", AbsDiff<uint16_t, true>, "daaa"},
      {"vabsdiff4.u32.u32.u32", AbsDiff<uint8_t, false>, "daaa"},
      {"vabsdiff4.add.u32.u32.u32", AbsDiff<uint8_t, true>, "daaa"},
      {"mul24.hi.u32", Product24<true, false>::Run<uint32_t>, "daa"},
      {"mul24.hi.s32", Product24<true, false>::Run<int32_t>, "daa"},
      {"mad24.lo.u32", Product24<false, true>::Run<uint32_t>, "daaa"},
      {"mad24.lo.s32", Product24<false, true>::Run<int32_t>, "daaa"},
      {"mad24.hi.u32", Product24<true, true>::Run<uint32_t>, "daaa"},
      {"mad24.hi.s32", Product24<true, true>::Run<int32_t>, "daaa"},
      {"fns.b32", FindNthSet, "daaa"},
      {"cvt.pack.sat.u16.s32", Pack<16, false>, "daa"},
      {"cvt.pack.sat.s16.s32", Pack<16, true>, "daa"},
      {"cvt.pack.sat.u8.s32.b32", Pack<8, false>, "daaa"},
      {"cvt.pack.sat.s8.s32.b32", Pack<8, true>, "daaa"},
      {"cvt.pack.sat.u4.s32.b32", Pack<4, false>, "daaa"},
      {"cvt.pack.sat.s4.s32.b32", Pack<4, true>, "daaa"},
      {"cvt.pack.sat.u2.s32.b32", Pack<2, false>, "daaa"},
      {"cvt.pack.sat.s2.s32.b32", Pack<2, true>, "daaa"},
      {"dp2a.lo.u32.u32", Dp2a<uint16_t, uint8_t, false>, "daaa"},
      {"dp2a.lo.s32.s32", Dp2a<int16_t, int8_t, false>, "daaa"},
      {"dp2a.lo.u32.s32", Dp2a<uint16_t, int8_t, false>, "daaa"},
      {"dp2a.lo.s32.u32", Dp2a<int16_t, uint8_t, false>, "daaa"},
      {"dp2a.hi.u32.u32", Dp2a<uint16_t, uint8_t, true>, "daaa"},
      {"dp2a.hi.s32.s32", Dp2a<int16_t, int8_t, true>, "daaa"},
      {"dp2a.hi.u32.s32", Dp2a<uint16_t, int8_t, true>, "daaa"},
      {"dp2a.hi.s32.u32", Dp2a<int16_t, uint8_t, true>, "daaa"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
