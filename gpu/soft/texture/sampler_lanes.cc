// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/texture/sampler_lanes.h"

#include <iterator>

#include "gpu/soft/texture/sampler_axis.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

using Shape = TextureDesc::Shape;

// Of an axis that the coordinates have not.
alignas(64) constexpr uint32_t kZeros[kLanes] = {};

// 256 times as much fits into 32 bits.
constexpr uint32_t kLongestAxis = 1u << 20;

#define LANES for (uint32_t l = 0; l < kLanes; ++l)

// The texels on both sides of each lane's place along one axis and how much they count; of the nearest one the first.
struct alignas(64) Axis {
  int32_t index[2][kLanes];
  float weight[2][kLanes];
};

template <Address kMode, bool kNormalized, bool kLinear>
void Along(const uint32_t* at, uint32_t extent, Axis& a) {
  LANES {
    const float place = InTexels(Bits<float>(at[l]), kMode, kNormalized, extent);
    if constexpr (kLinear) {
      float weight;
      const int32_t low = LowerOf<int32_t>(place, weight);
      a.index[0][l] = Resolve(low, kMode, extent);
      a.index[1][l] = Resolve(low + 1, kMode, extent);
      a.weight[0][l] = 1.0f - weight;
      a.weight[1][l] = weight;
    } else {
      a.index[0][l] = Resolve(Nearest(place), kMode, extent);
    }
  }
}

template <Address kMode>
void AtIndices(const uint32_t* at, uint32_t extent, Axis& a) {
  LANES a.index[0][l] = Resolve(static_cast<int32_t>(at[l]), kMode, extent);
}

using AlongAxis = void (*)(const uint32_t*, uint32_t, Axis&);
#define MODE(mode)                                                                                               \
  {                                                                                                              \
    {Along<mode, false, false>, Along<mode, false, true>}, { Along<mode, true, false>, Along<mode, true, true> } \
  }
// By address mode, normalised or not, linear or not.
constexpr AlongAxis kAlong[4][2][2] = {MODE(Address::kWrap), MODE(Address::kClamp), MODE(Address::kMirror),
                                       MODE(Address::kBorder)};
#undef MODE

using ReadLanes = void (*)(const std::byte* arena, const uint64_t* offset, uint32_t* out);
template <TexelFormat kFormat, bool kScaled>
void Read(const std::byte* arena, const uint64_t* offset, uint32_t* out) {
  LANES out[l] = ReadChannel(kFormat, kScaled, arena + offset[l]);
}
struct ReaderRow {
  TexelFormat format;
  ReadLanes plain, scaled;
};
#define READER(format) \
  { format, Read<format, false>, Read<format, true> }
constexpr ReaderRow kReaders[] = {
    READER(TexelFormat::kU8),  READER(TexelFormat::kU16), READER(TexelFormat::kU32),  READER(TexelFormat::kS8),
    READER(TexelFormat::kS16), READER(TexelFormat::kS32), READER(TexelFormat::kHalf), READER(TexelFormat::kFloat),
};
#undef READER

ReadLanes ReaderOf(const Texture& t) {
  for (const ReaderRow& row : kReaders)
    if (row.format == t.format) return t.scaled ? row.scaled : row.plain;
  return nullptr;
}

// One texel of each lane after the other.
class Image {
 public:
  Image(const Texture& t, const TexelMemory& memory, uint32_t mask, bool border)
      : texture_(t), memory_(memory), mask_(mask), border_(border), reader_(ReaderOf(t)) {
    LANES begin_[l] = t.levels[0].offset;
  }
  const TextureLevel& level() const { return texture_.levels[0]; }
  uint32_t Extent(uint32_t axis) const {
    return axis == 0 ? level().width : axis == 1 ? level().height : level().depth;
  }
  uint32_t mask() const { return mask_; }
  // Channels that Take gives: the others are the same everywhere.
  uint32_t channels() const { return border_ ? 4 : texture_.desc.channels; }

  void TakeSlices(const uint32_t* slice) { LANES begin_[l] += slice[l] * level().slice; }

