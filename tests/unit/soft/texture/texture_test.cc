// SPDX-License-Identifier: Apache-2.0
// tex, tld4 and txq against a reference that follows the formulas of the CUDA C++ programming guide ("Texture
// Fetching") in double precision.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/soft/rig/texture_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint32_t kWidth = 8, kHeight = 4, kDepth = 2;

double Value(int64_t x, int64_t y, int64_t z) { return static_cast<double>(1 + x * x + 10 * y * y + 300 * z); }

struct SampleCase {
  Shape shape;
  Address address;
  bool linear;
  bool normalized;
};

// The texel that index `i` of an axis stands for; -1 is the border.
int64_t Index(int64_t i, int64_t n, Address mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case Address::kBorder:
      return -1;
    case Address::kClamp:
      return i < 0 ? 0 : n - 1;
    case Address::kWrap:
      return ((i % n) + n) % n;
    case Address::kMirror: {
      const int64_t period = ((i % (2 * n)) + 2 * n) % (2 * n);
      return period < n ? period : 2 * n - 1 - period;
    }
  }
  return -1;
}

double Expected(const SampleCase& c, const double (&at)[3], double border) {
  const int64_t extent[3] = {kWidth, kHeight, kDepth};
  const int axes = c.shape == Shape::k1d ? 1 : c.shape == Shape::k2d ? 2 : 3;
  const Address mode =
      !c.normalized && (c.address == Address::kWrap || c.address == Address::kMirror) ? Address::kClamp : c.address;
  int64_t low[3] = {0, 0, 0};
  double weight[3] = {0, 0, 0};
  for (int a = 0; a < axes; ++a) {
    double x = at[a];
    // "frac(x) if floor(x) is even and 1 - frac(x) if floor(x) is odd"
    if (mode == Address::kMirror) {
      const double whole = std::floor(x);
      x = std::fmod(whole, 2.0) == 0 ? x - whole : 1 - (x - whole);
    }
    if (c.normalized) x *= static_cast<double>(extent[a]);
    low[a] = static_cast<int64_t>(std::floor(c.linear ? x - 0.5 : x));
    if (c.linear) weight[a] = x - 0.5 - static_cast<double>(low[a]);
  }
  double sum = 0;
  for (int corner = 0; corner < 1 << axes; ++corner) {
    double w = 1;
    int64_t texel[3] = {0, 0, 0};
    bool outside = false;
    for (int a = 0; a < axes; ++a) {
      const int up = corner >> a & 1;
      w *= up ? weight[a] : 1 - weight[a];
      texel[a] = Index(low[a] + up, extent[a], mode);
      outside |= texel[a] < 0;
    }
    sum += w * (outside ? border : Value(texel[0], texel[1], texel[2]));
  }
  return sum;
}

class SoftTextureSample : public testing::TestWithParam<std::tuple<Shape, Address, bool, bool>> {};

