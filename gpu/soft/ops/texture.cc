// SPDX-License-Identifier: Apache-2.0
// tex, tld4, txq and suq (PTX ISA "Texture Instructions"). Sources: handle, layer if there is one, coordinates, then
// the level of detail or both gradients.
#include "gpu/soft/ops/texture.h"

#include "gpu/soft/texture/sampler_lanes.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Where the lanes' coordinates are.
struct Coordinates {
  const uint32_t* layer = nullptr;
  const uint32_t* at[3] = {};
  uint32_t next = 1;  // source behind them

  Coordinates(const Warp& w, const Inst* i, const TextureForm& form) {
    if (form.layered) layer = SourceOf<uint32_t>(w, i, next++);
    for (uint32_t a = 0; a < form.axes; ++a) at[a] = SourceOf<uint32_t>(w, i, next++);
  }
  uint32_t Layer(uint32_t lane) const { return layer != nullptr ? layer[lane] : 0; }
  SamplePoint Point(uint32_t lane) const {
    SamplePoint point;
    for (uint32_t a = 0; a < 3; ++a) point.at[a] = at[a] != nullptr ? Bits<float>(at[a][lane]) : 0.0f;
    point.layer = Layer(lane);
    return point;
  }
};

// All lanes at once, if they name the same texture and it is one of those. False: nothing has happened.
bool TextureForWarp(Warp& w, const Inst* i, const TextureForm& form, const TexelMemory& memory,
                    const Coordinates& coordinates, uint32_t* const (&out)[4]) {
  const uint64_t* handles = SourceOf<uint64_t>(w, i, 0);
  const uint64_t first = handles[__builtin_ctz(w.mask)];
  uint64_t others = 0;
  for (uint32_t l = 0; l < kLanes; ++l) others |= (w.mask >> l & 1) != 0 ? handles[l] ^ first : 0;
  if (others != 0) return false;
  const Texture* t = w.grid->device().textures.Find(first);
  if (t == nullptr || t->desc.surface) return false;
  const LanePoints points{w.mask, {coordinates.at[0], coordinates.at[1], coordinates.at[2]}, coordinates.layer};
  LaneTexels texels;
  if (!(form.integer ? FetchLanes : SampleLanes)(*t, memory, points, texels)) return false;
  for (int c = 0; c < 4; ++c) StoreMasked(out[c], texels.channel[c], w.mask);
  return true;
}

// The texel that read(lane, texture, &texel, &missing) gives for each lane; its false is a fault at `missing`.
template <class F>
ALWAYS const Inst* ReadTexels(Warp& w, const Inst* i, const TextureForm& form, uint32_t* const (&out)[4], F read) {
  const bool done = ForTexturesOfLanes(w, i, false, [&](uint32_t lane, const Texture& t) {
    Texel texel;
    uint64_t missing = 0;
    if (!read(lane, t, &texel, &missing)) {
      RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, missing + kArenaVa, t.texel_bytes, "texture fetch");
      return false;
    }
    for (int c = 0; c < 4; ++c) out[c][lane] = texel.channel[c];
    return true;
  });
  return done ? i + 1 + form.carriers : i;
}

// What follows the coordinates of one lane.
float LodOf(const Warp& w, const Inst* i, const TextureForm& form, uint32_t source, uint32_t lane, const Texture& t,
            const SamplePoint& point) {
  const auto number = [&](uint32_t n) { return Bits<float>(SourceOf<uint32_t>(w, i, source + n)[lane]); };
  if (form.detail == Detail::kLevel) return number(0);
  if (form.detail != Detail::kGradient) return 0;
  float gradient[2][3] = {};
  for (uint32_t n = 0; n < 2 * form.axes; ++n) gradient[n / form.axes][n % form.axes] = number(n);
  return LodOfGradients(t, point, gradient[0], gradient[1]);
}

