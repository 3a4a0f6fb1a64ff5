// SPDX-License-Identifier: Apache-2.0
// Two values in one register, f32 or integers of 16 bits, f32 with operands of 16 bits, and .relu of integers
// (PTX ISA "add", "min", "Mixed Precision Floating Point Instructions").
#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

#define FLOAT_OP(Name, expr)                     \
  struct Name {                                  \
    ALWAYS float Do(float a, float b, float c) { \
      static_cast<void>(c);                      \
      return expr;                               \
    }                                            \
  };
FLOAT_OP(PairAdd, a + b)
FLOAT_OP(PairSub, a - b)
FLOAT_OP(PairMul, a* b)
FLOAT_OP(PairFma, __builtin_fmaf(a, b, c))

// The lanes' pairs follow each other, so that a warp has 64 values to work on.
template <class F, int kOperands>
const Inst* FloatPair(Warp& w, const Inst* i) {
  const auto* a = reinterpret_cast<const float*>(In<uint64_t>(w, i, 1));
  const auto* b = reinterpret_cast<const float*>(In<uint64_t>(w, i, 2));
  const auto* c = kOperands > 2 ? reinterpret_cast<const float*>(In<uint64_t>(w, i, 3)) : a;
  alignas(64) float t[2 * kLanes];
  if (i->flags & kFtz) {
    for (uint32_t n = 0; n < 2 * kLanes; ++n) t[n] = Canonical(Flush(F::Do(Flush(a[n]), Flush(b[n]), Flush(c[n]))));
  } else {
    for (uint32_t n = 0; n < 2 * kLanes; ++n) t[n] = Canonical(F::Do(a[n], b[n], c[n]));
  }
  StoreMasked(Out<uint64_t>(w, i, 0), reinterpret_cast<const uint64_t*>(t), w.mask);
  return i + 1;
}

struct OfHalf {
  ALWAYS float Get(uint32_t v) { return HalfToFloat(v & 0xffffu); }
};
struct OfBfloat {
  ALWAYS float Get(uint32_t v) { return Bits<float>(v << 16); }
};
// The last operand is f32, those before it have 16 bits.
template <class F, class Small, int kOperands>
const Inst* Mixed(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, kOperands);
  const bool sat = i->flags & kSat;
  const auto value = [&](uint32_t l) {
    const float last = Bits<float>(c[l]);
    return F::Do(Small::Get(a[l]), kOperands > 2 ? Small::Get(b[l]) : last, last);
  };
  if (sat) {
    Map<float>(w, i, 0, [&](uint32_t l) { return Saturate(value(l)); });
  } else {
    Map<float>(w, i, 0, [&](uint32_t l) { return Canonical(value(l)); });
  }
  return i + 1;
}

#define INT_OP(Name, expr)  \
  struct Name {             \
    template <class T>      \
    ALWAYS T Do(T a, T b) { \
      return expr;          \
    }                       \
  };
INT_OP(IntAdd, static_cast<T>(a + b))
INT_OP(IntMin, a < b ? a : b)
INT_OP(IntMax, a > b ? a : b)
// Negative results become zero.
template <class F>
struct IntRelu {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const T r = F::template Do<T>(a, b);
    return r > 0 ? r : T(0);
  }
};
template <class F, class T>
const Inst* IntPair(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const auto part = [&](uint32_t l, uint32_t shift) -> uint32_t {
    return static_cast<uint16_t>(F::template Do<T>(static_cast<T>(a[l] >> shift), static_cast<T>(b[l] >> shift)));
  };
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return part(l, 0) | part(l, 16) << 16; });
  return i + 1;
}

}  // namespace

OpRows PackedRows() {
#define MIXED(type, Small)                                                       \
  {"add.f32." type, Mixed<PairAdd, Small, 2>, "daa", kTakesSat | kRounds},       \
      {"sub.f32." type, Mixed<PairSub, Small, 2>, "daa", kTakesSat | kRounds}, { \
    "fma.f32." type, Mixed<PairFma, Small, 3>, "daaa", kTakesSat | kRounds       \
  }
  static const OpRow kRows[] = {
      {"add.f32x2", FloatPair<PairAdd, 2>, "DAA", kTakesFtz | kRounds},
      {"sub.f32x2", FloatPair<PairSub, 2>, "DAA", kTakesFtz | kRounds},
      {"mul.f32x2", FloatPair<PairMul, 2>, "DAA", kTakesFtz | kRounds},
      {"fma.f32x2", FloatPair<PairFma, 3>, "DAAA", kTakesFtz | kRounds},
      MIXED("f16", OfHalf),
      MIXED("bf16", OfBfloat),
      {"add.u16x2", IntPair<IntAdd, uint16_t>, "daa"},
      {"add.s16x2", IntPair<IntAdd, uint16_t>, "daa"},
      {"min.u16x2", IntPair<IntMin, uint16_t>, "daa"},
      {"max.u16x2", IntPair<IntMax, uint16_t>, "daa"},
      {"min.s16x2", IntPair<IntMin, int16_t>, "daa"},
      {"max.s16x2", IntPair<IntMax, int16_t>, "daa"},
      {"min.relu.s16x2", IntPair<IntRelu<IntMin>, int16_t>, "daa"},
      {"max.relu.s16x2", IntPair<IntRelu<IntMax>, int16_t>, "daa"},
      {"min.relu.s32", BinaryOf<IntRelu<IntMin>>::Run<int32_t>, "daa"},
      {"max.relu.s32", BinaryOf<IntRelu<IntMax>>::Run<int32_t>, "daa"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
