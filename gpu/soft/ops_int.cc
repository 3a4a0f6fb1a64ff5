// Integer arithmetic, logic, shifts, bit fields, moves (PTX ISA "Integer Arithmetic Instructions", "Logic and Shift").
#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

#define OP1(Name, expr)   \
  struct Name {           \
    template <class T>    \
    ALWAYS auto Do(T a) { \
      return expr;        \
    }                     \
  };
#define OP2(Name, expr)        \
  struct Name {                \
    template <class T>         \
    ALWAYS auto Do(T a, T b) { \
      return expr;             \
    }                          \
  };
#define OP3(Name, expr)             \
  struct Name {                     \
    template <class T>              \
    ALWAYS auto Do(T a, T b, T c) { \
      return expr;                  \
    }                               \
  };

template <class T>
inline constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};
template <class T>
using U = typename UnsignedOf<T>::type;
template <class T>
struct WideOf;
template <>
struct WideOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
  using type = int32_t;
};
template <>
struct WideOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WideOf<int32_t> {
  using type = int64_t;
};
template <>
struct WideOf<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct WideOf<int64_t> {
  using type = __int128;
};
template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
inline constexpr int kBits = 8 * sizeof(T);

OP2(Add, a + b)
OP2(Sub, a - b)
OP2(MulLo, a* b)
OP2(MulHi, static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> kBits<T>))
OP3(MadLo, a* b + c)
OP3(MadHi, static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> kBits<T>) + c)
OP2(Min, a < b ? a : b)
OP2(Max, a > b ? a : b)
OP2(And, a& b)
OP2(Or, a | b)
OP2(Xor, a ^ b)
OP1(Not, ~a)
OP1(Neg, -a)
OP1(Abs, a < 0 ? -a : a)
OP1(Move, a)
OP1(Cnot, a == 0 ? T(1) : T(0))

struct AddSat {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const int64_t r = static_cast<int64_t>(a) + b;
    return static_cast<T>(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
  }
};
struct SubSat {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const int64_t r = static_cast<int64_t>(a) - b;
    return static_cast<T>(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
  }
};
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

// Shift counts are 32-bit and clamp.
template <class T>
const Inst* Shl(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const uint32_t* n = In<uint32_t>(w, i, 2);
  Map<T>(w, i, 0, [&](uint32_t l) {
    const uint32_t c = n[l];
    const T r = static_cast<T>(Value<T>(a[l]) << (c & (kBits<T> - 1)));
    return static_cast<T>(c < static_cast<uint32_t>(kBits<T>) ? r : T(0));
  });
  return i + 1;
}
template <class T>
const Inst* Shr(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const uint32_t* n = In<uint32_t>(w, i, 2);
  Map<T>(w, i, 0, [&](uint32_t l) {
    constexpr uint32_t kLast = kBits<T> - 1;
    const uint32_t c = n[l];
    if constexpr (kSigned<T>) {
      return static_cast<T>(Value<T>(a[l]) >> (c < kLast ? c : kLast));
    } else {
      const T r = static_cast<T>(Value<T>(a[l]) >> (c & kLast));
      return static_cast<T>(c <= kLast ? r : T(0));
    }
  });
  return i + 1;
}

template <class T>
const Inst* MulWide(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  Map<Wide<T>>(w, i, 0, [&](uint32_t l) {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(Value<T>(a[l])) * static_cast<Wide<T>>(Value<T>(b[l])));
  });
  return i + 1;
}
template <class T>
const Inst* MadWide(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const Slot<Wide<T>>* c = In<Wide<T>>(w, i, 3);
  Map<Wide<T>>(w, i, 0, [&](uint32_t l) {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(Value<T>(a[l])) * static_cast<Wide<T>>(Value<T>(b[l])) + c[l]);
  });
  return i + 1;
}

template <class T>
const Inst* Selp(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const uint32_t p = Pred(w, i, 3);
  Map<T>(w, i, 0, [&](uint32_t l) { return static_cast<T>((p >> l) & 1 ? a[l] : b[l]); });
  return i + 1;
}
template <class T, class C>
const Inst* Slct(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const Slot<C>* c = In<C>(w, i, 3);
  Map<T>(w, i, 0, [&](uint32_t l) { return static_cast<T>(c[l] >= C(0) ? a[l] : b[l]); });
  return i + 1;
}

// Truncation and sign/zero extension between slot widths, put in by the decoder.
template <class D, class S>
const Inst* Resize(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  Map<D>(w, i, 0, [&](uint32_t l) { return static_cast<D>(a[l]); });
  return i + 1;
}

