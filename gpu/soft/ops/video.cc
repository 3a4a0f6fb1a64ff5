// SPDX-License-Identifier: Apache-2.0
// Video instructions (PTX ISA "Scalar Video Instructions", "SIMD Video Instructions"). Operands: d, a, b, c.
#include "gpu/soft/ops/video.h"

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

ALWAYS int64_t Least(uint32_t bits, bool is_signed) { return is_signed ? -(int64_t{1} << (bits - 1)) : 0; }
ALWAYS int64_t Greatest(uint32_t bits, bool is_signed) { return (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1; }
ALWAYS int64_t ClampTo(int64_t v, uint32_t bits, bool is_signed) {
  const int64_t least = Least(bits, is_signed);
  const int64_t greatest = Greatest(bits, is_signed);
  return v < least ? least : v > greatest ? greatest : v;
}
ALWAYS int64_t Cut(uint32_t v, uint32_t shift, uint32_t bits, bool is_signed) {
  const auto up = static_cast<int64_t>(static_cast<uint64_t>(v >> shift) << (64 - bits));
  return is_signed ? up >> (64 - bits) : static_cast<int64_t>(static_cast<uint64_t>(up) >> (64 - bits));
}

struct Part {
  uint32_t shift;
  uint32_t bits;
};
ALWAYS Part PartOf(uint32_t selector) {
  if (selector == 0) return {0, 32};
  return selector <= 4 ? Part{8 * (selector - 1), 8} : Part{16 * (selector - 5), 16};
}

#define VIDEO(Name, expr)                                    \
  struct Name {                                              \
    ALWAYS int64_t Do(int64_t a, int64_t b) { return expr; } \
  };
VIDEO(VAdd, a + b)
VIDEO(VSub, a - b)
VIDEO(VAbsDiff, a < b ? b - a : a - b)
VIDEO(VMin, a < b ? a : b)
VIDEO(VMax, a > b ? a : b)
// Rounded away from zero.
VIDEO(VAverage, (a + b + (a + b >= 0)) >> 1)
// By 32 bits only zeros are left below; what is above must not overflow.
VIDEO(VShlClamp, b > 31 ? (a > INT32_MAX ? INT32_MAX : a) << 32 : a << b)
VIDEO(VShlWrap, a << (b & 31))
VIDEO(VShrClamp, a >> (b > 32 ? 32 : b))
VIDEO(VShrWrap, a >> (b & 31))
VIDEO(VSetEq, a == b)
VIDEO(VSetNe, a != b)
VIDEO(VSetLt, a < b)
VIDEO(VSetLe, a <= b)
VIDEO(VSetGt, a > b)
VIDEO(VSetGe, a >= b)

template <class F>
const Inst* ScalarVideo(Warp& w, const Inst* i) {
  const VideoForm f = UnpackVideo(i->imm);
  const Part pa = PartOf(f.select_a);
  const Part pb = PartOf(f.select_b);
  const Part pd = PartOf(f.select_d);
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    int64_t r = F::Do(Cut(a[l], pa.shift, pa.bits, f.signed_a), Cut(b[l], pb.shift, pb.bits, f.signed_b));
    if (f.saturate) r = ClampTo(r, pd.bits, f.signed_d);
    const auto low = static_cast<uint32_t>(r);
    const int64_t x = Cut(low, 0, 32, f.signed_d);
    const int64_t y = Cut(c[l], 0, 32, f.signed_d);
    switch (f.second) {
      case VideoSecond::kNone:
        return low;
      case VideoSecond::kAdd:
        return low + c[l];
      case VideoSecond::kMin:
        return x < y ? low : c[l];
      case VideoSecond::kMax:
        return x > y ? low : c[l];
      case VideoSecond::kMerge:
        break;
    }
    const auto field = static_cast<uint32_t>(Greatest(pd.bits, false) << pd.shift);
    return (c[l] & ~field) | (low << pd.shift & field);
  });
  return i + 1;
}

