// SPDX-License-Identifier: Apache-2.0
// Instructions one by one: PTX in, values out, compared with host arithmetic over edge values.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// Runs `instruction` (d, a, b, c = %rd10..13 or their 32-bit / float forms, see Slots) once per row of inputs.
struct Row {
  uint64_t a;
  uint64_t b;
  uint64_t c;
};

std::vector<uint64_t> Evaluate(Isa isa, const std::string& instructions, const std::vector<Row>& rows) {
  SoftMachine m(isa);
  const std::string body = R"(
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r30, %ctaid.x;
    mov.u32 %r31, %ntid.x;
    mov.u32 %r32, %tid.x;
    mad.lo.s32 %r33, %r30, %r31, %r32;
    ld.param.u32 %r34, [count];
    setp.ge.u32 %p9, %r33, %r34;
    @%p9 exit;
    mul.wide.u32 %rd3, %r33, 24;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u64 %rd11, [%rd4];
    ld.global.u64 %rd12, [%rd4+8];
    ld.global.u64 %rd13, [%rd4+16];
    cvt.u32.u64 %r11, %rd11;
    cvt.u32.u64 %r12, %rd12;
    cvt.u32.u64 %r13, %rd13;
    cvt.u16.u64 %rs11, %rd11;
    cvt.u16.u64 %rs12, %rd12;
    mov.b32 %f11, %r11;
    mov.b32 %f12, %r12;
    mov.b32 %f13, %r13;
    mov.b64 %fd11, %rd11;
    mov.b64 %fd12, %rd12;
    mov.b64 %fd13, %rd13;
    mov.u64 %rd10, 0;
    )" + instructions + R"(
    mul.wide.u32 %rd5, %r33, 8;
    add.u64 %rd6, %rd2, %rd5;
    st.global.u64 [%rd6], %rd10;)";
  const Outcome loaded = m.LoadBody(".param .u64 in, .param .u64 out, .param .u32 count", body);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  if (loaded.status != CuStatus::kSuccess) return std::vector<uint64_t>(rows.size(), ~uint64_t{0});
  std::vector<uint64_t> flat;
  for (const Row& r : rows) flat.insert(flat.end(), {r.a, r.b, r.c});
  const GpuVa out = m.Alloc(rows.size() * 8);
  const auto count = static_cast<uint32_t>(rows.size());
  const Outcome ran =
      m.Run("k", {{(count + 127) / 128, 1, 1}, {128, 1, 1}, 0}, Params().Add(m.Upload(flat)).Add(out).Add(count));
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  return m.Download<uint64_t>(out, rows.size());
}

std::vector<Row> Triples(const std::vector<uint64_t>& values) {
  std::vector<Row> rows;
  for (const uint64_t a : values)
    for (const uint64_t b : values)
      for (size_t c = 0; c < values.size(); c += 3) rows.push_back({a, b, values[c]});
  return rows;
}

const std::vector<uint64_t> kInts = {0,
                                     1,
                                     2,
                                     5,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     255,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x123456789abcdef0,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff};