  // Texel index[side] along each axis. False: a part of its memory is not there.
  bool Take(const Axis (&axis)[3], uint32_t axes, const uint32_t (&side)[3], LaneTexels& out) const {
    const uint64_t strides[3] = {texture_.texel_bytes, level().pitch, level().slice};
    alignas(64) uint64_t offset[kLanes];
    LANES offset[l] = begin_[l];
    for (uint32_t a = 0; a < axes; ++a) {
      const int32_t* index = axis[a].index[side[a]];
      const uint64_t stride = strides[a];
      LANES offset[l] += static_cast<uint32_t>(index[l] < 0 ? 0 : index[l]) * stride;
    }
    if (mask_ != ~0u) {
      const uint64_t any = offset[__builtin_ctz(mask_)];
      LANES offset[l] = (mask_ >> l & 1) != 0 ? offset[l] : any;
    }
    if (!IsThere(offset)) return false;
    for (uint32_t c = 0; c < texture_.desc.channels; ++c) {
      reader_(memory_.arena, offset, out.channel[c]);
      LANES offset[l] += texture_.channel_bytes;
    }
    if (!border_) return true;
    for (uint32_t c = texture_.desc.channels; c < 4; ++c) Absent(c, out);
    for (uint32_t a = 0; a < axes; ++a) {
      const int32_t* index = axis[a].index[side[a]];
      for (uint32_t c = 0; c < 4; ++c)
        LANES out.channel[c][l] = index[l] < 0 ? texture_.desc.border[c] : out.channel[c][l];
    }
    return true;
  }
  // The channels that Take does not give.
  void Complete(LaneTexels& out) const {
    for (uint32_t c = channels(); c < 4; ++c) Absent(c, out);
  }

 private:
  void Absent(uint32_t c, LaneTexels& out) const {
    const uint32_t value = c < 3 ? 0 : texture_.as_float ? 0x3f800000u : 1;
    LANES out.channel[c][l] = value;
  }
  bool IsThere(const uint64_t* offset) const {
    uint64_t low = ~uint64_t{0}, high = 0;
    LANES low = offset[l] < low ? offset[l] : low;
    LANES high = offset[l] > high ? offset[l] : high;
    // Texels are aligned to their size, so none lies on two pages.
    if (low >> kPageShift == high >> kPageShift) return memory_.pages[low >> kPageShift] != 0;
    uint32_t there = 1;
    LANES there &= memory_.pages[offset[l] >> kPageShift] != 0 ? 1 : 0;
    return there != 0;
  }

  const Texture& texture_;
  const TexelMemory& memory_;
  const uint32_t mask_;
  const bool border_;
  const ReadLanes reader_;
  alignas(64) uint64_t begin_[kLanes];
};

bool Blend(const Image& image, const Axis (&axis)[3], uint32_t axes, LaneTexels& out) {
  const uint32_t channels = image.channels();
  alignas(64) float sum[4][kLanes];
  for (uint32_t c = 0; c < channels; ++c) LANES sum[c][l] = 0;
  // Sides of axes that count in some lane: in the middle of texels only the first. What counts nothing is not read.
  uint32_t counts[3] = {0, 0, 0};
  for (uint32_t a = 0; a < axes; ++a) {
    uint32_t any = 0;
    LANES any |= (image.mask() >> l & 1) != 0 ? Bits<uint32_t>(axis[a].weight[1][l]) : 0;
    counts[a] = any != 0 ? 1 : 0;
  }
  for (uint32_t corner = 0; corner < (1u << axes); ++corner) {
    const uint32_t side[3] = {corner & 1, corner >> 1 & 1, corner >> 2};
    if (side[0] > counts[0] || side[1] > counts[1] || side[2] > counts[2]) continue;
    alignas(64) float weight[kLanes];
    LANES weight[l] = axis[0].weight[side[0]][l];
    for (uint32_t a = 1; a < axes; ++a) LANES weight[l] *= axis[a].weight[side[a]][l];
    LaneTexels texels;
    if (!image.Take(axis, axes, side, texels)) return false;
    for (uint32_t c = 0; c < channels; ++c) LANES {
        const float more = sum[c][l] + weight[l] * Bits<float>(texels.channel[c][l]);
        sum[c][l] = weight[l] == 0 ? sum[c][l] : more;
      }
  }
  for (uint32_t c = 0; c < channels; ++c) LANES out.channel[c][l] = Bits<uint32_t>(sum[c][l]);
  return true;
}

