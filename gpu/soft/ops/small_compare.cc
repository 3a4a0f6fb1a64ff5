// SPDX-License-Identifier: Apache-2.0
// Comparisons of f16 and bf16, alone and in pairs (PTX ISA "Half Precision Comparison Instructions").
#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/compare.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Bit l: what lane l's parts at `shift` give.
template <class Format, class C>
ALWAYS uint32_t SmallMask(const Warp& w, const Inst* i, int operand, uint32_t shift) {
  const uint32_t* a = In<uint32_t>(w, i, operand);
  const uint32_t* b = In<uint32_t>(w, i, operand + 1);
  using Math = typename Format::Math;
  alignas(64) uint32_t t[kLanes];
  if (i->flags & kFtz) {
    const auto get = [&](uint32_t v) { return Format::Get(SmallFlush<Format>(v >> shift & 0xffff)); };
    for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<Math>(get(a[l]), get(b[l])) ? ~0u : 0u;
  } else {
    const auto get = [&](uint32_t v) { return Format::Get(v >> shift & 0xffff); };
    for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<Math>(get(a[l]), get(b[l])) ? ~0u : 0u;
  }
  return SignBits(t);
}

// p|q: the comparison and its opposite, or those of the lower and the upper parts.
template <class Format, class C, bool kPair>
const Inst* SetpSmall(Warp& w, const Inst* i) {
  const uint32_t first = SmallMask<Format, C>(w, i, 2, 0);
  const uint32_t second = kPair ? SmallMask<Format, C>(w, i, 2, 16) : ~first;
  const uint32_t c = i->aux != 0 ? Pred(w, i, 4) : 0;
  WritePred(Pred(w, i, 0), Combine(i->aux, first, c), w.mask);
  WritePred(Pred(w, i, 1), Combine(i->aux, second, c), w.mask);
  return i + 1;
}

template <class Format, class C, uint32_t kYes, bool kPair>
const Inst* SetSmall(Warp& w, const Inst* i) {
  const uint32_t c = i->aux != 0 ? Pred(w, i, 3) : 0;
  const uint32_t low = Combine(i->aux, SmallMask<Format, C>(w, i, 1, 0), c);
  const uint32_t high = kPair ? Combine(i->aux, SmallMask<Format, C>(w, i, 1, 16), c) : 0;
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return (low >> l & 1 ? kYes : 0) | (high >> l & 1 ? kYes << 16 : 0); });
  return i + 1;
}

}  // namespace

OpRows SmallCompareRows() {
  constexpr uint8_t kHalf = kCombines | kTakesFtz;
  constexpr uint8_t kBrain = kCombines;
#define SMALL_COMPARE(cmp, C, type, Format, traits)                                              \
  {"setp." cmp "." type, SetpSmall<Format, C, false>, "Qaa", traits},                            \
      {"setp." cmp "." type "x2", SetpSmall<Format, C, true>, "Qaa", traits},                    \
      {"set." cmp ".u16." type, SetSmall<Format, C, 0xffff, false>, "daa", traits},              \
      {"set." cmp ".s16." type, SetSmall<Format, C, 0xffffffff, false>, "daa", traits},          \
      {"set." cmp ".u32." type, SetSmall<Format, C, 0xffffffff, false>, "daa", traits},          \
      {"set." cmp ".s32." type, SetSmall<Format, C, 0xffffffff, false>, "daa", traits},          \
      {"set." cmp ".u32." type "x2", SetSmall<Format, C, 0xffff, true>, "daa", traits},          \
      {"set." cmp ".s32." type "x2", SetSmall<Format, C, 0xffff, true>, "daa", traits},          \
      {"set." cmp "." type "." type, SetSmall<Format, C, Format::kOne, false>, "daa", traits}, { \
    "set." cmp "." type "x2." type "x2", SetSmall<Format, C, Format::kOne, true>, "daa", traits  \
  }
#define SMALL_COMPARES(type, Format, traits)                                                            \
  SMALL_COMPARE("eq", Eq, type, Format, traits), SMALL_COMPARE("ne", OrderedNe, type, Format, traits),  \
      SMALL_COMPARE("lt", Lt, type, Format, traits), SMALL_COMPARE("le", Le, type, Format, traits),     \
      SMALL_COMPARE("gt", Gt, type, Format, traits), SMALL_COMPARE("ge", Ge, type, Format, traits),     \
      SMALL_COMPARE("equ", Equ, type, Format, traits), SMALL_COMPARE("neu", Ne, type, Format, traits),  \
      SMALL_COMPARE("ltu", Ltu, type, Format, traits), SMALL_COMPARE("leu", Leu, type, Format, traits), \
      SMALL_COMPARE("gtu", Gtu, type, Format, traits), SMALL_COMPARE("geu", Geu, type, Format, traits), \
      SMALL_COMPARE("num", Num, type, Format, traits), SMALL_COMPARE("nan", Nan, type, Format, traits)
  static const OpRow kRows[] = {
      SMALL_COMPARES("f16", Binary16, kHalf),
      SMALL_COMPARES("bf16", Bfloat16, kBrain),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
