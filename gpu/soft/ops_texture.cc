// tex, tld4, txq and suq (PTX ISA "Texture Instructions"). Sources: handle, layer if there is one, coordinates, then
// the level of detail or both gradients.
#include "gpu/soft/ops_texture.h"

#include "gpu/soft/sampler_lanes.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

const Inst* Missing(Warp& w, const Inst* i, uint32_t lane, const Texture& t, uint64_t offset) {
  return RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, offset + kArenaVa, t.texel_bytes, "texture fetch");
}

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
  for (uint32_t m = w.mask; m != 0; m &= m - 1)
    if (handles[__builtin_ctz(m)] != first) return false;
  const Texture* t = w.grid->device().textures.Find(first);
  if (t == nullptr || t->desc.surface) return false;
  const LanePoints points{w.mask, {coordinates.at[0], coordinates.at[1], coordinates.at[2]}, coordinates.layer};
  LaneTexels texels;
  if (!(form.integer ? FetchLanes : SampleLanes)(*t, memory, points, texels)) return false;
  for (int c = 0; c < 4; ++c) StoreMasked(out[c], texels.channel[c], w.mask);
  return true;
}

const Inst* OpTexture(Warp& w, const Inst* i) {
  const TextureForm form = FormOf(i);
  const TexelMemory memory = MemoryOf(w);
  const Coordinates coordinates(w, i, form);
  uint32_t* out[4];
  for (int c = 0; c < 4; ++c) out[c] = Out<uint32_t>(w, i, c);
  if (TextureForWarp(w, i, form, memory, coordinates, out)) return i + 1 + form.carriers;
  TextureOfLane texture_of(w, i, false);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Texture* t = texture_of(lane);
    if (t == nullptr) return i;
    Texel texel;
    uint64_t missing = 0;
    bool there;
    if (form.integer) {
      int32_t at[3] = {0, 0, 0};
      for (uint32_t a = 0; a < form.axes; ++a) at[a] = static_cast<int32_t>(coordinates.at[a][lane]);
      const int32_t lod =
          form.detail == Detail::kLevel ? static_cast<int32_t>(SourceOf<uint32_t>(w, i, coordinates.next)[lane]) : 0;
      there = FetchTexel(*t, memory, at, coordinates.Layer(lane), lod, &texel, &missing);
    } else {
      SamplePoint point = coordinates.Point(lane);
      if (form.detail == Detail::kLevel) {
        point.lod = Bits<float>(SourceOf<uint32_t>(w, i, coordinates.next)[lane]);
      } else if (form.detail == Detail::kGradient) {
        float gradient[2][3] = {};
        for (uint32_t n = 0; n < 2 * form.axes; ++n)
          gradient[n / form.axes][n % form.axes] = Bits<float>(SourceOf<uint32_t>(w, i, coordinates.next + n)[lane]);
        point.lod = LodOfGradients(*t, point, gradient[0], gradient[1]);
      }
      there = Sample(*t, memory, point, &texel, &missing);
    }
    if (!there) return Missing(w, i, lane, *t, missing);
    for (int c = 0; c < 4; ++c) out[c][lane] = texel.channel[c];
  }
  return i + 1 + form.carriers;
}

const Inst* OpGather(Warp& w, const Inst* i) {
  const TextureForm form = FormOf(i);
  const TexelMemory memory = MemoryOf(w);
  const Coordinates coordinates(w, i, form);
  TextureOfLane texture_of(w, i, false);
  uint32_t* out[4];
  for (int c = 0; c < 4; ++c) out[c] = Out<uint32_t>(w, i, c);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Texture* t = texture_of(lane);
    if (t == nullptr) return i;
    Texel texel;
    uint64_t missing = 0;
    if (!Gather(*t, memory, coordinates.Point(lane), form.count, &texel, &missing))
      return Missing(w, i, lane, *t, missing);
    for (int c = 0; c < 4; ++c) out[c][lane] = texel.channel[c];
  }
  return i + 1 + form.carriers;
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
  TextureOfLane texture_of(w, i, kSurface);
  uint32_t* out = Out<uint32_t>(w, i, 0);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Texture* t = texture_of(lane);
    if (t == nullptr) return i;
    const uint32_t level = form.detail == Detail::kLevel ? SourceOf<uint32_t>(w, i, 1)[lane] : 0;
    out[lane] = Answer(*t, static_cast<TextureQuery>(form.count), level);
  }
  return i + 1 + form.carriers;
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