template <class T>
const Inst* Popc(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return static_cast<uint32_t>(__builtin_popcountll(a[l])); });
  return i + 1;
}
template <class T>
const Inst* Clz(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    if (a[l] == 0) return static_cast<uint32_t>(kBits<T>);
    return static_cast<uint32_t>(__builtin_clzll(a[l])) - (64 - kBits<T>);
  });
  return i + 1;
}
// Position of the highest bit that differs from the sign; with kShift the distance of it from the top.
template <class T, bool kShift>
const Inst* Bfind(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    auto v = static_cast<U<T>>(a[l]);
    if (a[l] < 0) v = static_cast<U<T>>(~v);
    if (v == 0) return 0xffffffffu;
    const uint32_t at = 63 - static_cast<uint32_t>(__builtin_clzll(v));
    return kShift ? static_cast<uint32_t>(kBits<T> - 1) - at : at;
  });
  return i + 1;
}
ALWAYS uint64_t Reverse(uint64_t v) {
  v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1);
  v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2);
  v = ((v >> 4) & 0x0f0f0f0f0f0f0f0f) | ((v & 0x0f0f0f0f0f0f0f0f) << 4);
  return __builtin_bswap64(v);
}
OP1(Brev, static_cast<T>(Reverse(a) >> (64 - kBits<T>)))

template <class T>
const Inst* Bfe(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Each<T>(w, i, 0, [&](uint32_t l) {
    const uint32_t pos = b[l] & 0xff;
    const uint32_t len = c[l] & 0xff;
    constexpr uint32_t kTop = kBits<T> - 1;
    const auto v = static_cast<U<T>>(a[l]);
    const uint32_t sign_at = pos + len - 1 < kTop ? pos + len - 1 : kTop;
    const bool sign = kSigned<T> && len != 0 && ((v >> sign_at) & 1);
    U<T> r = pos > kTop ? U<T>(0) : static_cast<U<T>>(v >> pos);
    const uint32_t have = pos > kTop ? 0 : (len < kTop + 1 - pos ? len : kTop + 1 - pos);
    const U<T> keep = have > kTop ? static_cast<U<T>>(-1) : static_cast<U<T>>((U<T>(1) << have) - 1);
    r &= keep;
    if (sign) r |= static_cast<U<T>>(~keep);
    return static_cast<T>(r);
  });
  return i + 1;
}
template <class T>
const Inst* Bfi(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const T* b = In<T>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  const uint32_t* d = In<uint32_t>(w, i, 4);
  Each<T>(w, i, 0, [&](uint32_t l) {
    const uint32_t pos = c[l] & 0xff;
    const uint32_t len = d[l] & 0xff;
    if (pos >= static_cast<uint32_t>(kBits<T>) || len == 0) return b[l];
    const T ones = len >= static_cast<uint32_t>(kBits<T>) ? static_cast<T>(-1) : static_cast<T>((T(1) << len) - 1);
    const T field = static_cast<T>(ones << pos);
    return static_cast<T>((b[l] & ~field) | ((a[l] << pos) & field));
  });
  return i + 1;
}
template <bool kClamp>
const Inst* Bmsk(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint32_t pos = kClamp ? a[l] : a[l] & 31;
    const uint32_t len = kClamp ? b[l] : b[l] & 31;
    if (pos > 31) return 0u;
    const uint32_t ones = len > 31 ? ~0u : (1u << len) - 1;
    return ones << pos;
  });
  return i + 1;
}
template <bool kLeft, bool kWrap>
const Inst* Shf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint32_t n = kWrap ? c[l] & 31 : (c[l] < 32 ? c[l] : 32);
    const uint64_t v = static_cast<uint64_t>(b[l]) << 32 | a[l];
    return kLeft ? static_cast<uint32_t>((v << n) >> 32) : static_cast<uint32_t>(v >> n);
  });
  return i + 1;
}
const Inst* Lop3(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  const uint32_t f = In<uint32_t>(w, i, 4)[0];
  uint32_t term[8];
  for (uint32_t t = 0; t < 8; ++t) term[t] = (f >> t) & 1 ? ~0u : 0u;
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint32_t x = a[l];
    const uint32_t y = b[l];
    const uint32_t z = c[l];
    return (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) | (term[3] & ~x & y & z) |
           (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) | (term[6] & x & y & ~z) | (term[7] & x & y & z);
  });
  return i + 1;
}