std::vector<uint64_t> Floats32() {
  std::vector<uint64_t> all;
  for (const float v : {0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        1.5f,
                        2.5f,
                        -2.5f,
                        0.1f,
                        1e-40f,
                        -1e-45f,
                        1.1754944e-38f,
                        3.4e38f,
                        -3.4e38f,
                        16777217.0f,
                        2147483648.0f,
                        4294967296.0f,
                        -2147483904.0f,
                        255.5f,
                        std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()})
    all.push_back(std::bit_cast<uint32_t>(v));
  all.push_back(0x7fc00000);
  all.push_back(0xffc12345);
  return all;
}
std::vector<uint64_t> Floats64() {
  std::vector<uint64_t> all;
  for (const double v : {0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e-310, 0.5, 1.5, 2.5, 9.3e18, -9.3e18, 1.9e19, 3e9, -3e9,
                         std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    all.push_back(std::bit_cast<uint64_t>(v));
  all.push_back(0x7ff8000000000000);
  return all;
}

struct OpCase {
  const char* name;
  const char* ptx;  // leaves the result in %rd10
  enum Inputs { kInt, kF32, kF64 } inputs;
  std::function<uint64_t(uint64_t, uint64_t, uint64_t)> expected;
};

uint64_t F32(float v) { return v != v ? 0x7fffffffu : std::bit_cast<uint32_t>(v); }
float AsF32(uint64_t v) { return std::bit_cast<float>(static_cast<uint32_t>(v)); }
double AsF64(uint64_t v) { return std::bit_cast<double>(v); }
uint64_t F64(double v) { return v != v ? 0 : std::bit_cast<uint64_t>(v); }
float Flush(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
template <class D>
uint64_t ToInt(double v, double nan) {
  if (v != v) v = nan;
  if (v <= static_cast<double>(std::numeric_limits<D>::min()))
    return static_cast<uint64_t>(std::numeric_limits<D>::min());
  if (v >= static_cast<double>(std::numeric_limits<D>::max()))
    return static_cast<uint64_t>(std::numeric_limits<D>::max());
  return static_cast<uint64_t>(static_cast<D>(v));
}
uint32_t U(uint64_t v) { return static_cast<uint32_t>(v); }
int32_t S(uint64_t v) { return static_cast<int32_t>(v); }
int64_t L(uint64_t v) { return static_cast<int64_t>(v); }

#define INT32(name, text, expr)                                                                                \
  {                                                                                                            \
    name, text " cvt.u64.u32 %rd10, %r10;", OpCase::kInt, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);                                        \
      return static_cast<uint32_t>(expr);                                                                      \
    }                                                                                                          \
  }
#define INT64(name, text, expr)                                                    \
  {                                                                                \
    name, text, OpCase::kInt, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);            \
      return static_cast<uint64_t>(expr);                                          \
    }                                                                              \
  }
#define FLT32(name, text, expr)                                               \
  {                                                                           \
    name, text " mov.b32 %r10, %f10; cvt.u64.u32 %rd10, %r10;", OpCase::kF32, \
        [](uint64_t ua, uint64_t ub, uint64_t uc) -> uint64_t {               \
          const float a = AsF32(ua), b = AsF32(ub), c = AsF32(uc);            \
          static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);   \
          return F32(expr);                                                   \
        }                                                                     \
  }
#define FLT64(name, text, expr)                                                                                       \
  {                                                                                                                   \
    name, text " setp.nan.f64 %p1, %fd10, %fd10; mov.b64 %rd10, %fd10; selp.b64 %rd10, 0, %rd10, %p1;", OpCase::kF64, \
        [](uint64_t ua, uint64_t ub, uint64_t uc) -> uint64_t {                                                       \
          const double a = AsF64(ua), b = AsF64(ub), c = AsF64(uc);                                                   \
          static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);                                           \
          return F64(expr);                                                                                           \
        }                                                                                                             \
  }
#define PRED(name, kind, text, expr)                                                                     \
  {                                                                                                      \
    name, text " selp.u64 %rd10, 1, 0, %p1;", kind, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { \
      static_cast<void>(c);                                                                              \
      return expr;                                                                                       \
    }                                                                                                    \
  }