TEST_P(SoftTextureSample, FollowsTheGuide) {
  const auto [shape, address, linear, normalized] = GetParam();
  const SampleCase c{shape, address, linear, normalized};
  TextureMachine m;
  TextureDesc desc;
  desc.shape = shape;
  desc.width = kWidth;
  desc.height = shape == Shape::k1d ? 1 : kHeight;
  desc.depth = shape == Shape::k3d ? kDepth : 1;
  desc.format = static_cast<uint32_t>(TexelFormat::kFloat);
  desc.linear = linear;
  desc.normalized = normalized;
  for (Address& a : desc.address) a = address;
  desc.border[0] = BitsAs<uint32_t>(-7.0f);
  std::vector<float> texels;
  for (uint32_t z = 0; z < desc.depth; ++z)
    for (uint32_t y = 0; y < desc.height; ++y)
      for (uint32_t x = 0; x < desc.width; ++x) texels.push_back(static_cast<float>(Value(x, y, z)));
  TextureMachine::Put(desc, m.Upload3(texels, desc.width, desc.height, desc.depth));
  const uint64_t handle = m.Make(desc);

  // Multiples of 1/256 texel, inside and some way outside.
  std::vector<Quad> in;
  uint32_t random = 12345;
  const auto next = [&](uint32_t extent) {
    random = random * 1664525 + 1013904223;
    const auto steps = static_cast<int32_t>((random >> 8) % (extent * 256 * 5)) - static_cast<int32_t>(extent * 512);
    const auto texel = static_cast<float>(steps) / 256.0f;
    return normalized ? texel / static_cast<float>(extent) : texel;
  };
  for (int n = 0; n < 500; ++n) {
    const float x = next(kWidth), y = next(kHeight), z = next(kDepth);
    in.push_back(Floats(x, y, z, 0));
  }
  const char* const forms[] = {"", "tex.1d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1}];",
                               "tex.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1,%r2}];",
                               "tex.3d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1,%r2,%r3,%r4}];"};
  const auto out = m.Each(handle, forms[static_cast<size_t>(shape)], in);
  ASSERT_EQ(out.size(), in.size());
  for (size_t n = 0; n < in.size(); ++n) {
    const double at[3] = {BitsAs<float>(in[n][0]), BitsAs<float>(in[n][1]), BitsAs<float>(in[n][2])};
    const double expected = Expected(c, at, -7.0);
    ASSERT_NEAR(BitsAs<float>(out[n][0]), expected, linear ? std::abs(expected) * 1e-6 + 1e-5 : 0)
        << at[0] << ", " << at[1] << ", " << at[2];
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftTextureSample,
                         testing::Combine(testing::Values(Shape::k1d, Shape::k2d, Shape::k3d),
                                          testing::Values(Address::kWrap, Address::kClamp, Address::kMirror,
                                                          Address::kBorder),
                                          testing::Bool(), testing::Bool()));

// A weight has 8 bits of fraction.
TEST(SoftTexture, LinearWeightsAreRounded) {
  TextureMachine m;
  TextureDesc desc;
  desc.shape = Shape::k1d;
  desc.width = 2;
  desc.format = static_cast<uint32_t>(TexelFormat::kFloat);
  desc.linear = true;
  desc.address[0] = Address::kClamp;
  TextureMachine::Put(desc, m.Upload3(std::vector<float>{0, 256}, 2));
  const auto out = m.Each(m.Make(desc), "tex.1d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1}];",
                          {Floats(0.5f + 10.4f / 256), Floats(0.5f + 10.6f / 256), Floats(1.5f - 0.4f / 256)});
  EXPECT_EQ(BitsAs<float>(out[0][0]), 10.0f);
  EXPECT_EQ(BitsAs<float>(out[1][0]), 11.0f);
  EXPECT_EQ(BitsAs<float>(out[2][0]), 256.0f);
}

struct FormatCase {
  const char* name;
  TexelFormat format;
  bool read_float;
  uint32_t raw;       // one channel in memory
  uint32_t expected;  // as the kernel sees it
};
class SoftTextureFormat : public testing::TestWithParam<std::tuple<FormatCase, uint32_t>> {};

TEST_P(SoftTextureFormat, IsReadAsDocumented) {
  const auto& [c, channels] = GetParam();
  constexpr uint32_t kBytes[] = {0, 1, 2, 4, 0, 0, 0, 0, 1, 2, 4, 0, 0, 0, 0, 0, 2};
  const uint32_t bytes = c.format == TexelFormat::kFloat ? 4 : kBytes[static_cast<size_t>(c.format)];
  TextureMachine m;
  TextureDesc desc;
  desc.width = 2;
  desc.height = 2;
  desc.format = static_cast<uint32_t>(c.format);
  desc.channels = channels;
  desc.read_float = c.read_float;
  std::vector<std::byte> memory(64);
  const uint32_t pitch = bytes * channels * 2;
  for (uint32_t channel = 0; channel < channels; ++channel)
    std::memcpy(memory.data() + pitch + bytes * (channels + channel), &c.raw, bytes);
  desc.levels.push_back({m.Upload(memory), pitch, 0});
  for (const char* type : {"f32", "u32", "s32"}) {
    const auto out =
        m.Each(m.Make(desc), std::string("tex.2d.v4.") + type + ".s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];",
               {{1, 1, 0, 0}});
    const bool floats = c.read_float || c.format == TexelFormat::kHalf || c.format == TexelFormat::kFloat;
    for (uint32_t channel = 0; channel < 4; ++channel)
      EXPECT_EQ(out[0][channel], channel < channels ? c.expected
                                 : channel < 3      ? 0
                                 : floats           ? BitsAs<uint32_t>(1.0f)
                                                    : 1)
          << channel;
  }
}

constexpr uint32_t Float(float v) { return __builtin_bit_cast(uint32_t, v); }
INSTANTIATE_TEST_SUITE_P(, SoftTextureFormat,
                         testing::Combine(testing::ValuesIn(std::vector<FormatCase>{
                                              {"u8", TexelFormat::kU8, false, 200, 200},
                                              {"u8f", TexelFormat::kU8, true, 51, Float(51.0f / 255.0f)},
                                              {"s8", TexelFormat::kS8, false, 0x9c, 0xffffff9c},
                                              {"s8f", TexelFormat::kS8, true, 0x80, Float(-1.0f)},
                                              {"s8f_minus127", TexelFormat::kS8, true, 0x81, Float(-1.0f)},
                                              {"u16", TexelFormat::kU16, false, 0xfffe, 0xfffe},
                                              {"u16f", TexelFormat::kU16, true, 13107, Float(13107.0f / 65535.0f)},
                                              {"s16", TexelFormat::kS16, false, 0x8001, 0xffff8001},
                                              {"s16f", TexelFormat::kS16, true, 0x8000, Float(-1.0f)},
                                              {"u32", TexelFormat::kU32, false, 0xdeadbeef, 0xdeadbeef},
                                              {"s32", TexelFormat::kS32, false, 0xdeadbeef, 0xdeadbeef},
                                              {"half", TexelFormat::kHalf, false, 0xc100, Float(-2.5f)},
                                              {"float", TexelFormat::kFloat, false, Float(-0.1f), Float(-0.1f)},
                                          }),
                                          testing::Values(1u, 2u, 4u)),
                         [](const auto& p) {
                           return std::string(std::get<0>(p.param).name) + "_x" + std::to_string(std::get<1>(p.param));
                         });

TEST(SoftTexture, SrgbIsMadeLinearButNotAlpha) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = 1;
  desc.format = static_cast<uint32_t>(TexelFormat::kU8);
  desc.channels = 4;
  desc.read_float = desc.srgb = true;
  desc.levels.push_back({m.Upload(std::vector<uint8_t>{0, 128, 5, 128}), 4, 0});
  const auto out = m.Each(m.Make(desc), "tex.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];", {Floats(0, 0)});
  EXPECT_EQ(BitsAs<float>(out[0][0]), 0.0f);
  EXPECT_NEAR(BitsAs<float>(out[0][1]), 0.215861, 1e-5);
  EXPECT_NEAR(BitsAs<float>(out[0][2]), 5 / 255.0 / 12.92, 1e-6);
  EXPECT_NEAR(BitsAs<float>(out[0][3]), 128 / 255.0, 1e-6);
}