// Byte selectors of prmt's special modes, for control values 0..3 ("prmt").
constexpr uint16_t kForward4[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr uint16_t kBackward4[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr uint16_t kReplicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr uint16_t kEdgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr uint16_t kEdgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr uint16_t kReplicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
constexpr const uint16_t* kGeneric = nullptr;

template <const uint16_t* kTable>
const Inst* Prmt(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint64_t bytes = static_cast<uint64_t>(b[l]) << 32 | a[l];
    uint32_t selector = c[l];
    if constexpr (kTable != nullptr) selector = kTable[selector & 3];
    uint32_t r = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t s = selector >> (4 * k);
      uint32_t byte = (bytes >> (8 * (s & 7))) & 0xff;
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;
      r |= byte << (8 * k);
    }
    return r;
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

template <class A, class B>
const Inst* Dp4a(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = c[l];
    for (int k = 0; k < 32; k += 8)
      r += static_cast<uint32_t>(static_cast<int>(static_cast<A>(a[l] >> k)) *
                                 static_cast<int>(static_cast<B>(b[l] >> k)));
    return r;
  });
  return i + 1;
}

// Predicates are masks.
#define PRED2(Name, expr)                    \
  const Inst* Name(Warp& w, const Inst* i) { \
    const uint32_t a = Pred(w, i, 1);        \
    const uint32_t b = Pred(w, i, 2);        \
    WritePred(Pred(w, i, 0), expr, w.mask);  \
    return i + 1;                            \
  }
PRED2(AndPred, a& b)
PRED2(OrPred, a | b)
PRED2(XorPred, a ^ b)
const Inst* NotPred(Warp& w, const Inst* i) {
  WritePred(Pred(w, i, 0), ~Pred(w, i, 1), w.mask);
  return i + 1;
}
const Inst* MovePred(Warp& w, const Inst* i) {
  WritePred(Pred(w, i, 0), Pred(w, i, 1), w.mask);
  return i + 1;
}
const Inst* SelpPred(Warp& w, const Inst* i) {
  const uint32_t p = Pred(w, i, 3);
  WritePred(Pred(w, i, 0), (Pred(w, i, 1) & p) | (Pred(w, i, 2) & ~p), w.mask);
  return i + 1;
}

// mov between a vector of parts and a whole: parts are S, in slots of 32 or 64 bits.
template <class Whole, class Part, int kParts>
const Inst* Pack(Warp& w, const Inst* i) {
  const Slot<Part>* part[kParts];
  for (int k = 0; k < kParts; ++k) part[k] = In<Part>(w, i, 1 + k);
  Map<Whole>(w, i, 0, [&](uint32_t l) {
    Whole v = 0;
    for (int k = 0; k < kParts; ++k) v |= static_cast<Whole>(Value<Part>(part[k][l])) << (k * kBits<Part>);
    return v;
  });
  return i + 1;
}
template <class Whole, class Part, int kParts>
const Inst* Unpack(Warp& w, const Inst* i) {
  // A part may take the slot of the whole.
  alignas(64) Whole whole[kLanes];
  __builtin_memcpy(whole, In<Whole>(w, i, kParts), sizeof(whole));
  for (int k = 0; k < kParts; ++k)
    Map<Part>(w, i, k, [&](uint32_t l) { return static_cast<Part>(whole[l] >> (k * kBits<Part>)); });
  return i + 1;
}

#define UNSIGNED3(name, F, sig16, sig32, sig64) \
  {name ".u16", F<uint16_t>, sig16}, {name ".u32", F<uint32_t>, sig32}, { name ".u64", F<uint64_t>, sig64 }
#define SIGNED3(name, F, sig16, sig32, sig64) \
  {name ".s16", F<int16_t>, sig16}, {name ".s32", F<int32_t>, sig32}, { name ".s64", F<int64_t>, sig64 }
#define BOTH(name, F, sig32, sig64) UNSIGNED3(name, F, sig32, sig32, sig64), SIGNED3(name, F, sig32, sig32, sig64)
#define BITS3(name, F, sig32, sig64) \
  {name ".b16", F<uint16_t>, sig32}, {name ".b32", F<uint32_t>, sig32}, { name ".b64", F<uint64_t>, sig64 }

}  // namespace

