// SPDX-License-Identifier: Apache-2.0
// Errors of the approximate operations over dense sweeps of their inputs, and conversions of 16-bit floats over all of
// them. One f32 in 4099 is taken, or one in GOLDEN_SWEEP; 1 = all of them, some minutes for each operation.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// Runs `op` on the f32 values whose bits are first, first + step, ...; `check` sees input and output.
class Sweep {
 public:
  // `code` gives %f2 from %f1.
  Sweep(Isa isa, const std::string& code) : machine_(isa, 64 << 20) {
    const Outcome loaded = machine_.LoadBody(".param .u64 out, .param .u32 first, .param .u32 step",
                                             R"(
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [first];
    ld.param.u32 %r2, [step];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r3, %r3, 1024, %r4;
    mad.lo.u32 %r5, %r3, %r2, %r1;
    mov.b32 %f1, %r5;
    )" + code + R"(
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.f32 [%rd1], %f2;)");
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    out_ = machine_.Alloc(kBatch * 4);
  }
  template <class Check>
  void Run(uint32_t step, Check check) {
    for (uint64_t first = 0; first < uint64_t{1} << 32; first += uint64_t{kBatch} * step) {
      const Outcome ran = machine_.Run("k", {{kBatch / 1024, 1, 1}, {1024, 1, 1}, 0},
                                       Params().Add(out_).Add(static_cast<uint32_t>(first)).Add(step));
      ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
      const auto got = machine_.Download<float>(out_, kBatch);
      for (uint32_t n = 0; n < kBatch; ++n) {
        const uint64_t bits = first + uint64_t{n} * step;
        if (bits >> 32 != 0) return;
        check(std::bit_cast<float>(static_cast<uint32_t>(bits)), got[n]);
      }
    }
  }

 private:
  static constexpr uint32_t kBatch = 1 << 16;
  SoftMachine machine_;
  GpuVa out_;
};

struct Approximation {
  const char* op;
  long double (*exact)(long double);
  // What the PTX ISA promises: the larger of the two, for inputs in [low, high].
  double relative;
  double absolute;
  double low;
  double high;
};

constexpr double kMost = std::numeric_limits<float>::max();
constexpr double kLeast = std::numeric_limits<float>::min();
// Results that are subnormal numbers have half of their last place as an error at least.
constexpr double kHalfSubnormal = 0x1p-150;
// Rounded twice they may be a whole one away.
constexpr double kSubnormal = 0x1p-149;
constexpr double kRsqrt = 0x1.125fbee250669p-23;  // 2^-22.9
constexpr double kSine = 0x1.6a09e667f3bcdp-21;   // 2^-20.5
const Approximation kApproximations[] = {
    {"rcp.approx.f32", [](long double x) { return 1 / x; }, 0x1p-23, kHalfSubnormal, -kMost, kMost},
    {"sqrt.approx.f32", [](long double x) { return std::sqrt(x); }, 0x1p-23, 0, 0, kMost},
    {"rsqrt.approx.f32", [](long double x) { return 1 / std::sqrt(x); }, kRsqrt, 0, 0, kMost},
    {"ex2.approx.f32", [](long double x) { return std::exp2(x); }, 0x1p-22, kSubnormal, -kMost, kMost},
    {"lg2.approx.f32", [](long double x) { return std::log2(x); }, 0x1p-22, 0, 0, 0.5},
    {"lg2.approx.f32", [](long double x) { return std::log2(x); }, 0, 0x1p-22, 0.5, 2},
    {"lg2.approx.f32", [](long double x) { return std::log2(x); }, 0x1p-22, 0, 2, kMost},
    {"sin.approx.f32", [](long double x) { return std::sin(x); }, 0, kSine, -6.283185307, 6.283185307},
    {"cos.approx.f32", [](long double x) { return std::cos(x); }, 0, kSine, -6.283185307, 6.283185307},
    {"tanh.approx.f32", [](long double x) { return std::tanh(x); }, 0x1p-11, kHalfSubnormal, -kMost, kMost},
    {"rcp.approx.ftz.f32", [](long double x) { return 1 / x; }, 0x1p-23, kLeast, -kMost, kMost},
    {"rsqrt.approx.ftz.f32", [](long double x) { return 1 / std::sqrt(x); }, kRsqrt, 0, kLeast, kMost},
    {"ex2.approx.ftz.f32", [](long double x) { return std::exp2(x); }, 0x1p-22, kLeast, -kMost, kMost},
    {"lg2.approx.ftz.f32", [](long double x) { return std::log2(x); }, 0x1p-22, 0x1p-22, kLeast, kMost},
};

