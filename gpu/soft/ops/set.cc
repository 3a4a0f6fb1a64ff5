// SPDX-License-Identifier: Apache-2.0
// set and testp (PTX ISA "Comparison and Selection Instructions", "testp").
#include "gpu/soft/ops/compare.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class C, class T, class D>
const Inst* Set(Warp& w, const Inst* i) {
  uint32_t r = Mask<C, T>(w, i, 1);
  if (i->aux != 0) r = Combine(i->aux, r, Pred(w, i, 3));
  const D yes = kIsFloat<D> ? Bits<D>(0x3f800000u) : Bits<D>(0xffffffffu);
  Map<D>(w, i, 0, [&](uint32_t l) { return (r >> l) & 1 ? yes : D(0); });
  return i + 1;
}

enum TestKind { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <TestKind kKind, class B>
const Inst* Testp(Warp& w, const Inst* i) {
  const B* a = In<B>(w, i, 1);
  constexpr B kExponent = sizeof(B) == 4 ? B(0x7f800000) : B(0x7ff0000000000000);
  uint32_t r = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const B magnitude = a[l] & ~(B(1) << (8 * sizeof(B) - 1));
    const B exponent = a[l] & kExponent;
    bool yes = false;
    switch (kKind) {
      case kFinite:
        yes = exponent != kExponent;
        break;
      case kInfinite:
        yes = magnitude == kExponent;
        break;
      case kNumber:
        yes = magnitude <= kExponent;
        break;
      case kNotANumber:
        yes = magnitude > kExponent;
        break;
      case kNormal:
        yes = exponent != 0 && exponent != kExponent;
        break;
      case kSubnormal:
        yes = exponent == 0 && magnitude != 0;
        break;
    }
    r |= static_cast<uint32_t>(yes) << l;
  }
  WritePred(Pred(w, i, 0), r, w.mask);
  return i + 1;
}

}  // namespace

OpRows SetRows() {
#define SET(cmp, C, type, T, sig)                                                   \
  {"set." cmp ".u32." type, Set<C, T, uint32_t>, sig, kCombines | kTakesFtz},       \
      {"set." cmp ".s32." type, Set<C, T, uint32_t>, sig, kCombines | kTakesFtz}, { \
    "set." cmp ".f32." type, Set<C, T, float>, sig, kCombines | kTakesFtz           \
  }
#define SET_SIX(type, T, sig)                                                                                         \
  SET("eq", Eq, type, T, sig), SET("ne", Ne, type, T, sig), SET("lt", Lt, type, T, sig), SET("le", Le, type, T, sig), \
      SET("gt", Gt, type, T, sig), SET("ge", Ge, type, T, sig)
#define SET_BITS(type, T, sig) SET("eq", Eq, type, T, sig), SET("ne", Ne, type, T, sig)
#define SET_UNSIGNED(type, T, sig) \
  SET("lo", Lt, type, T, sig), SET("ls", Le, type, T, sig), SET("hi", Gt, type, T, sig), SET("hs", Ge, type, T, sig)
#define SET_FLOAT(type, T, sig)                                                                    \
  SET("eq", Eq, type, T, sig), SET("ne", OrderedNe, type, T, sig), SET("lt", Lt, type, T, sig),    \
      SET("le", Le, type, T, sig), SET("gt", Gt, type, T, sig), SET("ge", Ge, type, T, sig),       \
      SET("equ", Equ, type, T, sig), SET("neu", Ne, type, T, sig), SET("ltu", Ltu, type, T, sig),  \
      SET("leu", Leu, type, T, sig), SET("gtu", Gtu, type, T, sig), SET("geu", Geu, type, T, sig), \
      SET("num", Num, type, T, sig), SET("nan", Nan, type, T, sig)
#define TESTP(kind, K) \
  {"testp." kind ".f32", Testp<K, uint32_t>, "Pa"}, { "testp." kind ".f64", Testp<K, uint64_t>, "PA" }
  static const OpRow kRows[] = {
      SET_BITS("b16", uint16_t, "daa"), SET_BITS("b32", uint32_t, "daa"), SET_BITS("b64", uint64_t, "dAA"),
      SET_SIX("u16", uint16_t, "daa"),  SET_SIX("s16", int16_t, "daa"),   SET_UNSIGNED("u16", uint16_t, "daa"),
      SET_SIX("u32", uint32_t, "daa"),  SET_SIX("s32", int32_t, "daa"),   SET_UNSIGNED("u32", uint32_t, "daa"),
      SET_SIX("u64", uint64_t, "dAA"),  SET_SIX("s64", int64_t, "dAA"),   SET_UNSIGNED("u64", uint64_t, "dAA"),
      SET_FLOAT("f32", float, "daa"),   SET_FLOAT("f64", double, "dAA"),  TESTP("finite", kFinite),
      TESTP("infinite", kInfinite),     TESTP("number", kNumber),         TESTP("notanumber", kNotANumber),
      TESTP("normal", kNormal),         TESTP("subnormal", kSubnormal),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
