// SPDX-License-Identifier: Apache-2.0
// cvt.rs, stochastic rounding (PTX ISA "cvt"): random bits are added to the highest of the bits that the result has no
// room for, and a carry rounds it away from zero. Pairs have as many random bits for each value as they leave out of a
// normal one, the first value those from bit 16 on; of four values each has a byte of them, the first the highest.
#include "gpu/soft/number/narrow.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

using Whole16 = Narrow<5, 10, 0x7bff, 0x7fff>;  // binary16
using Brain16 = Narrow<8, 7, 0x7f7f, 0x7fff>;   // bfloat16

// Result of `v` with the lowest kRandom bits of `random`. Without kSatfinite what is too large becomes infinity.
template <class F, uint32_t kRandom, bool kRelu, bool kSatfinite>
ALWAYS uint32_t Stochastic(float v, uint32_t random) {
  const auto bits = Bits<uint32_t>(v);
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return F::kNan;
  if (kRelu && bits >> 31 != 0) return 0;
  constexpr uint32_t kLowest = 128 - F::kBias;  // the exponent, as f32 has it, of the smallest normal value
  // So many bits are left out that the random ones are above all that there are.
  constexpr uint32_t kMostShift = 24 + kRandom + 1;
  const uint32_t own = size >> 23 != 0 ? size >> 23 : 1;
  const uint32_t exponent = own > kLowest ? own : kLowest;
  const uint64_t significand = (size & 0x7fffffu) | (size >> 23 != 0 ? 0x800000u : 0u);
  const uint32_t wanted = 23 - F::kFraction + (exponent - own);
  const uint32_t shift = wanted < kMostShift ? wanted : kMostShift;
  const uint64_t drawn = random & ((1u << kRandom) - 1);
  const uint64_t code = ((significand + (drawn << (shift - kRandom))) >> shift) +
                        (static_cast<uint64_t>(exponent - kLowest) << F::kFraction);
  constexpr uint32_t kMost = F::kLargest + (kSatfinite ? 0 : 1);
  return static_cast<uint32_t>(code < kMost ? code : kMost) | (bits >> 31) * F::kSign;
}

template <class F, uint32_t kRandom, bool kRelu, bool kSatfinite>
const Inst* Pair(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  const float* b = In<float>(w, i, 2);
  const uint32_t* random = In<uint32_t>(w, i, 3);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    return Stochastic<F, kRandom, kRelu, kSatfinite>(a[l], random[l] >> 16) << 16 |
           Stochastic<F, kRandom, kRelu, kSatfinite>(b[l], random[l]);
  });
  return i + 1;
}

// Operands: result 0, random bits 1, and the four values beside them.
template <class F, bool kRelu>
const Inst* Four(Warp& w, const Inst* i) {
  constexpr uint32_t kDistance = F::kBits == 4 ? 4 : 8;
  const uint32_t* random = In<uint32_t>(w, i, 1);
  const float* values[4];
  for (uint32_t n = 0; n < 4; ++n) {
    const ExtraOperand& o = w.extra[i->offset[kExtraOperand] + n];
    values[n] = reinterpret_cast<const float*>(w.base[o.base] + o.offset);
  }
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = 0;
    for (uint32_t n = 0; n < 4; ++n)
      r = r << kDistance | Stochastic<F, 8, kRelu, true>(values[n][l], random[l] >> (8 * (3 - n)));
    return r;
  });
  return i + 1;
}

}  // namespace

OpRows StochasticRows() {
#define PAIR(type, F, kRandom)                                                  \
  {"cvt.rs." type ".f32", Pair<F, kRandom, false, false>, "daaa"},              \
      {"cvt.rs.satfinite." type ".f32", Pair<F, kRandom, false, true>, "daaa"}, \
      {"cvt.rs.relu." type ".f32", Pair<F, kRandom, true, false>, "daaa"}, {    \
    "cvt.rs.relu.satfinite." type ".f32", Pair<F, kRandom, true, true>, "daaa"  \
  }
#define FOUR(type, F) \
  {"@cvt.rs.satfinite." type ".f32", Four<F, false>, ""}, { "@cvt.rs.relu.satfinite." type ".f32", Four<F, true>, "" }
  static const OpRow kRows[] = {
      PAIR("f16x2", Whole16, 13), PAIR("bf16x2", Brain16, 16), FOUR("e4m3x4", E4m3), FOUR("e5m2x4", E5m2),
      FOUR("e3m2x4", E3m2),       FOUR("e2m3x4", E2m3),        FOUR("e2m1x4", E2m1),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