TEST(SoftTexture, LinearMemoryIsZeroBeyondItsEnd) {
  TextureMachine m;
  TextureDesc desc;
  desc.shape = Shape::kBuffer;
  desc.width = 5;
  desc.format = static_cast<uint32_t>(TexelFormat::kS32);
  desc.channels = 1;
  desc.levels.push_back({m.Upload(std::vector<int32_t>{10, 11, 12, 13, 14, 99}), 0, 0});
  const auto out = m.Each(m.Make(desc), "tex.1d.v4.s32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1}];",
                          {{0}, {4}, {5}, {0xffffffff}, {0x7fffffff}});
  EXPECT_THAT((std::vector<uint32_t>{out[0][0], out[1][0], out[2][0], out[3][0], out[4][0]}),
              testing::ElementsAre(10, 14, 0, 0, 0));
}

TEST(SoftTexture, LayersAreChosenByIndexAndClamped) {
  TextureMachine m;
  TextureDesc desc;
  desc.layered = true;
  desc.width = 4;
  desc.layers = 3;
  desc.format = static_cast<uint32_t>(TexelFormat::kU32);
  std::vector<uint32_t> texels(4 * 2 * 3);
  for (uint32_t n = 0; n < texels.size(); ++n) texels[n] = n;
  {
    TextureDesc lines = desc;
    lines.shape = Shape::k1d;
    TextureMachine::Put(lines, m.Upload3(std::vector(texels.begin(), texels.begin() + 12), 4, 1, 3));
    const auto out = m.Each(m.Make(lines), "tex.a1d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];",
                            {{0, Float(3.5f)}, {2, Float(0.5f)}, {9, Float(1.5f)}});
    EXPECT_EQ(out[0][0], 3u);
    EXPECT_EQ(out[1][0], 8u);
    EXPECT_EQ(out[2][0], 9u);
  }
  desc.height = 2;
  TextureMachine::Put(desc, m.Upload3(texels, 4, 2, 3));
  const uint64_t handle = m.Make(desc);
  const auto out = m.Each(handle, "tex.a2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r4}];",
                          {{1, Float(2.5f), Float(1.5f)}, {7, Float(0.5f), Float(0.5f)}});
  EXPECT_EQ(out[0][0], 8u + 4 + 2);
  EXPECT_EQ(out[1][0], 16u);
  const auto by_index = m.Each(handle, "tex.a2d.v4.s32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r4}];",
                               {{2, 3, 1, 0}, {2, 30, 0xffffffff, 0}});
  EXPECT_EQ(by_index[0][0], 23u);
  EXPECT_EQ(by_index[1][0], 19u);
}