// kParts: 2 of 16 bits or 4 of 8 bits.
template <class F, uint32_t kParts>
const Inst* SimdVideo(Warp& w, const Inst* i) {
  constexpr uint32_t kBits = 32 / kParts;
  const VideoForm f = UnpackVideo(i->imm);
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  // Part number `selector` of a and b in a row.
  const auto cut = [&](uint32_t l, uint32_t selector, bool is_signed) {
    return Cut(selector < kParts ? a[l] : b[l], selector % kParts * kBits, kBits, is_signed);
  };
  Each<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    uint32_t r = c[l];
    for (uint32_t part = 0; part < kParts; ++part) {
      if ((f.select_d >> part & 1) == 0) continue;
      int64_t v =
          F::Do(cut(l, f.select_a >> (4 * part) & 15, f.signed_a), cut(l, f.select_b >> (4 * part) & 15, f.signed_b));
      if (f.saturate) v = ClampTo(v, kBits, f.signed_d);
      if (f.second == VideoSecond::kAdd) {
        r += static_cast<uint32_t>(v);
      } else {
        const auto field = static_cast<uint32_t>(Greatest(kBits, false) << (part * kBits));
        r = (r & ~field) | (static_cast<uint32_t>(v) << (part * kBits) & field);
      }
    }
    return r;
  });
  return i + 1;
}

// aux: bit 0 .po, the rest is the shift of the result.
const Inst* VideoMad(Warp& w, const Inst* i) {
  const VideoForm f = UnpackVideo(i->imm);
  const Part pa = PartOf(f.select_a);
  const Part pb = PartOf(f.select_b);
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  const bool signed_result = f.signed_a || f.signed_b;
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    using Wide = __int128;
    const Wide x = Cut(a[l], pa.shift, pa.bits, f.signed_a);
    const Wide y = Cut(b[l], pb.shift, pb.bits, f.signed_b);
    const Wide r = (x * y + Cut(c[l], 0, 32, signed_result) + (i->aux & 1)) >> (i->aux >> 1);
    if (!f.saturate) return static_cast<uint32_t>(r);
    const Wide least = Least(32, signed_result);
    const Wide greatest = Greatest(32, signed_result);
    return static_cast<uint32_t>(r < least ? least : r > greatest ? greatest : r);
  });
  return i + 1;
}

}  // namespace

OpRows VideoRows() {
#define VIDEO_ALL(name, F) \
  {"@" name, ScalarVideo<F>, ""}, {"@" name "2", SimdVideo<F, 2>, ""}, { "@" name "4", SimdVideo<F, 4>, "" }
  static const OpRow kRows[] = {
      VIDEO_ALL("vadd", VAdd),
      VIDEO_ALL("vsub", VSub),
      VIDEO_ALL("vabsdiff", VAbsDiff),
      VIDEO_ALL("vmin", VMin),
      VIDEO_ALL("vmax", VMax),
      {"@vavrg2", SimdVideo<VAverage, 2>, ""},
      {"@vavrg4", SimdVideo<VAverage, 4>, ""},
      {"@vshl.clamp", ScalarVideo<VShlClamp>, ""},
      {"@vshl.wrap", ScalarVideo<VShlWrap>, ""},
      {"@vshr.clamp", ScalarVideo<VShrClamp>, ""},
      {"@vshr.wrap", ScalarVideo<VShrWrap>, ""},
#define VIDEO_SET(cmp, F) \
  {"@vset." cmp, ScalarVideo<F>, ""}, {"@vset2." cmp, SimdVideo<F, 2>, ""}, {"@vset4." cmp, SimdVideo<F, 4>, ""}
      VIDEO_SET("eq", VSetEq),
      VIDEO_SET("ne", VSetNe),
      VIDEO_SET("lt", VSetLt),
      VIDEO_SET("le", VSetLe),
      VIDEO_SET("gt", VSetGt),
      VIDEO_SET("ge", VSetGe),
      {"@vmad", VideoMad, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
