// SPDX-License-Identifier: Apache-2.0
// A warp that reads a texture of one level at once gives the bits of lane by lane, which the first of two levels gets:
// random descriptors, texels and coordinates of every kind.
#include <cmath>
#include <random>

#include "tests/unit/soft/rig/texture_fixture.h"

namespace vgpud::soft {
namespace {

constexpr TexelFormat kFormats[] = {TexelFormat::kU8,  TexelFormat::kU16, TexelFormat::kU32,  TexelFormat::kS8,
                                    TexelFormat::kS16, TexelFormat::kS32, TexelFormat::kHalf, TexelFormat::kFloat};

class RandomTexture {
 public:
  explicit RandomTexture(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint32_t Bits() { return static_cast<uint32_t>(random_()); }

  // Everything but the levels.
  TextureDesc Desc() {
    TextureDesc d;
    d.shape = Shape{1 + Below(4)};
    const bool cube = d.shape == Shape::kCube;
    d.width = 2 + Below(9);
    d.height = cube ? d.width : d.shape == Shape::k1d ? 1 : 1 + Below(7);
    d.depth = d.shape == Shape::k3d ? 1 + Below(5) : 1;
    d.layered = d.shape != Shape::k3d && Below(2) == 0;
    d.layers = (cube ? 6 : 1) * (d.layered ? 1 + Below(3) : 1);
    const TexelFormat format = kFormats[Below(8)];
    d.format = static_cast<uint32_t>(format);
    d.channels = 1u << Below(3);
    d.read_float = Below(2) == 0;
    const bool is_float = format >= TexelFormat::kHalf;
    const bool wide = format == TexelFormat::kU32 || format == TexelFormat::kS32;
    d.linear = (is_float || (d.read_float && !wide)) && Below(2) == 0;
    d.normalized = Below(2) == 0;
    for (Address& a : d.address) a = Address{Below(4)};
    for (uint32_t& b : d.border) b = BitsAs<uint32_t>(static_cast<float>(Below(100)));
    return d;
  }
  // A coordinate along an axis of `extent` texels: mostly near the image, also zeros, infinities, NaNs, any bits.
  uint32_t Coordinate(uint32_t extent, bool normalized) {
    if (Below(8) == 0) {
      const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e-30f, 0.5f};
      return Below(2) == 0 ? BitsAs<uint32_t>(special[Below(10)]) : Bits();
    }
    const float texel = static_cast<float>(Below(extent * 1024)) / 256.0f - static_cast<float>(extent);
    const float place = Below(3) == 0 ? std::floor(texel) + 0.5f : texel;
    return BitsAs<uint32_t>(normalized ? place / static_cast<float>(extent) : place);
  }
  std::vector<uint8_t> Texels(size_t bytes) {
    std::vector<uint8_t> texels(bytes);
    for (uint8_t& b : texels) b = static_cast<uint8_t>(Bits());
    return texels;
  }

 private:
  std::mt19937 random_;
};

// Adds a level with random texels.
void AddLevel(TextureMachine& m, RandomTexture& random, TextureDesc& d) {
  const uint32_t width = std::max(d.width >> d.levels.size(), 1u), height = std::max(d.height >> d.levels.size(), 1u);
  const uint64_t pitch = uint64_t{width} * d.channels * 4 + 16, slice = pitch * height + 32;
  d.levels.push_back({m.Upload(random.Texels(slice * d.depth * d.layers)), pitch, slice});
}

std::string Instruction(const TextureDesc& d, bool indices) {
  constexpr const char* kGeometries[] = {"", "1d", "2d", "3d", "cube"};
  const bool layered = d.layered;
  const char* const coordinates[2][5] = {{"", "%r1", "%r1, %r2", "%r1, %r2, %r3, %r4", "%r1, %r2, %r3, %r4"},
                                         {"", "%r5, %r1", "%r5, %r1, %r2, %r4", "", "%r5, %r1, %r2, %r3"}};
  const auto shape = static_cast<size_t>(d.shape);
  return std::string("tex.") + (layered ? "a" : "") + kGeometries[shape] + ".v4.u32." + (indices ? "s32" : "f32") +
         " {%r10, %r11, %r12, %r13}, [%rd1, {" + coordinates[layered][shape] + "}];";
}

bool Same(uint32_t a, uint32_t b, bool as_float) {
  return a == b || (as_float && std::isnan(BitsAs<float>(a)) && std::isnan(BitsAs<float>(b)));
}

class SoftTextureLanes : public testing::TestWithParam<Isa> {};

TEST_P(SoftTextureLanes, AWarpAtOnceGivesTheBitsOfLaneByLane) {
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    TextureMachine m(GetParam());
    RandomTexture random(seed);
    TextureDesc d = random.Desc();
    AddLevel(m, random, d);
    const uint64_t warp = m.Make(d);
    AddLevel(m, random, d);
    const uint64_t lanes = m.Make(d);
    const bool indices = d.shape != Shape::kCube && random.Below(3) == 0;
    const uint32_t extents[3] = {d.width, d.height, d.depth};
    // A part of the second warp does not run.
    std::vector<Quad> in(45), layers(45);
    for (size_t n = 0; n < in.size(); ++n) {
      for (uint32_t a = 0; a < 3; ++a)
        in[n][a] =
            indices ? random.Below(2 * extents[a]) - extents[a] / 2 : random.Coordinate(extents[a], d.normalized);
      in[n][3] = 0;
      layers[n] = {random.Below(d.layers + 2)};
    }
    const std::string body = Instruction(d, indices);
    const auto got = m.Each(warp, body, in, nullptr, layers);
    const auto expected = m.Each(lanes, body, in, nullptr, layers);
    const bool as_float = d.read_float || d.format >= static_cast<uint32_t>(TexelFormat::kHalf);
    for (size_t n = 0; n < in.size(); ++n)
      for (uint32_t c = 0; c < 4; ++c)
        ASSERT_TRUE(Same(got[n][c], expected[n][c], as_float))
            << body << " channel " << c << " of thread " << n << ": " << std::hex << got[n][c] << ", lane by lane "
            << expected[n][c];
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftTextureLanes, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

// Lanes that name different textures, and lanes whose memory is gone while others' is there.
TEST(SoftTextureLanesMixed, TexturesOfLanesMayDiffer) {
  TextureMachine m;
  uint64_t handles[2];
  for (uint32_t n = 0; n < 2; ++n) {
    TextureDesc d;
    d.shape = Shape::k1d;
    d.width = 64;
    d.format = static_cast<uint32_t>(TexelFormat::kU32);
    std::vector<uint32_t> texels(64);
    for (uint32_t k = 0; k < 64; ++k) texels[k] = 1000 * n + k;
    TextureMachine::Put(d, m.Upload3(texels, 64));
    handles[n] = m.Make(d);
  }
  std::vector<Quad> in;
  for (uint32_t n = 0; n < 64; ++n)
    in.push_back({n, static_cast<uint32_t>(handles[n % 3 == 0]), static_cast<uint32_t>(handles[n % 3 == 0] >> 32)});
  const auto out =
      m.Each(0, "mov.b64 %rd1, {%r2, %r3}; tex.1d.v4.u32.s32 {%r10, %r11, %r12, %r13}, [%rd1, {%r1}];", in);
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(out[n][0], (n % 3 == 0 ? 1000 : 0) + n);
}

}  // namespace
}  // namespace vgpud::soft