TEST(SoftTexture, CubesHaveTheFacesOfTheGuide) {
  TextureMachine m;
  TextureDesc desc;
  desc.shape = Shape::kCube;
  desc.width = desc.height = 2;
  desc.layers = 12;
  desc.layered = true;
  desc.format = static_cast<uint32_t>(TexelFormat::kU32);
  std::vector<uint32_t> texels(2 * 2 * 12);
  for (uint32_t n = 0; n < texels.size(); ++n) texels[n] = n;
  TextureMachine::Put(desc, m.Upload3(texels, 2, 2, 12));
  // Per face: a direction and (s, t) in {0, 1} from the table of the guide, "Cubemap Textures".
  struct Direction {
    float x, y, z;
    uint32_t texel;
  };
  const std::vector<Direction> directions = {
      {1, 0.5f, 0.5f, 0 * 4 + 0},  {1, -0.5f, -0.5f, 0 * 4 + 3},   // +x: s = -z, t = -y
      {-1, 0.5f, 0.5f, 1 * 4 + 1}, {-1, -0.5f, -0.5f, 1 * 4 + 2},  // -x: s = z, t = -y
      {0.5f, 1, 0.5f, 2 * 4 + 3},  {-0.5f, 1, 0.5f, 2 * 4 + 2},    // +y: s = x, t = z
      {0.5f, -1, 0.5f, 3 * 4 + 1}, {-0.5f, -1, -0.5f, 3 * 4 + 2},  // -y: s = x, t = -z
      {0.5f, 0.5f, 1, 4 * 4 + 1},  {-0.5f, -0.5f, 1, 4 * 4 + 2},   // +z: s = x, t = -y
      {0.5f, 0.5f, -1, 5 * 4 + 0}, {-0.5f, -0.5f, -1, 5 * 4 + 3},  // -z: s = -x, t = -y
  };
  std::vector<Quad> in, with_layer;
  for (const Direction& d : directions) {
    in.push_back(Floats(d.x, d.y, d.z));
    with_layer.push_back({1, Float(d.x), Float(d.y), Float(d.z)});
  }
  const uint64_t handle = m.Make(desc);
  const auto out = m.Each(handle, "tex.cube.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r4}];", in);
  const auto second =
      m.Each(handle, "tex.acube.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r4}];", with_layer);
  for (size_t n = 0; n < directions.size(); ++n) {
    EXPECT_EQ(out[n][0], directions[n].texel) << n;
    EXPECT_EQ(second[n][0], directions[n].texel + 24) << n;
  }
}