const std::vector<OpCase> kCases = {
    INT32("add_s32", "add.s32 %r10, %r11, %r12;", a + b),
    INT32("sub_u32", "sub.u32 %r10, %r11, %r12;", a - b),
    INT32("mul_lo_s32", "mul.lo.s32 %r10, %r11, %r12;", a* b),
    INT32("mul_hi_u32", "mul.hi.u32 %r10, %r11, %r12;", (uint64_t{U(a)} * U(b)) >> 32),
    INT32("mul_hi_s32", "mul.hi.s32 %r10, %r11, %r12;", (int64_t{S(a)} * S(b)) >> 32),
    INT32("mad_lo_u32", "mad.lo.u32 %r10, %r11, %r12, %r13;", a* b + c),
    INT32("div_s32", "div.s32 %r10, %r11, %r12;", S(b) == 0 ? -1 : static_cast<int32_t>(int64_t{S(a)} / S(b))),
    INT32("rem_s32", "rem.s32 %r10, %r11, %r12;", S(b) == 0 ? S(a) : static_cast<int32_t>(int64_t{S(a)} % S(b))),
    INT32("div_u32", "div.u32 %r10, %r11, %r12;", U(b) == 0 ? ~0u : U(a) / U(b)),
    INT32("rem_u32", "rem.u32 %r10, %r11, %r12;", U(b) == 0 ? U(a) : U(a) % U(b)),
    INT32("min_s32", "min.s32 %r10, %r11, %r12;", std::min(S(a), S(b))),
    INT32("max_u32", "max.u32 %r10, %r11, %r12;", std::max(U(a), U(b))),
    INT32("neg_s32", "neg.s32 %r10, %r11;", 0 - U(a)),
    INT32("abs_s32", "abs.s32 %r10, %r11;", S(a) < 0 ? 0 - U(a) : U(a)),
    INT32("shl_b32", "shl.b32 %r10, %r11, %r12;", U(b) > 31 ? 0 : U(a) << U(b)),
    INT32("shr_u32", "shr.u32 %r10, %r11, %r12;", U(b) > 31 ? 0 : U(a) >> U(b)),
    INT32("shr_s32", "shr.s32 %r10, %r11, %r12;", S(a) >> (U(b) > 31 ? 31 : U(b))),
    INT32("and_b32", "and.b32 %r10, %r11, %r12;", a& b),
    INT32("not_b32", "not.b32 %r10, %r11;", ~a),
    INT32("lop3_majority", "lop3.b32 %r10, %r11, %r12, %r13, 0xe8;", (a & b) | (a & c) | (b & c)),
    INT32("lop3_sum", "lop3.b32 %r10, %r11, %r12, %r13, 0x96;", a ^ b ^ c),
    INT32("shf_l_wrap", "shf.l.wrap.b32 %r10, %r11, %r12, %r13;",
          U(((uint64_t{U(b)} << 32 | U(a)) << (U(c) & 31)) >> 32)),
    INT32("shf_r_clamp", "shf.r.clamp.b32 %r10, %r11, %r12, %r13;",
          U((uint64_t{U(b)} << 32 | U(a)) >> (U(c) > 32 ? 32 : U(c)))),
    INT32("popc_b32", "popc.b32 %r10, %r11;", std::popcount(U(a))),
    INT32("popc_b64", "popc.b64 %r10, %rd11;", std::popcount(a)),
    INT32("clz_b32", "clz.b32 %r10, %r11;", std::countl_zero(U(a))),
    INT32("clz_b64", "clz.b64 %r10, %rd11;", std::countl_zero(a)),
    INT32("bfind_u32", "bfind.u32 %r10, %r11;", U(a) == 0 ? ~0u : 31 - std::countl_zero(U(a))),
    INT32("bfind_s32", "bfind.s32 %r10, %r11;",
          U(S(a) < 0 ? ~a : a) == 0 ? ~0u : 31 - std::countl_zero(U(S(a) < 0 ? ~a : a))),
    INT32("prmt_swap", "prmt.b32 %r10, %r11, %r12, 0x0123;", __builtin_bswap32(U(a))),
    INT32("prmt_mix", "prmt.b32 %r10, %r11, %r12, 0x5410;", (U(a) & 0xffff) | U(b) << 16),
    INT32("bfe_u32", "bfe.u32 %r10, %r11, 4, 8;", (U(a) >> 4) & 0xff),
    INT32("bfe_s32", "bfe.s32 %r10, %r11, 28, 8;", S(a) >> 28),
    INT32("bfi_b32", "bfi.b32 %r10, %r11, %r12, 8, 12;", (U(b) & ~0xfff00u) | ((U(a) << 8) & 0xfff00u)),
    INT32("selp_negated", "setp.ge.s32 %p1, %r11, %r12; not.pred %p2, %p1; selp.b32 %r10, %r11, %r12, %p2;",
          S(a) < S(b) ? a : b),
    INT32("guarded",
          "mov.u32 %r10, %r13; setp.eq.u32 %p1, %r11, %r12; @%p1 add.u32 %r10, %r10, 7; @!%p1 mov.u32 %r10, 9;",
          U(a) == U(b) ? U(c) + 7 : 9),
    INT32("add_s16", "add.s16 %rs10, %rs11, %rs12; cvt.s32.s16 %r10, %rs10;", static_cast<int16_t>(a + b)),
    INT32("shr_s16", "shr.s16 %rs10, %rs11, 3; cvt.s32.s16 %r10, %rs10;", static_cast<int16_t>(a) >> 3),
    INT32("mul_wide_u16", "mul.wide.u16 %r10, %rs11, %rs12;", (a & 0xffff) * (b & 0xffff)),
    INT32("sat_s8", "cvt.sat.s8.s32 %r10, %r11;",
          S(a) > 127    ? 127
          : S(a) < -128 ? -128
                        : S(a)),
    INT32("sat_u16_s32", "cvt.sat.u16.s32 %rs10, %r11; cvt.u32.u16 %r10, %rs10;",
          S(a) < 0       ? 0
          : S(a) > 65535 ? 65535
                         : S(a)),
    INT32("add_sat_s32", "add.sat.s32 %r10, %r11, %r12;",
          std::clamp<int64_t>(int64_t{S(a)} + S(b), INT32_MIN, INT32_MAX)),
    INT32("dp4a", "dp4a.u32.u32 %r10, %r11, %r12, %r13;",
          U(c) + (a & 255) * (b & 255) + (a >> 8 & 255) * (b >> 8 & 255) + (a >> 16 & 255) * (b >> 16 & 255) +
              (a >> 24 & 255) * (b >> 24 & 255)),
    INT64("add_u64", "add.u64 %rd10, %rd11, %rd12;", a + b),
    INT64("mul_lo_s64", "mul.lo.s64 %rd10, %rd11, %rd12;", a* b),
    INT64("mul_hi_u64", "mul.hi.u64 %rd10, %rd11, %rd12;", (static_cast<unsigned __int128>(a) * b) >> 64),
    INT64("mul_hi_s64", "mul.hi.s64 %rd10, %rd11, %rd12;", (static_cast<__int128>(L(a)) * L(b)) >> 64),
    INT64("mul_wide_s32", "mul.wide.s32 %rd10, %r11, %r12;", int64_t{S(a)} * S(b)),
    INT64("mad_wide_u32", "mad.wide.u32 %rd10, %r11, %r12, %rd13;", uint64_t{U(a)} * U(b) + c),
    INT64("div_s64", "div.s64 %rd10, %rd11, %rd12;",
          b == 0              ? ~uint64_t{0}
          : b == ~uint64_t{0} ? 0 - a
                              : static_cast<uint64_t>(L(a) / L(b))),
    INT64("rem_u64", "rem.u64 %rd10, %rd11, %rd12;", b == 0 ? a : a % b),
    INT64("shl_b64", "shl.b64 %rd10, %rd11, %r12;", U(b) > 63 ? 0 : a << U(b)),
    INT64("shr_s64", "shr.s64 %rd10, %rd11, %r12;", L(a) >> (U(b) > 63 ? 63 : U(b))),
    INT64("brev_b64", "brev.b64 %rd10, %rd11; brev.b64 %rd10, %rd10;", a),
    INT64("cvt_s64_s32", "cvt.s64.s32 %rd10, %r11;", S(a)),
    INT64("cvt_s64_s8", "cvt.s64.s8 %rd10, %rd11;", static_cast<int8_t>(a)),
    INT64("pack", "mov.b64 %rd10, {%r11, %r12};", uint64_t{U(b)} << 32 | U(a)),
    INT64("unpack", "mov.b64 {%r20, %r21}, %rd11; mov.b64 %rd10, {%r21, %r20};", a << 32 | a >> 32),
    INT64("carry_chain",
          "add.cc.u32 %r20, %r11, %r12; mov.b64 {%r22, %r23}, %rd11; mov.b64 {%r24, %r25}, %rd12; addc.u32 %r21, "
          "%r23, %r25;"
          "mov.b64 %rd10, {%r20, %r21};",
          a + b),
    INT64("borrow_chain",
          "sub.cc.u32 %r20, %r11, %r12; mov.b64 {%r22, %r23}, %rd11; mov.b64 {%r24, %r25}, %rd12; subc.u32 %r21, "
          "%r23, %r25;"
          "mov.b64 %rd10, {%r20, %r21};",
          a - b),
    INT64("bfi_b64", "bfi.b64 %rd10, %rd11, %rd12, 60, 9;", (b & ~(uint64_t{15} << 60)) | a << 60),
    FLT32("add_f32", "add.f32 %f10, %f11, %f12;", a + b),
    FLT32("add_ftz_f32", "add.ftz.f32 %f10, %f11, %f12;", Flush(Flush(a) + Flush(b))),
    FLT32("mul_rn_f32", "mul.rn.f32 %f10, %f11, %f12;", a* b),
    FLT32("fma_rn_f32", "fma.rn.f32 %f10, %f11, %f12, %f13;", std::fma(a, b, c)),
    FLT32("fma_rn_ftz_f32", "fma.rn.ftz.f32 %f10, %f11, %f12, %f13;", Flush(std::fma(Flush(a), Flush(b), Flush(c)))),
    FLT32("add_sat_f32", "add.sat.f32 %f10, %f11, %f12;", a + b > 0 ? std::min(a + b, 1.0f) : 0.0f),
    FLT32("div_rn_f32", "div.rn.f32 %f10, %f11, %f12;", a / b),
    FLT32("sqrt_rn_f32", "sqrt.rn.f32 %f10, %f11;", std::sqrt(a)),
    FLT32("rcp_rn_f32", "rcp.rn.f32 %f10, %f11;", 1.0f / a),
    FLT32("min_f32", "min.f32 %f10, %f11, %f12;",
          a != a             ? b
          : b != b           ? a
          : a == 0 && b == 0 ? (std::signbit(a) ? a : b)
                             : std::min(a, b)),
    FLT32("max_f32", "max.f32 %f10, %f11, %f12;",
          a != a             ? b
          : b != b           ? a
          : a == 0 && b == 0 ? (std::signbit(a) ? b : a)
                             : std::max(a, b)),
    FLT32("neg_f32", "neg.f32 %f10, %f11;", -a),
    FLT32("abs_f32", "abs.f32 %f10, %f11;", std::fabs(a)),
    FLT32("cvt_rni_f32", "cvt.rni.f32.f32 %f10, %f11;", std::nearbyint(a)),
    FLT32("cvt_rmi_f32", "cvt.rmi.f32.f32 %f10, %f11;", std::floor(a)),
    FLT32("cvt_sat_f32", "cvt.sat.f32.f32 %f10, %f11;", a > 0 ? std::min(a, 1.0f) : 0.0f),
    FLT32("cvt_f16_and_back", "cvt.rn.f16.f32 %rs10, %f11; cvt.f32.f16 %f10, %rs10;",
          std::fabs(a) >= 65520 ? a * INFINITY
          : std::fabs(a) < 1e-30f
              ? std::copysign(0.0f, a)
              : static_cast<float>(std::nearbyint(std::ldexp(a, 10 - std::max(std::ilogb(a), -14))) *
                                   std::ldexp(1.0, std::max(std::ilogb(a), -14) - 10))),
    INT32("fma_f16x2", "mov.b32 %r11, 0x3c004000; mov.b32 %r12, 0x42004200; fma.rn.f16x2 %r10, %r11, %r12, %r12;",
          0x46004880u),
    FLT64("add_f64", "add.f64 %fd10, %fd11, %fd12;", a + b),
    FLT64("fma_rn_f64", "fma.rn.f64 %fd10, %fd11, %fd12, %fd13;", std::fma(a, b, c)),
    FLT64("div_rn_f64", "div.rn.f64 %fd10, %fd11, %fd12;", a / b),
    FLT64("sqrt_rn_f64", "sqrt.rn.f64 %fd10, %fd11;", std::sqrt(a)),
    FLT64("max_f64", "max.f64 %fd10, %fd11, %fd12;",
          a != a             ? b
          : b != b           ? a
          : a == 0 && b == 0 ? (std::signbit(a) ? b : a)
                             : std::max(a, b)),
    PRED("setp_lt_s32", OpCase::kInt, "setp.lt.s32 %p1, %r11, %r12;", S(a) < S(b)),
    PRED("setp_hi_u32", OpCase::kInt, "setp.hi.u32 %p1, %r11, %r12;", U(a) > U(b)),
    PRED("setp_ge_u64", OpCase::kInt, "setp.ge.u64 %p1, %rd11, %rd12;", a >= b),
    PRED("setp_lt_s16", OpCase::kInt, "setp.lt.s16 %p1, %rs11, %rs12;",
         static_cast<int16_t>(a) < static_cast<int16_t>(b)),
    PRED("setp_second", OpCase::kInt, "setp.lt.u32 %p2|%p1, %r11, %r12;", U(a) >= U(b)),
    PRED("setp_and", OpCase::kInt, "setp.eq.u32 %p2, %r11, 1; setp.lt.and.u32 %p1, %r11, %r12, !%p2;",
         U(a) < U(b) && U(a) != 1),
    PRED("setp_lt_f32", OpCase::kF32, "setp.lt.f32 %p1, %f11, %f12;", AsF32(a) < AsF32(b)),
    PRED("setp_ne_f32", OpCase::kF32, "setp.ne.f32 %p1, %f11, %f12;", AsF32(a) < AsF32(b) || AsF32(a) > AsF32(b)),
    PRED("setp_neu_f32", OpCase::kF32, "setp.neu.f32 %p1, %f11, %f12;", AsF32(a) != AsF32(b)),
    PRED("setp_geu_f32", OpCase::kF32, "setp.geu.f32 %p1, %f11, %f12;", !(AsF32(a) < AsF32(b))),
    PRED("setp_nan_f64", OpCase::kF64, "setp.nan.f64 %p1, %fd11, %fd12;", std::isnan(AsF64(a)) || std::isnan(AsF64(b))),
    PRED("setp_gtu_f64", OpCase::kF64, "setp.gtu.f64 %p1, %fd11, %fd12;", !(AsF64(a) <= AsF64(b))),
    {"rzi_s32_f32", "cvt.rzi.s32.f32 %r10, %f11; cvt.u64.u32 %rd10, %r10;", OpCase::kF32,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return U(ToInt<int32_t>(std::trunc(AsF32(a)), 0)); }},
    {"rzi_u32_f32", "cvt.rzi.u32.f32 %r10, %f11; cvt.u64.u32 %rd10, %r10;", OpCase::kF32,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return U(ToInt<uint32_t>(std::trunc(AsF32(a)), 0)); }},
    {"rni_s32_f32", "cvt.rni.s32.f32 %r10, %f11; cvt.u64.u32 %rd10, %r10;", OpCase::kF32,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return U(ToInt<int32_t>(std::nearbyint(AsF32(a)), 0)); }},
    {"rmi_s64_f64", "cvt.rmi.s64.f64 %rd10, %fd11;", OpCase::kF64,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return ToInt<int64_t>(std::floor(AsF64(a)), -9.3e18); }},
    {"rn_f32_u64", "cvt.rn.f32.u64 %f10, %rd11; mov.b32 %r10, %f10; cvt.u64.u32 %rd10, %r10;", OpCase::kInt,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return F32(static_cast<float>(a)); }},
    {"rz_f32_s64", "cvt.rz.f32.s64 %f10, %rd11; mov.b32 %r10, %f10; cvt.u64.u32 %rd10, %r10;", OpCase::kInt,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
       float f = static_cast<float>(L(a));
       if (std::fabs(static_cast<double>(f)) > std::fabs(static_cast<double>(L(a))) || (f >= 0x1p63f && L(a) > 0))
         f = std::nextafter(f, 0.0f);
       return F32(f);
     }},
    {"rn_f32_f64", "cvt.rn.f32.f64 %f10, %fd11; mov.b32 %r10, %f10; cvt.u64.u32 %rd10, %r10;", OpCase::kF64,
     [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return F32(static_cast<float>(AsF64(a))); }},
    {"add_rz_then_rp_f64",
     "add.rp.f64 %fd10, %fd11, %fd12; add.rm.f64 %fd9, %fd11, %fd12; setp.ltu.f64 %p1, %fd10, %fd9;"
     " selp.u64 %rd10, 1, 0, %p1; setp.nan.f64 %p2, %fd10, %fd9; selp.u64 %rd10, 0, %rd10, %p2;",
     OpCase::kF64, [](uint64_t, uint64_t, uint64_t) -> uint64_t { return 0; }},
};