uint32_t Step() {
  const char* step = std::getenv("GOLDEN_SWEEP");
  return step == nullptr ? 4099 : std::max(1u, static_cast<uint32_t>(std::strtoul(step, nullptr, 10)));
}

TEST(Sweep, ApproximationsKeepTheirBounds) {
  for (const Approximation& a : kApproximations) {
    Sweep sweep(BestIsa(), std::string(a.op) + " %f2, %f1;");
    double worst = 0;  // as a part of what is allowed
    float at = 0;
    size_t count = 0;
    const bool ftz = std::string_view(a.op).find("ftz") != std::string_view::npos;
    sweep.Run(Step(), [&](float x, float got) {
      if (!(static_cast<double>(x) >= a.low && static_cast<double>(x) <= a.high)) return;
      if (ftz && std::fabs(x) < std::numeric_limits<float>::min()) return;
      ++count;
      const long double exact = a.exact(static_cast<long double>(x));
      if (std::fabs(exact) > static_cast<long double>(kMost) || exact != exact) {
        ASSERT_EQ(got, static_cast<float>(exact)) << a.op << " of " << x;
        return;
      }
      const auto error = static_cast<double>(std::fabs(static_cast<long double>(got) - exact));
      const double allowed = std::max(a.relative * static_cast<double>(std::fabs(exact)), a.absolute);
      const double part = error == 0 ? 0 : error / allowed;
      if (part > worst) {
        worst = part;
        at = x;
      }
    });
    EXPECT_LE(worst, 1) << a.op << " of " << at;
    EXPECT_GT(count, 1000u) << a.op;
    std::cout << a.op << " in [" << a.low << ", " << a.high << "]: " << count << " values, at most " << worst
              << " of the allowed error (at " << at << ")\n";
  }
}

// div.approx (of divisors in [2^-126, 2^126]) and div.full: 2 units of the last place.
TEST(Sweep, DivisionsKeepTheirBounds) {
  for (const std::string op : {"div.approx", "div.full"}) {
    double worst = 0;
    for (const float numerator : {1.0000001f, 3.1415927f, -123.456f, 1e-30f}) {
      Sweep sweep(BestIsa(), "mov.b32 %f3, " + std::to_string(std::bit_cast<uint32_t>(numerator)) + ";\n" + op +
                                 ".f32 %f2, %f3, %f1;");
      sweep.Run(4 * Step(), [&](float x, float got) {
        const double size = static_cast<double>(std::fabs(x));
        if (!(size >= 0x1p-126 && size <= 0x1p126)) return;
        const double exact = static_cast<double>(numerator) / static_cast<double>(x);
        if (std::fabs(exact) > kMost) return;
        const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
        worst = std::max(worst, std::fabs(static_cast<double>(got) - exact) / ulp);
      });
    }
    EXPECT_LE(worst, 2) << op;
    std::cout << op << ".f32: at most " << worst << " units of the last place, allowed 2\n";
  }
}

// f16 and bf16 to f32 and back: all of them, unchanged.
TEST(Sweep, SixteenBitFloatsSurviveF32) {
  const struct {
    std::string type;
    uint32_t infinity;
  } kTypes[] = {{"f16", 0x7c00}, {"bf16", 0x7f80}};
  for (const auto& t : kTypes) {
    Sweep sweep(BestIsa(), "mov.b32 %r6, %f1; cvt.u16.u32 %rs1, %r6; cvt.f32." + t.type + " %f3, %rs1; cvt.rn." +
                               t.type + ".f32 %rs2, %f3; cvt.u32.u16 %r7, %rs2; mov.b32 %f2, %r7;");
    size_t count = 0;
    sweep.Run(1 << 16 | 1, [&](float x, float got) {
      const uint32_t bits = std::bit_cast<uint32_t>(x) & 0xffff;
      const bool nan = (bits & 0x7fff) > t.infinity;
      ASSERT_EQ(std::bit_cast<uint32_t>(got), nan ? 0x7fffu : bits) << t.type;
      ++count;
    });
    EXPECT_EQ(count, 65536u) << t.type;
  }
}

}  // namespace
}  // namespace vgpud::soft