OpRows IntegerRows() {
  static const OpRow kRows[] = {
      BOTH("add", BinaryOf<Add>::Run, "daa", "DAA"),
      BOTH("sub", BinaryOf<Sub>::Run, "daa", "DAA"),
      {"add.sat.s32", BinaryOf<AddSat>::Run<int32_t>, "daa"},
      {"sub.sat.s32", BinaryOf<SubSat>::Run<int32_t>, "daa"},
      BOTH("mul.lo", BinaryOf<MulLo>::Run, "daa", "DAA"),
      BOTH("mul.hi", BinaryOf<MulHi>::Run, "daa", "DAA"),
      {"mul.wide.u16", MulWide<uint16_t>, "daa"},
      {"mul.wide.s16", MulWide<int16_t>, "daa"},
      {"mul.wide.u32", MulWide<uint32_t>, "Daa"},
      {"mul.wide.s32", MulWide<int32_t>, "Daa"},
      {"mad.wide.u16", MadWide<uint16_t>, "daaa"},
      {"mad.wide.s16", MadWide<int16_t>, "daaa"},
      {"mad.wide.u32", MadWide<uint32_t>, "DaaA"},
      {"mad.wide.s32", MadWide<int32_t>, "DaaA"},
      BOTH("mad.lo", TernaryOf<MadLo>::Run, "daaa", "DAAA"),
      BOTH("mad.hi", TernaryOf<MadHi>::Run, "daaa", "DAAA"),
      {"mul24.lo.u32", BinaryOf<Mul24>::Run<uint32_t>, "daa"},
      {"mul24.lo.s32", BinaryOf<Mul24>::Run<int32_t>, "daa"},
      BOTH("sad", TernaryOf<Sad>::Run, "daaa", "DAAA"),
      BOTH("div", EachBinary<Div>::Run, "daa", "DAA"),
      BOTH("rem", EachBinary<Rem>::Run, "daa", "DAA"),
      BOTH("min", BinaryOf<Min>::Run, "daa", "DAA"),
      BOTH("max", BinaryOf<Max>::Run, "daa", "DAA"),
      SIGNED3("neg", UnaryOf<Neg>::Run, "da", "da", "DA"),
      SIGNED3("abs", UnaryOf<Abs>::Run, "da", "da", "DA"),
      BITS3("and", BinaryOf<And>::Run, "daa", "DAA"),
      BITS3("or", BinaryOf<Or>::Run, "daa", "DAA"),
      BITS3("xor", BinaryOf<Xor>::Run, "daa", "DAA"),
      BITS3("not", UnaryOf<Not>::Run, "da", "DA"),
      BITS3("cnot", UnaryOf<Cnot>::Run, "da", "DA"),
      {"and.pred", AndPred, "Ppp"},
      {"or.pred", OrPred, "Ppp"},
      {"xor.pred", XorPred, "Ppp"},
      {"not.pred", NotPred, "Pp"},
      {"mov.pred", MovePred, "Pp"},
      {"selp.pred", SelpPred, "Pppp"},
      BITS3("shl", Shl, "daa", "DAa"),
      BITS3("shr", Shr, "daa", "DAa"),
      UNSIGNED3("shr", Shr, "daa", "daa", "DAa"),
      SIGNED3("shr", Shr, "daa", "daa", "DAa"),
      BITS3("mov", UnaryOf<Move>::Run, "da", "DA"),
      BOTH("mov", UnaryOf<Move>::Run, "da", "DA"),
      {"mov.f16", UnaryOf<Move>::Run<uint16_t>, "da"},
      {"mov.f16x2", UnaryOf<Move>::Run<uint32_t>, "da"},
      {"mov.f32", UnaryOf<Move>::Run<uint32_t>, "da"},
      {"mov.f64", UnaryOf<Move>::Run<uint64_t>, "DA"},
      BITS3("selp", Selp, "daap", "DAAp"),
      BOTH("selp", Selp, "daap", "DAAp"),
      {"selp.f32", Selp<uint32_t>, "daap"},
      {"selp.f64", Selp<uint64_t>, "DAAp"},
      {"slct.u32.s32", Slct<uint32_t, int32_t>, "daaa"},
      {"slct.s32.s32", Slct<uint32_t, int32_t>, "daaa"},
      {"slct.b32.s32", Slct<uint32_t, int32_t>, "daaa"},
      {"slct.f32.s32", Slct<uint32_t, int32_t>, "daaa"},
      {"slct.b64.s32", Slct<uint64_t, int32_t>, "DAAa"},
      {"slct.u64.s32", Slct<uint64_t, int32_t>, "DAAa"},
      {"slct.s64.s32", Slct<uint64_t, int32_t>, "DAAa"},
      {"slct.f64.s32", Slct<uint64_t, int32_t>, "DAAa"},
      {"slct.f32.f32", Slct<uint32_t, float>, "daaa"},
      {"slct.u32.f32", Slct<uint32_t, float>, "daaa"},
      {"slct.s32.f32", Slct<uint32_t, float>, "daaa"},
      {"popc.b32", Popc<uint32_t>, "da"},
      {"popc.b64", Popc<uint64_t>, "dA"},
      {"clz.b32", Clz<uint32_t>, "da"},
      {"clz.b64", Clz<uint64_t>, "dA"},
      {"bfind.u32", Bfind<uint32_t, false>, "da"},
      {"bfind.s32", Bfind<int32_t, false>, "da"},
      {"bfind.u64", Bfind<uint64_t, false>, "dA"},
      {"bfind.s64", Bfind<int64_t, false>, "dA"},
      {"bfind.shiftamt.u32", Bfind<uint32_t, true>, "da"},
      {"bfind.shiftamt.s32", Bfind<int32_t, true>, "da"},
      {"bfind.shiftamt.u64", Bfind<uint64_t, true>, "dA"},
      {"bfind.shiftamt.s64", Bfind<int64_t, true>, "dA"},
      {"brev.b32", UnaryOf<Brev>::Run<uint32_t>, "da"},
      {"brev.b64", UnaryOf<Brev>::Run<uint64_t>, "DA"},
      {"bfe.u32", Bfe<uint32_t>, "daaa"},
      {"bfe.s32", Bfe<int32_t>, "daaa"},
      {"bfe.u64", Bfe<uint64_t>, "DAaa"},
      {"bfe.s64", Bfe<int64_t>, "DAaa"},
      {"bfi.b32", Bfi<uint32_t>, "daaaa"},
      {"bfi.b64", Bfi<uint64_t>, "DAAaa"},
      {"bmsk.clamp.b32", Bmsk<true>, "daa"},
      {"bmsk.wrap.b32", Bmsk<false>, "daa"},
      {"shf.l.wrap.b32", Shf<true, true>, "daaa"},
      {"shf.l.clamp.b32", Shf<true, false>, "daaa"},
      {"shf.r.wrap.b32", Shf<false, true>, "daaa"},
      {"shf.r.clamp.b32", Shf<false, false>, "daaa"},
      {"lop3.b32", Lop3, "daaaa"},
      {"prmt.b32", Prmt<kGeneric>, "daaa"},
      {"prmt.b32.f4e", Prmt<kForward4>, "daaa"},
      {"prmt.b32.b4e", Prmt<kBackward4>, "daaa"},
      {"prmt.b32.rc8", Prmt<kReplicate8>, "daaa"},
      {"prmt.b32.ecl", Prmt<kEdgeLeft>, "daaa"},
      {"prmt.b32.ecr", Prmt<kEdgeRight>, "daaa"},
      {"prmt.b32.rc16", Prmt<kReplicate16>, "daaa"},
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
      {"dp4a.u32.u32", Dp4a<uint8_t, uint8_t>, "daaa"},
      {"dp4a.s32.s32", Dp4a<int8_t, int8_t>, "daaa"},
      {"dp4a.u32.s32", Dp4a<uint8_t, int8_t>, "daaa"},
      {"dp4a.s32.u32", Dp4a<int8_t, uint8_t>, "daaa"},
      {"@narrow", Resize<uint32_t, uint64_t>, "dA"},
      {"@widen.u", Resize<uint64_t, uint32_t>, "Da"},
      {"@widen.s", Resize<int64_t, int32_t>, "Da"},
      {"@pack.b32.2", Pack<uint32_t, uint16_t, 2>, "daa"},
      {"@pack.b64.2", Pack<uint64_t, uint32_t, 2>, "Daa"},
      {"@pack.b64.4", Pack<uint64_t, uint16_t, 4>, "Daaaa"},
      {"@pack.b16.2", Pack<uint32_t, uint8_t, 2>, "daa"},
      {"@pack.b32.4", Pack<uint32_t, uint8_t, 4>, "daaaa"},
      {"@unpack.b32.2", Unpack<uint32_t, uint16_t, 2>, "dda"},
      {"@unpack.b64.2", Unpack<uint64_t, uint32_t, 2>, "ddA"},
      {"@unpack.b64.4", Unpack<uint64_t, uint16_t, 4>, "ddddA"},
      {"@unpack.b16.2", Unpack<uint32_t, uint8_t, 2>, "dda"},
      {"@unpack.b32.4", Unpack<uint32_t, uint8_t, 4>, "dddda"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
