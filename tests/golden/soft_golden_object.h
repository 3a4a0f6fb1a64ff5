// SPDX-License-Identifier: Apache-2.0
// The texture or surface object of a golden test on the soft GPU.
#pragma once

#include "tests/golden/golden.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

// Rows and images lie apart from each other, so that a mistake in either shows.
class GoldenObject {
 public:
  GoldenObject(SoftMachine& machine, const golden::Object& o) : machine_(machine), object_(o) {
    using From = golden::Object::Shape;
    using To = TextureDesc::Shape;
    constexpr To kShapes[] = {To::k1d, To::k2d, To::k3d, To::kCube, To::kBuffer, To::k2d};
    static_assert(static_cast<size_t>(From::kLinear) == 4);
    TextureDesc d;
    d.shape = kShapes[static_cast<size_t>(o.shape)];
    d.layered = o.layered;
    d.surface = o.surface;
    d.width = o.width;
    d.height = o.height;
    d.depth = o.depth;
    d.layers = o.images;
    d.format = o.format;
    d.channels = o.channels;
    for (auto& a : d.address) a = static_cast<TextureDesc::Address>(o.address);
    d.linear = o.linear;
    d.mip_linear = o.mip_linear;
    d.normalized = o.normalized;
    d.read_float = o.read_float;
    d.srgb = o.srgb;
    d.lod_bias = o.bias;
    d.lod_min = o.lowest;
    d.lod_max = o.highest;
    std::memcpy(d.border, o.border, sizeof(d.border));
    const uint8_t* from = o.texels.data();
    for (uint32_t level = 0; level < o.levels; ++level) {
      const Place p = PlaceOf(level);
      std::vector<uint8_t> memory(p.slice * p.slices, 0xee);
      p.ForRows(memory, [&](uint8_t* row) {
        std::memcpy(row, from, p.row);
        from += p.row;
      });
      d.levels.push_back({machine.Upload(memory), p.pitch, p.slice});
    }
    level0_ = d.levels[0].address;
    const auto made = machine.gpu.CreateTexture(d);
    EXPECT_TRUE(made) << made.error().text;
    if (made) handle_ = *made;
  }
  GoldenObject(const GoldenObject&) = delete;
  GoldenObject& operator=(const GoldenObject&) = delete;

  uint64_t handle() const { return handle_; }
  // What level 0 holds.
  std::vector<uint8_t> Texels() {
    const Place p = PlaceOf(0);
    std::vector<uint8_t> memory = machine_.Download<uint8_t>(level0_, p.slice * p.slices);
    std::vector<uint8_t> texels;
    p.ForRows(memory, [&](const uint8_t* row) { texels.insert(texels.end(), row, row + p.row); });
    return texels;
  }

 private:
  struct Place {
    size_t row, pitch, slice, rows, slices;

    template <class F>
    void ForRows(std::vector<uint8_t>& memory, F f) const {
      for (size_t s = 0; s < slices; ++s)
        for (size_t r = 0; r < rows; ++r) f(memory.data() + s * slice + r * pitch);
    }
  };
  Place PlaceOf(uint32_t level) const {
    const golden::Extent e = golden::ExtentOf(object_, level);
    const size_t texel = golden::TexelBytes(object_);
    Place p{e.width * texel, 0, 0, e.height, size_t{e.depth} * object_.images};
    p.pitch = p.row + 3 * texel;
    p.slice = p.pitch * p.rows + 5 * texel;
    return p;
  }

  SoftMachine& machine_;
  const golden::Object& object_;
  GpuVa level0_{};
  uint64_t handle_ = 0;
};

}  // namespace vgpud::soft
