// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/texture/sampler.h"

#include "gpu/soft/texture/sampler_axis.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

using Shape = TextureDesc::Shape;

// The two neighbours along one axis and how much the second counts, in 1/256.
struct Neighbours {
  int32_t index[2];
  float weight[2];
};

Neighbours Along(const Texture& t, uint32_t axis, float x, uint32_t extent, bool linear) {
  const Address mode = ModeOf(t, axis);
  const float place = InTexels(x, mode, IsNormalized(t), extent);
  if (!linear) return {{Resolve(Nearest(place), mode, extent), 0}, {1, 0}};
  float weight;
  const int32_t low = LowerOf<int64_t>(place, weight);
  return {{Resolve(low, mode, extent), Resolve(low + 1, mode, extent)}, {1.0f - weight, weight}};
}

struct Reader {
  const Texture& texture;
  const TexelMemory& memory;
  uint64_t* missing;

  bool Read(const TextureLevel& level, const int32_t (&at)[3], uint32_t slice, Texel* out) const {
    if (at[0] == kBorder || at[1] == kBorder || at[2] == kBorder) {
      __builtin_memcpy(out->channel, texture.desc.border, sizeof out->channel);
      return true;
    }
    const uint64_t offset = level.offset + static_cast<uint64_t>(at[0]) * texture.texel_bytes +
                            static_cast<uint64_t>(at[1]) * level.pitch +
                            (uint64_t{slice} + static_cast<uint64_t>(at[2])) * level.slice;
    const std::byte* from = memory.At(offset, texture.texel_bytes);
    if (from == nullptr) {
      *missing = offset;
      return false;
    }
    *out = ReadTexel(texture, from);
    return true;
  }
};

bool SampleLevel(const Reader& reader, const float (&at)[3], uint32_t slice, size_t number, Texel* out) {
  const Texture& t = reader.texture;
  const TextureLevel& level = t.levels[number];
  const uint32_t extents[3] = {level.width, level.height, level.depth};
  const uint32_t axes = AxesOf(t);
  Neighbours near[3] = {{{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}};
  for (uint32_t a = 0; a < axes; ++a) near[a] = Along(t, a, at[a], extents[a], t.desc.linear);
  if (!t.desc.linear) return reader.Read(level, {near[0].index[0], near[1].index[0], near[2].index[0]}, slice, out);
  float sum[4] = {0, 0, 0, 0};
  for (uint32_t corner = 0; corner < (1u << axes); ++corner) {
    const uint32_t x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
    const float weight = near[0].weight[x] * near[1].weight[y] * near[2].weight[z];
    if (weight == 0) continue;
    Texel texel;
    if (!reader.Read(level, {near[0].index[x], near[1].index[y], near[2].index[z]}, slice, &texel)) return false;
    for (uint32_t c = 0; c < 4; ++c) sum[c] += weight * Bits<float>(texel.channel[c]);
  }
  for (uint32_t c = 0; c < 4; ++c) out->channel[c] = Bits<uint32_t>(sum[c]);
  return true;
}

// The faces of a cube (programming guide, "Cubemap Textures"): which axis m lies along, and of which s and t are made.
struct Face {
  uint8_t m, s, t;
  float m_sign, s_sign, t_sign;
};
constexpr Face kFaces[6] = {{0, 2, 1, 1, -1, -1}, {0, 2, 1, -1, 1, -1}, {1, 0, 2, 1, 1, 1},
                            {1, 0, 2, -1, 1, -1}, {2, 0, 1, 1, 1, -1},  {2, 0, 1, -1, -1, -1}};

// The one that a direction meets.
uint32_t FaceOf(const float (&at)[3]) {
  const float ax = __builtin_fabsf(at[0]), ay = __builtin_fabsf(at[1]), az = __builtin_fabsf(at[2]);
  if (ax >= ay && ax >= az) return at[0] >= 0 ? 0 : 1;
  if (ay >= az) return at[1] >= 0 ? 2 : 3;
  return at[2] >= 0 ? 4 : 5;
}

// Where it meets it instead of the direction; returns the face.
uint32_t ToFace(float (&at)[3]) {
  const uint32_t number = FaceOf(at);
  const Face& face = kFaces[number];
  const float m = __builtin_fabsf(at[face.m]), s = face.s_sign * at[face.s], t = face.t_sign * at[face.t];
  at[0] = (s / m + 1.0f) * 0.5f;
  at[1] = (t / m + 1.0f) * 0.5f;
  at[2] = 0;
  return number;
}

// How fast the place on the face changes with the direction.
void GradientOnFace(const float (&at)[3], const float (&change)[3], float (&out)[3]) {
  const Face& face = kFaces[FaceOf(at)];
  const float m = __builtin_fabsf(at[face.m]), s = face.s_sign * at[face.s], t = face.t_sign * at[face.t];
  const float dm = face.m_sign * change[face.m], ds = face.s_sign * change[face.s], dt = face.t_sign * change[face.t];
  out[0] = (ds * m - s * dm) / (m * m) * 0.5f;
  out[1] = (dt * m - t * dm) / (m * m) * 0.5f;
  out[2] = 0;
}

}  // namespace