class SoftOps : public testing::TestWithParam<Isa> {};

TEST_P(SoftOps, MatchHostArithmetic) {
  for (const OpCase& c : kCases) {
    const std::vector<Row> rows = Triples(c.inputs == OpCase::kInt   ? kInts
                                          : c.inputs == OpCase::kF32 ? Floats32()
                                                                     : Floats64());
    const auto got = Evaluate(GetParam(), c.ptx, rows);
    for (size_t n = 0; n < rows.size(); ++n) {
      ASSERT_EQ(got[n], c.expected(rows[n].a, rows[n].b, rows[n].c))
          << c.name << std::hex << " a=" << rows[n].a << " b=" << rows[n].b << " c=" << rows[n].c;
    }
  }
}

struct ApproxCase {
  const char* op;
  double (*exact)(double);
  double relative;
  double absolute;
  double low;
  double high;
};

// Documented maxima of the PTX ISA ("*.approx").
TEST_P(SoftOps, ApproximationsAreWithinTheirBounds) {
  const ApproxCase cases[] = {
      {"rcp.approx.f32", [](double x) { return 1 / x; }, 0x1p-23, 0, 1e-30, 1e30},
      {"sqrt.approx.f32", [](double x) { return std::sqrt(x); }, 0x1p-23, 0, 1e-30, 1e30},
      {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 0x1p-22, 0, 1e-30, 1e30},
      {"ex2.approx.f32", [](double x) { return std::exp2(x); }, 0x1p-22, 0, -120, 120},
      {"lg2.approx.f32", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22, 1e-30, 1e30},
      {"sin.approx.f32", [](double x) { return std::sin(x); }, 0, 0x1p-20, -6.28, 6.28},
      {"cos.approx.f32", [](double x) { return std::cos(x); }, 0, 0x1p-20, -6.28, 6.28},
      {"tanh.approx.f32", [](double x) { return std::tanh(x); }, 0x1p-11, 0, -5, 5},
  };
  for (const ApproxCase& c : cases) {
    std::vector<Row> rows;
    for (int n = 0; n < 4000; ++n) {
      const double t = (n + 0.5) / 4000;
      const double x = c.low > 0 ? c.low * std::pow(c.high / c.low, t) : c.low + (c.high - c.low) * t;
      rows.push_back({std::bit_cast<uint32_t>(static_cast<float>(x)), 0, 0});
    }
    const auto got =
        Evaluate(GetParam(), std::string(c.op) + " %f10, %f11; mov.b32 %r10, %f10; cvt.u64.u32 %rd10, %r10;", rows);
    for (size_t n = 0; n < rows.size(); ++n) {
      const double exact = c.exact(AsF32(rows[n].a));
      ASSERT_LE(std::fabs(AsF32(got[n]) - exact), std::fabs(exact) * c.relative + c.absolute)
          << c.op << AsF32(rows[n].a);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftOps, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