TEST(SoftTexture, LevelsAreChosenAndBlended) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = 4;
  desc.height = 4;
  desc.format = static_cast<uint32_t>(TexelFormat::kFloat);
  desc.normalized = true;
  desc.lod_max = 10;
  for (const auto& [extent, value] : {std::pair(4u, 100.0f), {2u, 200.0f}, {1u, 300.0f}})
    TextureMachine::Put(desc, m.Upload3(std::vector<float>(extent * extent, value), extent, extent));
  const std::string level = "tex.level.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}], %r3;";
  const std::vector<Quad> lods = {Floats(0.5f, 0.5f, 0.25f), Floats(0.5f, 0.5f, 0.75f), Floats(0.5f, 0.5f, 9),
                                  Floats(0.5f, 0.5f, -3)};
  const auto values = [](const std::vector<Quad>& out) {
    std::vector<float> floats;
    for (const Quad& q : out) floats.push_back(BitsAs<float>(q[0]));
    return floats;
  };
  using testing::ElementsAre;
  EXPECT_THAT(values(m.Each(m.Make(desc), level, lods)), ElementsAre(100, 200, 300, 100));
  desc.mip_linear = true;
  const uint64_t smooth = m.Make(desc);
  EXPECT_THAT(values(m.Each(smooth, level, lods)), ElementsAre(125, 175, 300, 100));
  EXPECT_THAT(values(m.Each(smooth, "tex.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];", {lods[0]})),
              ElementsAre(100));
  // One step to the right is two texels of level 0, one of level 1.
  EXPECT_THAT(
      values(m.Each(smooth, "tex.grad.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}], {%r3, %r4}, {%r5, %r6};",
                    {Floats(0.5f, 0.5f, 0.5f, 0), Floats(0.5f, 0.5f, 0.25f, 0)}, nullptr,
                    {Floats(0, 0.125f), Floats(0, 1)})),
      ElementsAre(200, 300));
  EXPECT_THAT(values(m.Each(smooth, "tex.level.2d.v4.f32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}], %r3;",
                            {{0, 0, 1}, {0, 0, 2}})),
              ElementsAre(200, 300));
  desc.lod_bias = 1;
  desc.lod_max = 1.5f;
  EXPECT_THAT(values(m.Each(m.Make(desc), level, lods)), ElementsAre(225, 250, 250, 100));
}

TEST(SoftTexture, GatherTakesTheFootprintCounterclockwise) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = desc.height = 3;
  desc.format = static_cast<uint32_t>(TexelFormat::kU8);
  desc.channels = 4;
  for (Address& a : desc.address) a = Address::kClamp;
  std::vector<uint32_t> texels;
  for (uint32_t n = 0; n < 9; ++n) texels.push_back(n | (n + 10) << 8 | (n + 20) << 16 | (n + 30) << 24);
  TextureMachine::Put(desc, m.Upload3(texels, 3, 3));
  const uint64_t handle = m.Make(desc);
  uint32_t base = 0;
  for (const char* component : {"r", "g", "b", "a"}) {
    const auto out =
        m.Each(handle, std::string("tld4.") + component + ".2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];",
               {Floats(1.0f, 1.0f), Floats(2.9f, 1.9f)});
    EXPECT_EQ(out[0], (Quad{base + 3, base + 4, base + 1, base + 0}));
    EXPECT_EQ(out[1], (Quad{base + 8, base + 8, base + 5, base + 5}));
    base += 10;
  }
}