bool CanTake(const Texture& t, const TexelMemory& memory, uint32_t axes) {
  const TextureLevel& level = t.levels[0];
  const bool srgb = t.desc.srgb && t.scaled && t.format == TexelFormat::kU8;
  return memory.arena != nullptr && t.levels.size() == 1 && !srgb && level.width <= kLongestAxis &&
         (axes < 2 || level.height <= kLongestAxis) && (axes < 3 || level.depth <= kLongestAxis);
}

void LayersOf(const LanePoints& points, uint32_t layers, uint32_t* slice) {
  LANES {
    const uint32_t layer = points.layer != nullptr ? points.layer[l] : 0;
    slice[l] = layer < layers ? layer : layers - 1;
  }
}

}  // namespace

bool SampleLanes(const Texture& t, const TexelMemory& memory, const LanePoints& points, LaneTexels& out) {
  const uint32_t axes = AxesOf(t);
  if (!CanTake(t, memory, axes)) return false;
  bool border = false;
  for (uint32_t a = 0; a < axes; ++a) border |= ModeOf(t, a) == Address::kBorder;
  Image image(t, memory, points.mask, border);
  alignas(64) uint32_t face_at[3][kLanes];
  alignas(64) uint32_t slice[kLanes];
  const uint32_t* at[3];
  for (uint32_t a = 0; a < 3; ++a) at[a] = points.at[a] != nullptr ? points.at[a] : kZeros;
  if (t.desc.shape == Shape::kCube) {
    LANES {
      float to[3] = {Bits<float>(at[0][l]), Bits<float>(at[1][l]), Bits<float>(at[2][l])};
      slice[l] = SliceOf(t, points.layer != nullptr ? points.layer[l] : 0, to);
      for (uint32_t a = 0; a < 2; ++a) face_at[a][l] = Bits<uint32_t>(to[a]);
    }
    at[0] = face_at[0];
    at[1] = face_at[1];
    image.TakeSlices(slice);
  } else if (t.slices > 1) {
    LayersOf(points, t.slices, slice);
    image.TakeSlices(slice);
  }
  Axis axis[3];
  for (uint32_t a = 0; a < axes; ++a)
    kAlong[static_cast<size_t>(ModeOf(t, a))][IsNormalized(t)][t.desc.linear](at[a], image.Extent(a), axis[a]);
  if (!(t.desc.linear ? Blend(image, axis, axes, out) : image.Take(axis, axes, {0, 0, 0}, out))) return false;
  image.Complete(out);
  return true;
}

bool FetchLanes(const Texture& t, const TexelMemory& memory, const LanePoints& points, LaneTexels& out) {
  const bool buffer = t.desc.shape == Shape::kBuffer;
  const uint32_t axes = AxesOf(t);
  if (!buffer && !CanTake(t, memory, axes)) return false;
  if (memory.arena == nullptr || (buffer && t.desc.srgb)) return false;
  bool border = false;
  for (uint32_t a = 0; a < axes; ++a) border |= !buffer && IndexModeOf(t, a) == Address::kBorder;
  Image image(t, memory, points.mask, border);
  if (t.slices > 1) {
    alignas(64) uint32_t slice[kLanes];
    LayersOf(points, t.slices, slice);
    image.TakeSlices(slice);
  }
  Axis axis[3];
  for (uint32_t a = 0; a < axes; ++a) {
    const uint32_t* at = points.at[a] != nullptr ? points.at[a] : kZeros;
    const bool outside = !buffer && IndexModeOf(t, a) == Address::kBorder;
    (outside ? AtIndices<Address::kBorder> : AtIndices<Address::kClamp>)(at, image.Extent(a), axis[a]);
  }
  if (!image.Take(axis, axes, {0, 0, 0}, out)) return false;
  image.Complete(out);
  if (!buffer) return true;
  // Beyond linear memory everything is zero.
  for (uint32_t c = 0; c < 4; ++c) LANES out.channel[c][l] = points.at[0][l] < image.Extent(0) ? out.channel[c][l] : 0;
  return true;
}

#undef LANES

}  // namespace vgpud::soft::VGPUD_ISA
