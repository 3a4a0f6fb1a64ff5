// SPDX-License-Identifier: Apache-2.0
// Coordinates along one axis of a texture (CUDA C++ programming guide, "Texture Fetching"): where a coordinate is,
// which texels are next to it and how much they count. Without branches where modes are constants, so that loops over
// lanes become vectors.
#pragma once

#include "gpu/soft/texture/texel.h"

namespace vgpud::soft::VGPUD_ISA {

using Address = TextureDesc::Address;

inline constexpr int32_t kBorder = -1;

ALWAYS uint32_t AxesOf(const Texture& t) {
  constexpr uint32_t kAxes[] = {1, 1, 2, 3, 2};
  return kAxes[static_cast<size_t>(t.desc.shape)];
}

ALWAYS bool IsNormalized(const Texture& t) { return t.desc.normalized || t.desc.shape == TextureDesc::Shape::kCube; }

// Of fetches with floating point coordinates.
ALWAYS Address ModeOf(const Texture& t, uint32_t axis) {
  if (t.desc.shape == TextureDesc::Shape::kCube) return Address::kClamp;
  const Address mode = t.desc.address[axis];
  // Wrap and mirror are defined for normalised coordinates only; otherwise the edge is repeated.
  if (!t.desc.normalized && (mode == Address::kWrap || mode == Address::kMirror)) return Address::kClamp;
  return mode;
}

// Of fetches with integer coordinates.
ALWAYS Address IndexModeOf(const Texture& t, uint32_t axis) {
  return t.desc.address[axis] == Address::kBorder ? Address::kBorder : Address::kClamp;
}

// A coordinate in texels, not further outside than filtering can see: -2 to extent + 2, of wrap and mirror 0 to extent.
ALWAYS float InTexels(float x, Address mode, bool normalized, uint32_t extent) {
  const auto n = static_cast<float>(extent);
  if (normalized) {
    const float whole = __builtin_floorf(x);
    if (mode == Address::kWrap) x -= whole;
    if (mode == Address::kMirror) {
      const bool odd = whole * 0.5f != __builtin_floorf(whole * 0.5f);
      const float part = x - whole;
      x = odd ? 1.0f - part : part;
    }
    x *= n;
  }
  float place = x < n + 2.0f ? x : n + 2.0f;
  place = x > -2.0f ? place : -2.0f;
  return x != x ? 0.0f : place;
}

// The texel that stands for index `i`: kBorder, or 0 to extent - 1. With wrap `i` is at most one outside.
ALWAYS int32_t Resolve(int32_t i, Address mode, uint32_t extent) {
  const auto n = static_cast<int32_t>(extent);
  if (mode == Address::kClamp || mode == Address::kMirror) {
    const int32_t low = i > 0 ? i : 0;
    return low < n ? low : n - 1;
  }
  const int32_t below = mode == Address::kWrap ? i + n : kBorder;
  const int32_t above = mode == Address::kWrap ? i - n : kBorder;
  return i < 0 ? below : i < n ? i : above;
}

ALWAYS int32_t Nearest(float place) { return static_cast<int32_t>(__builtin_floorf(place)); }

// The lower of the two texels that are blended at `place`, and how much the upper counts, in 9-bit fixed point with 8
// bits of fraction: place - 1/2 rounded to 1/256. `Steps` holds 256 times the extent. Exact: a fraction that is rounded
// is not near 1/2.
template <class Steps>
ALWAYS int32_t LowerOf(float place, float& weight) {
  const float fine = place * 256.0f;
  const float whole = __builtin_floorf(fine);
  const Steps steps = static_cast<Steps>(whole) + (fine - whole >= 0.5f ? 1 - 128 : -128);
  weight = static_cast<float>(static_cast<int32_t>(steps & 255)) / 256.0f;
  return static_cast<int32_t>(steps >> 8);
}

}  // namespace vgpud::soft::VGPUD_ISA