TEST(SoftTexture, QueriesAnswerWhatTheDescriptorSays) {
  TextureMachine m;
  TextureDesc desc;
  desc.shape = Shape::k3d;
  desc.width = 4;
  desc.height = 2;
  desc.depth = 2;
  desc.format = static_cast<uint32_t>(TexelFormat::kHalf);
  desc.channels = 2;
  desc.normalized = true;
  TextureMachine::Put(desc, m.Upload3(std::vector<uint32_t>(16), 4, 2, 2));
  TextureMachine::Put(desc, m.Upload3(std::vector<uint32_t>(2), 2, 1, 1));
  const uint64_t handle = m.Make(desc);
  const auto out = m.Each(handle,
                          "txq.width.b32 %r10, [%rd1]; txq.height.b32 %r11, [%rd1]; txq.depth.b32 %r12, [%rd1];\n"
                          "txq.level.width.b32 %r13, [%rd1], 1;",
                          {{}});
  EXPECT_EQ(out[0], (Quad{4, 2, 2, 2}));
  const auto more = m.Each(handle,
                           "txq.channel_data_type.b32 %r10, [%rd1]; txq.channel_order.b32 %r11, [%rd1];\n"
                           "txq.normalized_coords.b32 %r12, [%rd1]; txq.num_mipmap_levels.b32 %r13, [%rd1];",
                           {{}});
  EXPECT_EQ(more[0], (Quad{0x10, 2, 1, 2}));
}

// Guards and world switches between the parts of an instruction change nothing.
TEST(SoftTexture, IsTheSameUnderAGuardAndInPieces) {
  TextureMachine m;
  TextureDesc desc;
  desc.shape = Shape::k1d;
  desc.width = 64;
  desc.format = static_cast<uint32_t>(TexelFormat::kU32);
  std::vector<uint32_t> texels(64);
  for (uint32_t n = 0; n < 64; ++n) texels[n] = 1000 + n;
  TextureMachine::Put(desc, m.Upload3(texels, 64));
  std::vector<Quad> in;
  for (uint32_t n = 0; n < 64; ++n) in.push_back({n});
  const auto out = m.Each(m.Make(desc),
                          "and.b32 %r20, %r1, 1; setp.eq.u32 %p2, %r20, 0;\n"
                          "@%p2 tex.1d.v4.u32.s32 {%r10,_,%r12,%r13}, [%rd1, {%r1}];",
                          in, nullptr, {}, 1);
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(out[n][0], n % 2 == 0 ? 1000 + n : 0) << n;
}

TEST(SoftTexture, WrongHandlesAndLostMemoryAreFaults) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = 4;
  desc.format = static_cast<uint32_t>(TexelFormat::kU8);
  // Alone on its page, so that the page goes with it.
  const GpuVa memory = m.Alloc(8 << 20);
  desc.levels.push_back({GpuVa{Raw(memory) + (4 << 20)}, 4, 0});
  const uint64_t handle = m.Make(desc);
  const std::string body = "tex.2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];";
  Outcome outcome;
  for (const uint64_t wrong : {handle + 1, handle ^ 0x100000, uint64_t{0}, ~uint64_t{0}}) {
    m.Each(wrong, body, {Floats(0, 0)}, &outcome);
    EXPECT_EQ(outcome.status, CuStatus::kIllegalAddress);
    EXPECT_THAT(outcome.text, HasSubstr("is no texture object"));
  }
  m.Each(handle, "suld.b.2d.b8.trap {%rs1}, [%rd1, {%r1, %r2}];", {{}}, &outcome);
  EXPECT_EQ(outcome.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("is not a surface object"));
  ASSERT_TRUE(m.gpu.Free(memory));
  m.Each(handle, body, {Floats(0, 0)}, &outcome);
  EXPECT_EQ(outcome.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("texture fetch of 1 bytes"));
  EXPECT_TRUE(m.gpu.DestroyTexture(handle));
  EXPECT_FALSE(m.gpu.DestroyTexture(handle));
  const uint64_t next = [&] {
    desc.levels[0].address = m.Alloc(64);
    return m.Make(desc);
  }();
  EXPECT_NE(next, handle);  // the place is used again, the handle is not
}

}  // namespace
}  // namespace vgpud::soft
