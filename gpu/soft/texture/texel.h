// SPDX-License-Identifier: Apache-2.0
// Texels in memory and as what kernels see: four channels of 32 bits, floats or integers.
#pragma once

#include <cstring>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/number/half.h"
#include "gpu/soft/texture/texture.h"

namespace vgpud::soft::VGPUD_ISA {

struct Texel {
  uint32_t channel[4];
};

// The arena, and which of its pages are there.
struct TexelMemory {
  std::byte* arena;
  uint64_t bytes;
  const uint8_t* pages;

  // nullptr when it is not mapped.
  std::byte* At(uint64_t offset, uint32_t size) const {
    return offset < bytes && size <= bytes - offset && pages[offset >> kPageShift] != 0 ? arena + offset : nullptr;
  }
};

template <class T>
ALWAYS T LoadAs(const std::byte* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

// One channel as it is read: `scaled` integers become floats (CUDA C++ programming guide, "Texture Object API").
ALWAYS uint32_t ReadChannel(TexelFormat format, bool scaled, const std::byte* at) {
  const auto unit = [](float v, float most) { return Bits<uint32_t>(v / most < -1.0f ? -1.0f : v / most); };
  switch (format) {
    case TexelFormat::kU8: {
      const auto v = LoadAs<uint8_t>(at);
      return scaled ? unit(v, 255.0f) : v;
    }
    case TexelFormat::kS8: {
      const auto v = LoadAs<int8_t>(at);
      return scaled ? unit(v, 127.0f) : static_cast<uint32_t>(v);
    }
    case TexelFormat::kU16: {
      const auto v = LoadAs<uint16_t>(at);
      return scaled ? unit(v, 65535.0f) : v;
    }
    case TexelFormat::kS16: {
      const auto v = LoadAs<int16_t>(at);
      return scaled ? unit(v, 32767.0f) : static_cast<uint32_t>(v);
    }
    case TexelFormat::kHalf:
      return Bits<uint32_t>(HalfToFloat(LoadAs<uint16_t>(at)));
    case TexelFormat::kU32:
    case TexelFormat::kS32:
    case TexelFormat::kFloat:
      break;
  }
  return LoadAs<uint32_t>(at);
}

// The other way, for formatted surface stores: integers are clamped to what the channel holds.
ALWAYS void WriteChannel(TexelFormat format, uint32_t value, std::byte* at) {
  const auto s = static_cast<int32_t>(value);
  const auto clamp = [](int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; };
  uint32_t bits = value;
  uint32_t bytes = 4;
  switch (format) {
    case TexelFormat::kU8:
      bits = static_cast<uint32_t>(clamp(value, 0, 255)), bytes = 1;
      break;
    case TexelFormat::kS8:
      bits = static_cast<uint32_t>(clamp(s, -128, 127)), bytes = 1;
      break;
    case TexelFormat::kU16:
      bits = static_cast<uint32_t>(clamp(value, 0, 65535)), bytes = 2;
      break;
    case TexelFormat::kS16:
      bits = static_cast<uint32_t>(clamp(s, -32768, 32767)), bytes = 2;
      break;
    case TexelFormat::kHalf:
      bits = FloatToHalf(Bits<float>(value)), bytes = 2;
      break;
    case TexelFormat::kU32:
    case TexelFormat::kS32:
    case TexelFormat::kFloat:
      break;
  }
  __builtin_memcpy(at, &bits, bytes);
}

// sRGB to linear (IEC 61966-2-1).
ALWAYS float LinearOfSrgb(float v) { return v <= 0.04045f ? v / 12.92f : __builtin_powf((v + 0.055f) / 1.055f, 2.4f); }

// What a texture reads at `at`. Channels that it has not are 0, the last one 1.
ALWAYS Texel ReadTexel(const Texture& t, const std::byte* at) {
  Texel texel{{0, 0, 0, t.as_float ? 0x3f800000u : 1u}};
  for (uint32_t c = 0; c < t.desc.channels; ++c)
    texel.channel[c] = ReadChannel(t.format, t.scaled, at + c * t.channel_bytes);
  if (t.desc.srgb && t.scaled && t.format == TexelFormat::kU8) {
    for (uint32_t c = 0; c < t.desc.channels && c < 3; ++c)
      texel.channel[c] = Bits<uint32_t>(LinearOfSrgb(Bits<float>(texel.channel[c])));
  }
  return texel;
}

}  // namespace vgpud::soft::VGPUD_ISA
