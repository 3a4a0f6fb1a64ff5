// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <iterator>

#include "gpu/soft/state/state_stream.h"
#include "gpu/soft/texture/texture.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMostLevels = 64;  // MakeTexture knows how many there may be
constexpr bool TextureDesc::*const kFlags[] = {
    &TextureDesc::layered,    &TextureDesc::surface,    &TextureDesc::linear, &TextureDesc::mip_linear,
    &TextureDesc::normalized, &TextureDesc::read_float, &TextureDesc::srgb,
};
constexpr uint32_t TextureDesc::*const kNumbers[] = {
    &TextureDesc::width,  &TextureDesc::height, &TextureDesc::depth,
    &TextureDesc::layers, &TextureDesc::format, &TextureDesc::channels,
};
constexpr float TextureDesc::*const kFloats[] = {&TextureDesc::lod_bias, &TextureDesc::lod_min, &TextureDesc::lod_max};

void SaveDesc(StateWriter& out, const TextureDesc& d) {
  out.Put(d.shape);
  for (const auto flag : kFlags) out.Put<uint8_t>(d.*flag);
  for (const auto number : kNumbers) out.Put(d.*number);
  for (const auto value : kFloats) out.Put(std::bit_cast<uint32_t>(d.*value));
  for (const TextureDesc::Address mode : d.address) out.Put(mode);
  for (const uint32_t bits : d.border) out.Put(bits);
  out.Put<uint64_t>(d.levels.size());
  for (const TextureDesc::Level& level : d.levels) {
    out.Put(level.address);
    out.Put(level.pitch);
    out.Put(level.slice);
  }
}

TextureDesc LoadDesc(StateReader& in) {
  TextureDesc d;
  d.shape = static_cast<TextureDesc::Shape>(in.Get<uint32_t>());
  for (const auto flag : kFlags) d.*flag = in.GetBool("texture flag");
  for (const auto number : kNumbers) d.*number = in.Get<uint32_t>();
  for (const auto value : kFloats) d.*value = std::bit_cast<float>(in.Get<uint32_t>());
  for (TextureDesc::Address& mode : d.address) mode = static_cast<TextureDesc::Address>(in.Get<uint32_t>());
  for (uint32_t& bits : d.border) bits = in.Get<uint32_t>();
  const auto levels = in.GetUpTo<uint64_t>(kMostLevels, "number of texture levels");
  for (uint64_t n = 0; n < levels; ++n) {
    TextureDesc::Level level;
    level.address = GpuVa{in.Get<uint64_t>()};
    level.pitch = in.Get<uint64_t>();
    level.slice = in.Get<uint64_t>();
    d.levels.push_back(level);
  }
  return d;
}

}  // namespace

void TextureTable::Save(StateWriter& out) const {
  out.Put(generation_);
  out.Put<uint64_t>(entries_.size());
  for (const auto& entry : entries_) {
    out.Put<uint64_t>(entry == nullptr ? 0 : entry->handle);
    if (entry != nullptr) SaveDesc(out, entry->desc);
  }
  for (const uint32_t index : unused_) out.Put(index);
}

void TextureTable::Load(StateReader& in, const Arena& arena) {
  generation_ = in.GetUpTo<uint64_t>(kTextureGenerations - 1, "texture generation");
  const auto count = in.GetUpTo<uint64_t>(kMaxTextures, "number of textures");
  size_t unused = 0;
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    entries_.emplace_back();
    const auto handle = in.Get<uint64_t>();
    if (handle == 0) {
      ++unused;
      continue;
    }
    const uint64_t generation = (handle - kTextureHandle) >> 20;
    if (generation >= kTextureGenerations || handle != TextureHandle(generation, n)) in.Bad("texture handle", handle);
    const TextureDesc desc = LoadDesc(in);
    if (!in.ok()) return;
    auto texture = MakeTexture(desc, arena, true);
    if (!texture) return in.Fail({CuStatus::kInvalidImage, "saved context: " + texture.error().text});
    (*texture)->handle = handle;
    entries_.back() = std::move(*texture);
  }
  std::vector<uint8_t> seen(entries_.size());
  for (; unused != 0 && in.ok(); --unused) {
    const auto index = in.Get<uint32_t>();
    if (index >= entries_.size() || entries_[index] != nullptr || seen[index] != 0)
      return in.Bad("free texture", index);
    seen[index] = 1;
    unused_.push_back(index);
  }
}

}  // namespace vgpud::soft
