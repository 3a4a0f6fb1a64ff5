// SPDX-License-Identifier: Apache-2.0
// 2^x, log2, sine and cosine of f32 without branches and calls, so that a loop over lanes becomes vectors. No fused
// operations: every instruction set gives the same bits. Errors, with room below what the PTX ISA allows: checked over
// all f32 by soft_sweep_test. Coefficients: interpolation at Chebyshev nodes, rounded to f32.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

// 2^x = 2^n * 2^r, n whole, |r| <= 1/2.
ALWAYS float Power2(float x) {
  const float finite = x != x ? 0.0f : x;
  const float low = finite < -151.0f ? -151.0f : finite;
  const float in = low > 129.0f ? 129.0f : low;
  const float n = __builtin_rintf(in);
  const float r = in - n;
  float q = 0x1.44138ap-13f;
  q = q * r + 0x1.5f0890p-10f;
  q = q * r + 0x1.3b2a54p-7f;
  q = q * r + 0x1.c6af6cp-5f;
  q = q * r + 0x1.ebfbe0p-3f;
  q = q * r + 0x1.62e430p-1f;
  const float p = q * r + 1.0f;
  // In two steps: 2^n alone may be no f32.
  const auto whole = static_cast<int32_t>(n);
  const int32_t half = whole >> 1;
  const float result = p * Bits<float>(static_cast<uint32_t>(half + 127) << 23) *
                       Bits<float>(static_cast<uint32_t>(whole - half + 127) << 23);
  return x != x ? x : result;
}

// log2(x) = e + log2(m), m in [sqrt(1/2), sqrt(2)); log2(m) = 2 atanh((m - 1) / (m + 1)) / ln 2.
ALWAYS float Logarithm2(float x) {
  const bool small = x < 0x1p-126f;
  const auto bits = Bits<uint32_t>(small ? x * 0x1p24f : x);
  const uint32_t above = bits - 0x3f3504f3;  // sqrt(1/2)
  const float m = Bits<float>((above & 0x7fffff) + 0x3f3504f3);
  const auto e = static_cast<float>(static_cast<int32_t>(above) >> 23) - (small ? 24.0f : 0.0f);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float u = s * s;
  float q = 0x1.5ce55ap-2f;
  q = q * u + 0x1.a58db8p-2f;
  q = q * u + 0x1.277780p-1f;
  q = q * u + 0x1.ec709ep-1f;
  q = q * u + 0x1.715476p+1f;
  const float result = q * s + e;
  const float infinity = __builtin_inff();
  const float positive = x == infinity ? x : result;
  return x > 0 ? positive : x == 0 ? -infinity : __builtin_nanf("");
}

// The sine of x + quarters * pi/2. Far beyond 2^20 only the size of the result is right.
ALWAYS float Sine(float x, double quarters) {
  const auto wide = static_cast<double>(x);
  const double n = __builtin_rint(wide * 0x1.45f306dc9c883p-1);
  const auto reduced = static_cast<float>(wide - n * 0x1.921fb54442d18p+0);
  const float low = reduced < -1.0f ? -1.0f : reduced;
  const float r = low > 1.0f ? 1.0f : low;
  const double turn = (n + quarters) * 0.25;
  const double part = turn - __builtin_floor(turn);  // 0, 1/4, 1/2, 3/4 of a turn
  const float u = r * r;
  const float sine = r + r * u * (-0x1.555552p-3f + u * (0x1.110c28p-7f + u * -0x1.9ac9b0p-13f));
  const float cosine = 1.0f - 0.5f * u + u * u * (0x1.555554p-5f + u * (-0x1.6c12d2p-10f + u * 0x1.9bd89cp-16f));
  const bool odd = part == 0.25 || part == 0.75;
  const float result = odd ? cosine : sine;
  return part >= 0.5 ? -result : result;
}

}  // namespace vgpud::soft::VGPUD_ISA
