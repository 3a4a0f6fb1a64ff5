// setp, set, testp (PTX ISA "Comparison and Selection Instructions").
#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

#define COMPARE(Name, expr)    \
  struct Name {                \
    template <class T>         \
    ALWAYS bool Do(T a, T b) { \
      return expr;             \
    }                          \
  };
COMPARE(Eq, a == b)
COMPARE(Ne, a != b)
COMPARE(Lt, a < b)
COMPARE(Le, a <= b)
COMPARE(Gt, a > b)
COMPARE(Ge, a >= b)
COMPARE(OrderedNe, a<b || a> b)
COMPARE(Equ, !(a < b || a > b))
COMPARE(Ltu, !(a >= b))
COMPARE(Leu, !(a > b))
COMPARE(Gtu, !(a <= b))
COMPARE(Geu, !(a < b))
COMPARE(Num, a == a && b == b)
COMPARE(Nan, a != a || b != b)

template <class C, class T>
ALWAYS uint32_t Mask(const Warp& w, const Inst* i, int operand) {
  const Slot<T>* a = In<T>(w, i, operand);
  const Slot<T>* b = In<T>(w, i, operand + 1);
  alignas(64) uint32_t t[kLanes];
  if constexpr (sizeof(T) == 4 && kIsFloat<T>) {
    if (i->flags & kFtz) {
      for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<T>(Flush(a[l]), Flush(b[l])) ? ~0u : 0u;
      return SignBits(t);
    }
  }
  for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<T>(Value<T>(a[l]), Value<T>(b[l])) ? ~0u : 0u;
  return SignBits(t);
}

// aux: 0 none, 1 and, 2 or, 3 xor with predicate c.
ALWAYS uint32_t Combine(uint8_t how, uint32_t value, uint32_t c) {
  if (how == 1) return value & c;
  if (how == 2) return value | c;
  if (how == 3) return value ^ c;
  return value;
}

template <class C, class T>
const Inst* Setp(Warp& w, const Inst* i) {
  const uint32_t r = Mask<C, T>(w, i, 2);
  if (i->aux == 0) {
    WritePred(Pred(w, i, 0), r, w.mask);
    WritePred(Pred(w, i, 1), ~r, w.mask);
    return i + 1;
  }
  const uint32_t c = Pred(w, i, 4);
  WritePred(Pred(w, i, 0), Combine(i->aux, r, c), w.mask);
  WritePred(Pred(w, i, 1), Combine(i->aux, ~r, c), w.mask);
  return i + 1;
}

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

OpRows CompareRows() {
#define SETP(cmp, C, type, T, sig) \
  { "setp." cmp "." type, Setp<C, T>, sig, kCombines | kTakesFtz }
#define SETP_SIX(type, T, sig)                                                              \
  SETP("eq", Eq, type, T, sig), SETP("ne", Ne, type, T, sig), SETP("lt", Lt, type, T, sig), \
      SETP("le", Le, type, T, sig), SETP("gt", Gt, type, T, sig), SETP("ge", Ge, type, T, sig)
#define SETP_UNSIGNED(type, T, sig)                                                                                 \
  SETP_SIX(type, T, sig), SETP("lo", Lt, type, T, sig), SETP("ls", Le, type, T, sig), SETP("hi", Gt, type, T, sig), \
      SETP("hs", Ge, type, T, sig)
#define SETP_FLOAT(type, T, sig)                                                                      \
  SETP("eq", Eq, type, T, sig), SETP("ne", OrderedNe, type, T, sig), SETP("lt", Lt, type, T, sig),    \
      SETP("le", Le, type, T, sig), SETP("gt", Gt, type, T, sig), SETP("ge", Ge, type, T, sig),       \
      SETP("equ", Equ, type, T, sig), SETP("neu", Ne, type, T, sig), SETP("ltu", Ltu, type, T, sig),  \
      SETP("leu", Leu, type, T, sig), SETP("gtu", Gtu, type, T, sig), SETP("geu", Geu, type, T, sig), \
      SETP("num", Num, type, T, sig), SETP("nan", Nan, type, T, sig)
#define SET(cmp, C, type, T, sig)                                                   \
  {"set." cmp ".u32." type, Set<C, T, uint32_t>, sig, kCombines | kTakesFtz},       \
      {"set." cmp ".s32." type, Set<C, T, uint32_t>, sig, kCombines | kTakesFtz}, { \
    "set." cmp ".f32." type, Set<C, T, float>, sig, kCombines | kTakesFtz           \
  }
#define SET_SIX(type, T, sig)                                                                                         \
  SET("eq", Eq, type, T, sig), SET("ne", Ne, type, T, sig), SET("lt", Lt, type, T, sig), SET("le", Le, type, T, sig), \
      SET("gt", Gt, type, T, sig), SET("ge", Ge, type, T, sig)
#define SET_FLOAT(type, T, sig)                                                                    \
  SET("eq", Eq, type, T, sig), SET("ne", OrderedNe, type, T, sig), SET("lt", Lt, type, T, sig),    \
      SET("le", Le, type, T, sig), SET("gt", Gt, type, T, sig), SET("ge", Ge, type, T, sig),       \
      SET("equ", Equ, type, T, sig), SET("neu", Ne, type, T, sig), SET("ltu", Ltu, type, T, sig),  \
      SET("leu", Leu, type, T, sig), SET("gtu", Gtu, type, T, sig), SET("geu", Geu, type, T, sig), \
      SET("num", Num, type, T, sig), SET("nan", Nan, type, T, sig)
#define TESTP(kind, K) \
  {"testp." kind ".f32", Testp<K, uint32_t>, "Pa"}, { "testp." kind ".f64", Testp<K, uint64_t>, "PA" }
  static const OpRow kRows[] = {
      SETP("eq", Eq, "b16", uint16_t, "Qaa"),
      SETP("ne", Ne, "b16", uint16_t, "Qaa"),
      SETP("eq", Eq, "b32", uint32_t, "Qaa"),
      SETP("ne", Ne, "b32", uint32_t, "Qaa"),
      SETP("eq", Eq, "b64", uint64_t, "QAA"),
      SETP("ne", Ne, "b64", uint64_t, "QAA"),
      SETP_UNSIGNED("u16", uint16_t, "Qaa"),
      SETP_UNSIGNED("u32", uint32_t, "Qaa"),
      SETP_UNSIGNED("u64", uint64_t, "QAA"),
      SETP_SIX("s16", int16_t, "Qaa"),
      SETP_SIX("s32", int32_t, "Qaa"),
      SETP_SIX("s64", int64_t, "QAA"),
      SETP_FLOAT("f32", float, "Qaa"),
      SETP_FLOAT("f64", double, "QAA"),
      SET("eq", Eq, "b32", uint32_t, "daa"),
      SET("ne", Ne, "b32", uint32_t, "daa"),
      SET_SIX("u32", uint32_t, "daa"),
      SET_SIX("s32", int32_t, "daa"),
      SET_FLOAT("f32", float, "daa"),
      SET_FLOAT("f64", double, "dAA"),
      TESTP("finite", kFinite),
      TESTP("infinite", kInfinite),
      TESTP("number", kNumber),
      TESTP("notanumber", kNotANumber),
      TESTP("normal", kNormal),
      TESTP("subnormal", kSubnormal),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