const Inst* OpTexture(Warp& w, const Inst* i) {
  const TextureForm form = FormOf(i);
  const TexelMemory memory = MemoryOf(w);
  const Coordinates coordinates(w, i, form);
  uint32_t* out[4];
  for (int c = 0; c < 4; ++c) out[c] = Out<uint32_t>(w, i, c);
  if (TextureForWarp(w, i, form, memory, coordinates, out)) return i + 1 + form.carriers;
  return ReadTexels(w, i, form, out, [&](uint32_t lane, const Texture& t, Texel* texel, uint64_t* missing) {
    if (form.integer) {
      int32_t at[3] = {0, 0, 0};
      for (uint32_t a = 0; a < form.axes; ++a) at[a] = static_cast<int32_t>(coordinates.at[a][lane]);
      const bool level = form.detail == Detail::kLevel;
      const uint32_t lod = level ? SourceOf<uint32_t>(w, i, coordinates.next)[lane] : 0;
      return FetchTexel(t, memory, at, coordinates.Layer(lane), static_cast<int32_t>(lod), texel, missing);
    }
    SamplePoint point = coordinates.Point(lane);
    point.lod = LodOf(w, i, form, coordinates.next, lane, t, point);
    return Sample(t, memory, point, texel, missing);
  });
}

const Inst* OpGather(Warp& w, const Inst* i) {
  const TextureForm form = FormOf(i);
  const TexelMemory memory = MemoryOf(w);
  const Coordinates coordinates(w, i, form);
  uint32_t* out[4];
  for (int c = 0; c < 4; ++c) out[c] = Out<uint32_t>(w, i, c);
  return ReadTexels(w, i, form, out, [&](uint32_t lane, const Texture& t, Texel* texel, uint64_t* missing) {
    return Gather(t, memory, coordinates.Point(lane), form.count, texel, missing);
  });
}

uint32_t Answer(const Texture& t, TextureQuery query, uint32_t level) {
  const size_t levels = t.levels.size();
  const TextureLevel& l = t.levels[level < levels ? level : levels - 1];
  switch (query) {
    case TextureQuery::kWidth:
      return l.width;
    case TextureQuery::kHeight:
      return l.height;
    case TextureQuery::kDepth:
      return l.depth;
    case TextureQuery::kType:
      return static_cast<uint32_t>(t.format);
    case TextureQuery::kOrder:
      return t.desc.channels;
    case TextureQuery::kNormalized:
      return t.desc.normalized ? 1 : 0;
    case TextureQuery::kLayers:
      return t.desc.shape == TextureDesc::Shape::kCube ? t.slices / 6 : t.slices;
    case TextureQuery::kLevels:
      return static_cast<uint32_t>(levels);
    case TextureQuery::kSamples:
      return 1;
  }
  return 0;
}

template <bool kSurface>
const Inst* OpTextureQuery(Warp& w, const Inst* i) {
  const TextureForm form = FormOf(i);
  uint32_t* out = Out<uint32_t>(w, i, 0);
  const bool done = ForTexturesOfLanes(w, i, kSurface, [&](uint32_t lane, const Texture& t) {
    const uint32_t level = form.detail == Detail::kLevel ? SourceOf<uint32_t>(w, i, 1)[lane] : 0;
    out[lane] = Answer(t, static_cast<TextureQuery>(form.count), level);
    return true;
  });
  return done ? i + 1 + form.carriers : i;
}

const Inst* OpCarrier(Warp&, const Inst* i) { return i + 1; }

}  // namespace

OpRows TextureRows() {
#define TEXTURE(mode)                                                                                                \
  {"tex" mode ".1d", OpTexture, ""}, {"tex" mode ".2d", OpTexture, ""}, {"tex" mode ".3d", OpTexture, ""},           \
      {"tex" mode ".a1d", OpTexture, ""}, {"tex" mode ".a2d", OpTexture, ""}, {"tex" mode ".cube", OpTexture, ""}, { \
    "tex" mode ".acube", OpTexture, ""                                                                               \
  }
  static const OpRow kRows[] = {
      TEXTURE(""),
      TEXTURE(".base"),
      TEXTURE(".level"),
      TEXTURE(".grad"),
      {"tld4.2d", OpGather, ""},
      {"tld4.a2d", OpGather, ""},
      {"tld4.cube", OpGather, ""},
      {"tld4.acube", OpGather, ""},
      {"txq", OpTextureQuery<false>, ""},
      {"suq", OpTextureQuery<true>, ""},
      {"@texture.sources", OpCarrier, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