uint32_t SliceOf(const Texture& t, uint32_t layer, float (&at)[3]) {
  const bool cube = t.desc.shape == Shape::kCube;
  const uint32_t layers = cube ? t.slices / 6 : t.slices;
  // A layer index is an unsigned number; what is beyond the last is the last.
  const uint32_t index = layer < layers ? layer : layers - 1;
  return cube ? index * 6 + ToFace(at) : index;
}

bool Sample(const Texture& t, const TexelMemory& memory, const SamplePoint& point, Texel* out, uint64_t* missing) {
  const Reader reader{t, memory, missing};
  float at[3] = {point.at[0], point.at[1], point.at[2]};
  const uint32_t slice = SliceOf(t, point.layer, at);
  if (t.levels.size() == 1) return SampleLevel(reader, at, slice, 0, out);
  const auto last = static_cast<float>(t.levels.size() - 1);
  float lod = point.lod + t.desc.lod_bias;
  lod = lod > t.desc.lod_min ? lod : t.desc.lod_min;
  lod = lod < t.desc.lod_max ? lod : t.desc.lod_max;
  lod = lod > 0 ? lod : 0;
  lod = lod < last ? lod : last;
  if (!t.desc.mip_linear) return SampleLevel(reader, at, slice, static_cast<size_t>(lod + 0.5f), out);
  const auto steps = static_cast<uint32_t>(lod * 256.0f + 0.5f);
  const size_t low = steps >> 8;
  const float weight = static_cast<float>(steps & 255) / 256.0f;
  if (!SampleLevel(reader, at, slice, low, out)) return false;
  if (weight == 0 || !t.as_float) return true;
  Texel next;
  if (!SampleLevel(reader, at, slice, low + 1, &next)) return false;
  for (uint32_t c = 0; c < 4; ++c)
    out->channel[c] =
        Bits<uint32_t>((1.0f - weight) * Bits<float>(out->channel[c]) + weight * Bits<float>(next.channel[c]));
  return true;
}

bool FetchTexel(const Texture& t, const TexelMemory& memory, const int32_t (&at)[3], uint32_t layer, int32_t lod,
                Texel* out, uint64_t* missing) {
  const auto levels = static_cast<int32_t>(t.levels.size());
  const TextureLevel& level = t.levels[static_cast<size_t>(lod <= 0 ? 0 : lod < levels ? lod : levels - 1)];
  const uint32_t extents[3] = {level.width, level.height, level.depth};
  const uint32_t axes = AxesOf(t);
  int32_t place[3] = {0, 0, 0};
  for (uint32_t a = 0; a < axes; ++a) {
    if (t.desc.shape == Shape::kBuffer && (at[a] < 0 || static_cast<uint32_t>(at[a]) >= extents[a])) {
      // Beyond linear memory everything is zero.
      *out = {};
      return true;
    }
    place[a] = Resolve(at[a], IndexModeOf(t, a), extents[a]);
  }
  const uint32_t slice = layer < t.slices ? layer : t.slices - 1;
  return Reader{t, memory, missing}.Read(level, place, slice, out);
}

bool Gather(const Texture& t, const TexelMemory& memory, const SamplePoint& point, uint32_t component, Texel* out,
            uint64_t* missing) {
  const Reader reader{t, memory, missing};
  float at[3] = {point.at[0], point.at[1], point.at[2]};
  const uint32_t slice = SliceOf(t, point.layer, at);
  const TextureLevel& level = t.levels[0];
  const Neighbours x = Along(t, 0, at[0], level.width, true);
  const Neighbours y = AxesOf(t) > 1 ? Along(t, 1, at[1], level.height, true) : Neighbours{{0, 0}, {1, 0}};
  constexpr uint8_t kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  for (uint32_t n = 0; n < 4; ++n) {
    Texel texel;
    if (!reader.Read(level, {x.index[kOrder[n][0]], y.index[kOrder[n][1]], 0}, slice, &texel)) return false;
    out->channel[n] = texel.channel[component];
  }
  return true;
}

float LodOfGradients(const Texture& t, const SamplePoint& point, const float (&dx)[3], const float (&dy)[3]) {
  const TextureLevel& level = t.levels[0];
  const float extents[3] = {static_cast<float>(level.width), static_cast<float>(level.height),
                            static_cast<float>(level.depth)};
  const bool cube = t.desc.shape == Shape::kCube;
  const float(*const changes[2])[3] = {&dx, &dy};
  float most = 0;
  for (const auto* change : changes) {
    float step[3] = {(*change)[0], (*change)[1], (*change)[2]};
    if (cube) GradientOnFace(point.at, *change, step);
    float length = 0;
    for (uint32_t a = 0; a < AxesOf(t); ++a) {
      const float texels = step[a] * (t.desc.normalized || cube ? extents[a] : 1.0f);
      length += texels * texels;
    }
    most = length > most ? length : most;
  }
  return most > 0 ? 0.5f * __builtin_log2f(most) : 0;
}

}  // namespace vgpud::soft::VGPUD_ISA
