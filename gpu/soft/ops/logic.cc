// SPDX-License-Identifier: Apache-2.0
// Logic, shifts, selection and moves (PTX ISA "Logic and Shift Instructions", "Data Movement").
#include "gpu/soft/ops/int.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

OP2(And, a& b)
OP2(Or, a | b)
OP2(Xor, a ^ b)
OP1(Not, ~a)
OP1(Move, a)

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

template <class T>
const Inst* Selp(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const uint32_t p = Pred(w, i, 3);
  Map<T>(w, i, 0, [&](uint32_t l) { return static_cast<T>((p >> l) & 1 ? a[l] : b[l]); });
  return i + 1;
}

// Truncation and sign/zero extension between slot widths, put in by the decoder.
template <class D, class S>
const Inst* Resize(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  Map<D>(w, i, 0, [&](uint32_t l) { return static_cast<D>(a[l]); });
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

// The generic address of what lies at operand 1 + imm in shared memory. What is outside of the windows of a cluster
// gets an address behind them, where nothing is: an operand that is declared shared never reaches other memory.
template <class T>
const Inst* GenericOfShared(Warp& w, const Inst* i) {
  const T* offset = In<T>(w, i, 1);
  const auto imm = static_cast<uint64_t>(i->imm);
  Map<uint64_t>(w, i, 0, [&](uint32_t l) { return SharedAddressOf(uint64_t{offset[l]} + imm); });
  return i + 1;
}

}  // namespace

OpRows LogicRows() {
  static const OpRow kRows[] = {
      BITS3("and", BinaryOf<And>::Run, "daa", "DAA"),
      BITS3("or", BinaryOf<Or>::Run, "daa", "DAA"),
      BITS3("xor", BinaryOf<Xor>::Run, "daa", "DAA"),
      BITS3("not", UnaryOf<Not>::Run, "da", "DA"),
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
      {"shf.l.wrap.b32", Shf<true, true>, "daaa"},
      {"shf.l.clamp.b32", Shf<true, false>, "daaa"},
      {"shf.r.wrap.b32", Shf<false, true>, "daaa"},
      {"shf.r.clamp.b32", Shf<false, false>, "daaa"},
      {"lop3.b32", Lop3, "daaaa"},
      {"@narrow", Resize<uint32_t, uint64_t>, "dA"},
      {"@widen.u", Resize<uint64_t, uint32_t>, "Da"},
      {"@widen.s", Resize<int64_t, int32_t>, "Da"},
      {"@generic.shared.32", GenericOfShared<uint32_t>, "Da"},
      {"@generic.shared.64", GenericOfShared<uint64_t>, "DA"},
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
