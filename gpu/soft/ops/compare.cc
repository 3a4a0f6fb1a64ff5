// SPDX-License-Identifier: Apache-2.0
// setp (PTX ISA "Comparison and Selection Instructions").
#include "gpu/soft/ops/compare.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

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
  static const OpRow kRows[] = {
      SETP("eq", Eq, "b16", uint16_t, "Qaa"), SETP("ne", Ne, "b16", uint16_t, "Qaa"),
      SETP("eq", Eq, "b32", uint32_t, "Qaa"), SETP("ne", Ne, "b32", uint32_t, "Qaa"),
      SETP("eq", Eq, "b64", uint64_t, "QAA"), SETP("ne", Ne, "b64", uint64_t, "QAA"),
      SETP_UNSIGNED("u16", uint16_t, "Qaa"),  SETP_UNSIGNED("u32", uint32_t, "Qaa"),
      SETP_UNSIGNED("u64", uint64_t, "QAA"),  SETP_SIX("s16", int16_t, "Qaa"),
      SETP_SIX("s32", int32_t, "Qaa"),        SETP_SIX("s64", int64_t, "QAA"),
      SETP_FLOAT("f32", float, "Qaa"),        SETP_FLOAT("f64", double, "QAA"),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
