// SPDX-License-Identifier: Apache-2.0
// Levels of detail, gradients, cubes, gathers and odd coordinates against the formulas of the CUDA C++ programming
// guide ("Texture Fetching") in double precision.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/unit/soft/rig/texture_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;

constexpr uint32_t kFloat = 0x20, kU8 = 0x01, kU32 = 0x03;
const char* const kLevel2d = "tex.level.2d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}], %r3;";

std::vector<float> First(const std::vector<Quad>& out) {
  std::vector<float> values;
  for (const Quad& q : out) values.push_back(BitsAs<float>(q[0]));
  return values;
}

class Sampling : public testing::Test {
 protected:
  // Levels of 8 x 8, 4 x 4 ... texels that are all 0, 256, 512 ...
  TextureDesc Levels(size_t count) {
    TextureDesc desc;
    desc.width = desc.height = 8;
    desc.format = kFloat;
    desc.normalized = true;
    desc.lod_max = 100;
    for (size_t n = 0; n < count; ++n) {
      const uint32_t extent = std::max(8u >> n, 1u);
      const auto value = static_cast<float>(256 * n);
      TextureMachine::Put(desc, m.Upload3(std::vector<float>(extent * extent, value), extent, extent));
    }
    return desc;
  }
  std::vector<float> AtLods(const TextureDesc& desc, const std::vector<float>& lods) {
    std::vector<Quad> in;
    for (const float lod : lods) in.push_back(Floats(0.5f, 0.5f, lod));
    return First(m.Each(m.Make(desc), kLevel2d, in));
  }
  TextureMachine m;
};

TEST_F(Sampling, TheNearestLevelIsTaken) {
  const TextureDesc desc = Levels(3);
  EXPECT_THAT(AtLods(desc, {-9, -0.6f, 0, 0.49f, 0.5f, 1, 1.49f, 1.5f, 2, 2.6f, 50, INFINITY, -INFINITY}),
              ElementsAre(0, 0, 0, 0, 256, 256, 256, 512, 512, 512, 512, 512, 0));
}

TEST_F(Sampling, LevelsAreBlendedInStepsOf256) {
  TextureDesc desc = Levels(3);
  desc.mip_linear = true;
  EXPECT_THAT(AtLods(desc, {-1, 0, 0.9f / 512, 1.0f / 512, 1.0f / 256, 100.0f / 256, 255.0f / 256, 255.4f / 256,
                            255.6f / 256, 1, 257.0f / 256, 1.5f, 511.0f / 256, 2, 3}),
              ElementsAre(0, 0, 0, 1, 1, 100, 255, 255, 256, 256, 257, 384, 511, 512, 512));
  EXPECT_THAT(AtLods(Levels(2), {0.4f, 0.6f, 2}), ElementsAre(0, 256, 256));
}

TEST_F(Sampling, EachChannelIsBlended) {
  TextureDesc desc;
  desc.width = 2;
  desc.format = kFloat;
  desc.channels = 4;
  desc.normalized = desc.mip_linear = true;
  desc.lod_max = 9;
  TextureMachine::Put(desc, m.Upload3(std::vector<float>{0, 8, 16, 24, 0, 8, 16, 24}, 8));
  TextureMachine::Put(desc, m.Upload3(std::vector<float>{8, 24, 40, 56}, 4));
  const auto out = m.Each(m.Make(desc), kLevel2d, {Floats(0, 0, 0.25f)});
  const float blended[] = {2, 12, 22, 32};
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(blended[c], BitsAs<float>(out[0][c])) << c;
}

TEST_F(Sampling, TheBiasComesBeforeTheLimits) {
  TextureDesc desc = Levels(4);
  desc.mip_linear = true;
  desc.lod_bias = 0.5f;
  EXPECT_THAT(AtLods(desc, {-1, -0.5f, 0, 1, 2.5f, 3}), ElementsAre(0, 0, 128, 384, 768, 768));
  desc.lod_min = 1.25f;
  desc.lod_max = 2.25f;
  EXPECT_THAT(AtLods(desc, {-1, 0, 0.75f, 1, 1.75f, 3}), ElementsAre(320, 320, 320, 384, 576, 576));
  desc.lod_bias = -1;
  desc.lod_min = -5;
  EXPECT_THAT(AtLods(desc, {0, 1, 2, 9}), ElementsAre(0, 0, 256, 576));
}

TEST_F(Sampling, IntegersOfLevelsAreNotBlended) {
  TextureDesc desc;
  desc.width = 2;
  desc.format = kU32;
  desc.normalized = desc.mip_linear = true;
  desc.lod_max = 9;
  TextureMachine::Put(desc, m.Upload3(std::vector<uint32_t>{10, 10}, 2));
  TextureMachine::Put(desc, m.Upload3(std::vector<uint32_t>{20}, 1));
  const auto out = m.Each(m.Make(desc), "tex.level.2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}], %r3;",
                          {Floats(0, 0, 0.99f), Floats(0, 0, 1)});
  EXPECT_EQ(out[0][0], 10u);
  EXPECT_EQ(out[1][0], 20u);
}

TEST_F(Sampling, TexelsOfEveryLevelAreFetchedByIndex) {
  TextureDesc desc;
  desc.shape = Shape::k3d;
  desc.width = 4;
  desc.height = 4;
  desc.depth = 2;
  desc.format = kU32;
  for (uint32_t n = 0; n < 3; ++n) {
    const uint32_t width = 4u >> n, depth = std::max(2u >> n, 1u);
    std::vector<uint32_t> texels(width * width * depth);
    for (uint32_t t = 0; t < texels.size(); ++t) texels[t] = 1000 * n + t;
    TextureMachine::Put(desc, m.Upload3(texels, width, width, depth));
  }
  for (Address& a : desc.address) a = Address::kClamp;
  const auto out =
      m.Each(m.Make(desc), "tex.level.3d.v4.u32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1,%r2,%r3,%r3}], %r4;",
             {{3, 2, 1, 0},
              {1, 1, 0, 1},
              {9, 0, 9, 1},
              {0, 0, 0, 2},
              {1, 0, 1, 3},
              {2, 3, 0, 0xffffffff},
              {0xffffffff, 1, 0, 1}});
  std::vector<uint32_t> values;
  for (const Quad& q : out) values.push_back(q[0]);
  EXPECT_THAT(values, ElementsAre(16 + 8 + 3, 1003, 1001, 2000, 2000, 14, 1002));
}

TEST_F(Sampling, LinearFiltersWorkOnEveryLevel) {
  TextureDesc desc;
  desc.shape = Shape::k3d;
  desc.width = 8;
  desc.height = 4;
  desc.depth = 4;
  desc.format = kFloat;
  desc.linear = true;
  desc.lod_max = 5;
  desc.normalized = true;
  for (Address& a : desc.address) a = Address::kClamp;
  for (uint32_t n = 0; n < 2; ++n) {
    std::vector<float> texels;
    for (uint32_t z = 0; z < 4u >> n; ++z)
      for (uint32_t y = 0; y < 4u >> n; ++y)
        for (uint32_t x = 0; x < 8u >> n; ++x) texels.push_back(static_cast<float>(x + 10 * y + 100 * z + 1000 * n));
    TextureMachine::Put(desc, m.Upload3(texels, 8u >> n, 4u >> n, 4u >> n));
  }
  // In the middle of level 1 texels (1, 0, 1), half way to its neighbours along each axis.
  const float x = 1.5f / 4, y = 0.5f / 2, z = 1.5f / 2;
  const auto out =
      m.Each(m.Make(desc), "tex.level.3d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1,%r2,%r3,%r3}], 0f3F800000;",
             {Floats(x, y, z), Floats(x + 0.125f, y, z), Floats(x, y + 0.25f, z), Floats(x, y, z - 0.25f),
              Floats(x + 0.0625f, y + 0.125f, z - 0.125f)});
  EXPECT_THAT(First(out), ElementsAre(1101, 1101.5f, 1106, 1051, 1078.75f));
}

// tex.grad of 1D, 3D and cubes: the level is log2 of the longer of both steps in texels.
class Gradients : public Sampling {
 protected:
  TextureDesc Blended(Shape shape, bool normalized = true) {
    TextureDesc desc;
    desc.shape = shape;
    desc.width = 64;
    desc.height = shape == Shape::k1d ? 1 : shape == Shape::kCube ? 64 : 16;
    desc.depth = shape == Shape::k3d ? 8 : 1;
    desc.layers = shape == Shape::kCube ? 6 : 1;
    desc.format = kFloat;
    desc.normalized = normalized;
    desc.mip_linear = true;
    desc.lod_max = 100;
    for (uint32_t n = 0; n < 7; ++n) {
      const uint32_t width = 64u >> n, height = std::max(desc.height >> n, 1u), depth = std::max(desc.depth >> n, 1u);
      const std::vector<float> texels(width * height * depth * desc.layers, static_cast<float>(256 * n));
      TextureMachine::Put(desc, m.Upload3(texels, width, height, depth * desc.layers));
    }
    return desc;
  }
  // `form`: the geometry; `coordinates`, `gradient`: vectors of the instruction.
  float Lod(const TextureDesc& desc, const std::string& form, const Quad& at, const Quad& dx, const Quad& dy) {
    const bool line = form == "1d", plane = form == "2d";
    const auto vector = [&](const char* a, const char* b, const char* c) {
      const std::string all[] = {a, b, c};
      return line ? all[0] : "{" + all[0] + ", " + all[1] + (plane ? "}" : ", " + all[2] + ", " + all[2] + "}");
    };
    std::string body;
    for (int n = 0; n < 3; ++n) body += "mov.b32 %r2" + std::to_string(n) + ", " + std::to_string(dy[n]) + ";\n";
    const std::string coordinates = line ? "{%r1}" : vector("%r1", "%r2", "%r3");
    body += "tex.grad." + form + ".v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, " + coordinates + "], " +
            vector("%r5", "%r6", "%r7") + ", " + vector("%r20", "%r21", "%r22") + ";";
    return First(m.Each(m.Make(desc), body, {at}, nullptr, {dx}))[0] / 256;
  }
};

TEST_F(Gradients, OfLinesPlanesAndVolumes) {
  struct Case {
    Shape shape;
    const char* form;
    Quad dx, dy;
    double lod;
  };
  const float t = 1.0f / 64;
  const Case cases[] = {
      {Shape::k1d, "1d", Floats(t), Floats(0), 0},
      {Shape::k1d, "1d", Floats(4 * t), Floats(0), 2},
      {Shape::k1d, "1d", Floats(0), Floats(-8 * t), 3},
      {Shape::k1d, "1d", Floats(2 * t), Floats(16 * t), 4},
      {Shape::k1d, "1d", Floats(16 * t), Floats(2 * t), 4},
      {Shape::k1d, "1d", Floats(t / 8), Floats(0), 0},
      {Shape::k1d, "1d", Floats(0), Floats(0), 0},
      {Shape::k2d, "2d", Floats(4 * t, 0), Floats(0, 0), 2},
      {Shape::k2d, "2d", Floats(0, 16 * t), Floats(0, 0), 2},
      {Shape::k2d, "2d", Floats(3 * t, 16 * t), Floats(0, 0), std::log2(5)},
      {Shape::k2d, "2d", Floats(0, 0), Floats(3 * t, 16 * t), std::log2(5)},
      {Shape::k3d, "3d", Floats(0, 0, 0.5f), Floats(0, 0, 0), 2},
      {Shape::k3d, "3d", Floats(2 * t, 0.125f, 0.125f), Floats(0, 0, 0), std::log2(3)},
      {Shape::k3d, "3d", Floats(2 * t, 0.125f, 0.125f), Floats(0, 0, 1), 3},
  };
  for (const Case& c : cases)
    EXPECT_NEAR(Lod(Blended(c.shape), c.form, Floats(0.3f, 0.4f, 0.5f), c.dx, c.dy), c.lod, 0.01) << c.form << c.lod;
  EXPECT_NEAR(Lod(Blended(Shape::k2d, false), "2d", Floats(30, 8), Floats(4, 0), Floats(0, 2)), 2, 0.01)
      << "coordinates that are texels";
}

struct OnFace {
  int face;
  double s, t;
};
// The table of the guide, "Cubemap Textures".
OnFace Project(double x, double y, double z) {
  const double ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  if (ax >= ay && ax >= az) return x >= 0 ? OnFace{0, -z / ax, -y / ax} : OnFace{1, z / ax, -y / ax};
  if (ay >= az) return y >= 0 ? OnFace{2, x / ay, z / ay} : OnFace{3, x / ay, -z / ay};
  return z >= 0 ? OnFace{4, x / az, -y / az} : OnFace{5, -x / az, -y / az};
}

TEST_F(Gradients, OfCubesAreThoseOfThePlaceOnTheFace) {
  const TextureDesc desc = Blended(Shape::kCube);
  const float directions[][3] = {{1, 0.25f, -0.5f}, {-2, 0.5f, 0.75f},    {0.5f, 3, -1},
                                 {0.25f, -1, 0.5f}, {-0.5f, 0.25f, 1.5f}, {0.75f, -0.5f, -1}};
  const float steps[][3] = {{0.25f, 0, 0}, {0, 0.25f, 0}, {0, 0, 0.25f}, {0.25f, -0.5f, 0.375f}};
  for (const auto& d : directions)
    for (const auto& step : steps) {
      constexpr double kSmall = 1e-6;
      const OnFace here = Project(d[0], d[1], d[2]);
      const OnFace there = Project(d[0] + kSmall * step[0], d[1] + kSmall * step[1], d[2] + kSmall * step[2]);
      ASSERT_EQ(here.face, there.face);
      const double s = (there.s - here.s) / kSmall / 2 * 64, t = (there.t - here.t) / kSmall / 2 * 64;
      const double lod = std::max(0.0, std::log2(std::sqrt(s * s + t * t)));
      const Quad at = Floats(d[0], d[1], d[2]), change = Floats(step[0], step[1], step[2]), none = Floats(0, 0, 0);
      EXPECT_NEAR(Lod(desc, "cube", at, change, none), lod, 0.01) << here.face;
      EXPECT_NEAR(Lod(desc, "cube", at, none, change), lod, 0.01) << here.face;
    }
}

TEST_F(Sampling, DirectionsMeetTheirTexelOfACube) {
  TextureDesc desc;
  desc.shape = Shape::kCube;
  desc.width = desc.height = 16;
  desc.layers = 12;
  desc.layered = true;
  desc.format = kU32;
  std::vector<uint32_t> texels(16 * 16 * 12);
  for (uint32_t n = 0; n < texels.size(); ++n) texels[n] = n;
  TextureMachine::Put(desc, m.Upload3(texels, 16, 16, 12));
  std::mt19937 random(4);
  std::vector<Quad> in;
  std::vector<uint32_t> expected;
  const auto next = [&] { return static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000) / 100; };
  while (in.size() < 1000) {
    const float x = next(), y = next(), z = next();
    const OnFace on = Project(x, y, z);
    const double s = (on.s + 1) / 2 * 16, t = (on.t + 1) / 2 * 16;
    const auto near = [](double v) { return std::abs(v - std::round(v)) < 1e-3; };
    if (near(s) || near(t) || std::isnan(s)) continue;
    const uint32_t layer = random() % 4;
    in.push_back({layer, BitsAs<uint32_t>(x), BitsAs<uint32_t>(y), BitsAs<uint32_t>(z)});
    expected.push_back((std::min(layer, 1u) * 6 + static_cast<uint32_t>(on.face)) * 256 +
                       static_cast<uint32_t>(t) * 16 + static_cast<uint32_t>(s));
  }
  // On the edges the first of x, y, z wins.
  for (const auto& [x, y, z, face] : {std::tuple(1.0f, 1.0f, 1.0f, 0u),
                                      {-1.0f, 1.0f, -1.0f, 1u},
                                      {0.1f, 1.0f, 1.0f, 2u},
                                      {0.1f, -1.0f, 1.0f, 3u},
                                      {0.1f, 0.1f, 1.0f, 4u},
                                      {0.1f, 0.1f, -1.0f, 5u}}) {
    in.push_back({0, BitsAs<uint32_t>(x), BitsAs<uint32_t>(y), BitsAs<uint32_t>(z)});
    const OnFace on = Project(x, y, z);
    EXPECT_EQ(static_cast<uint32_t>(on.face), face);
    const auto texel = [](double v) { return static_cast<uint32_t>(std::min((v + 1) / 2 * 16, 15.0)); };
    expected.push_back(face * 256 + texel(on.t) * 16 + texel(on.s));
  }
  const auto out =
      m.Each(m.Make(desc), "tex.acube.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r4}];", in);
  for (size_t n = 0; n < in.size(); ++n) ASSERT_EQ(out[n][0], expected[n]) << n;
}

TEST_F(Sampling, GathersSeeBordersAndLayers) {
  TextureDesc desc;
  desc.width = desc.height = 2;
  desc.layers = 2;
  desc.layered = true;
  desc.format = kU8;
  desc.channels = 2;
  for (Address& a : desc.address) a = Address::kBorder;
  for (uint32_t n = 0; n < 4; ++n) desc.border[n] = 90 + n;
  std::vector<uint16_t> texels;
  for (uint16_t n = 0; n < 8; ++n) texels.push_back(static_cast<uint16_t>(n | (n + 50) << 8));
  TextureMachine::Put(desc, m.Upload3(texels, 2, 2, 2));
  const uint64_t handle = m.Make(desc);
  const auto gather = [&](const char* component, uint32_t layer, float x, float y) {
    return m.Each(
        handle,
        std::string("tld4.") + component + ".a2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r3}];",
        {{layer, BitsAs<uint32_t>(x), BitsAs<uint32_t>(y), 0}})[0];
  };
  EXPECT_EQ(gather("r", 0, 1, 1), (Quad{2, 3, 1, 0}));
  EXPECT_EQ(gather("r", 1, 1, 1), (Quad{6, 7, 5, 4}));
  EXPECT_EQ(gather("g", 7, 1, 1), (Quad{56, 57, 55, 54}));
  EXPECT_EQ(gather("r", 0, 0, 0), (Quad{90, 0, 90, 90}));
  EXPECT_EQ(gather("g", 0, 2, 2), (Quad{91, 91, 91, 53}));
  EXPECT_EQ(gather("b", 0, 1, 1), (Quad{0, 0, 0, 0})) << "a channel that it has not";
  EXPECT_EQ(gather("a", 0, 0, 0), (Quad{93, 1, 93, 93}));
  desc.address[1] = Address::kClamp;
  const uint64_t clamped = m.Make(desc);
  EXPECT_EQ(m.Each(clamped, "tld4.r.a2d.v4.u32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2, %r3, %r3}];", {{}})[0],
            (Quad{90, 0, 0, 90}))
      << "each axis has a mode of its own";
}

TEST_F(Sampling, SrgbOfEveryByte) {
  TextureDesc desc;
  desc.shape = Shape::k1d;
  desc.width = 256;
  desc.format = kU8;
  desc.read_float = desc.srgb = true;
  for (const uint32_t channels : {1u, 2u, 4u}) {
    desc.channels = channels;
    std::vector<uint8_t> bytes;
    for (uint32_t n = 0; n < 256 * channels; ++n) bytes.push_back(static_cast<uint8_t>(n / channels));
    desc.levels = {{m.Upload(bytes), 0, 0}};
    std::vector<Quad> in;
    for (uint32_t n = 0; n < 256; ++n) in.push_back({n});
    const auto out = m.Each(m.Make(desc), "tex.1d.v4.f32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1}];", in);
    for (uint32_t n = 0; n < 256; ++n) {
      const double v = n / 255.0;
      const double linear = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
      for (uint32_t c = 0; c < 4; ++c)
        ASSERT_NEAR(BitsAs<float>(out[n][c]), c >= channels ? (c == 3 ? 1 : 0) : c == 3 ? v : linear, 2e-6) << n;
    }
  }
}

// A texture whose middle page is not there any more.
TEST_F(Sampling, OnlyTexelsThatAreGoneAreFaults) {
  constexpr uint32_t kPageRows = (2 << 20) / 128;
  TextureDesc desc;
  desc.width = 32;
  desc.height = 3 * kPageRows;
  desc.format = kFloat;
  const GpuVa whole = *m.gpu.Alloc(6 << 20);
  desc.levels.push_back({whole, 128, 0});
  const uint64_t handle = m.Make(desc);
  ASSERT_TRUE(m.gpu.Free(whole));
  // Four pieces for each page; some room is left on the first one for what the kernel is given.
  std::vector<GpuVa> pieces;
  for (int n = 0; n < 9; ++n) pieces.push_back(*m.gpu.Alloc(512 << 10));
  ASSERT_EQ(pieces.front(), whole);
  for (size_t n = 3; n < 8; ++n) ASSERT_TRUE(m.gpu.Free(pieces[n]));
  const float one = 1;
  ASSERT_TRUE(m.gpu.CopyIn(pieces.front(), std::as_bytes(std::span(&one, 1))));
  std::vector<Quad> ends;
  for (uint32_t n = 0; n < 32; ++n) ends.push_back({0, n % 2 == 0 ? 0 : 2 * kPageRows, 0, 0});
  const std::string fetch = "tex.2d.v4.f32.s32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1, %r2}];";
  Outcome outcome;
  const auto values = First(m.Each(handle, fetch, ends, &outcome));
  EXPECT_EQ(outcome.status, CuStatus::kSuccess) << outcome.text;
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 0);
  for (const uint32_t row : {kPageRows, 2 * kPageRows - 1}) {
    ends[31][1] = row;
    m.Each(handle, fetch, ends, &outcome);
    EXPECT_EQ(outcome.status, CuStatus::kIllegalAddress);
    EXPECT_THAT(outcome.text, testing::HasSubstr("thread (31,0,0)"));
  }
}

TEST_F(Sampling, CoordinatesThatAreNoNumbersOrFarAway) {
  TextureDesc desc;
  desc.shape = Shape::k1d;
  desc.width = 4;
  desc.format = kFloat;
  desc.border[0] = BitsAs<uint32_t>(-1.0f);
  TextureMachine::Put(desc, m.Upload3(std::vector<float>{10, 11, 12, 13}, 4));
  const std::vector<Quad> in = {Floats(NAN),   Floats(INFINITY), Floats(-INFINITY), Floats(1e30f),  Floats(-1e30f),
                                Floats(0),     Floats(-0.0f),    Floats(0.25f),     Floats(0.999f), Floats(1),
                                Floats(1.25f), Floats(-0.25f),   Floats(-1.25f),    Floats(2.5f),   Floats(3.25f)};
  struct Case {
    Address mode;
    std::vector<float> normalized;
  };
  const Case cases[] = {
      {Address::kClamp, {10, 13, 10, 13, 10, 10, 10, 11, 13, 13, 13, 10, 10, 13, 13}},
      {Address::kBorder, {10, -1, -1, -1, -1, 10, 10, 11, 13, -1, -1, -1, -1, -1, -1}},
      {Address::kWrap, {10, 10, 10, 10, 10, 10, 10, 11, 13, 10, 11, 13, 13, 12, 11}},
      {Address::kMirror, {10, 10, 10, 10, 10, 10, 10, 11, 13, 13, 13, 11, 13, 12, 13}},
  };
  for (const Case& c : cases) {
    desc.address[0] = c.mode;
    desc.normalized = true;
    const auto out = First(m.Each(m.Make(desc), "tex.1d.v4.f32.f32 {%r10,%r11,%r12,%r13}, [%rd1, {%r1}];", in));
    EXPECT_EQ(out, c.normalized) << static_cast<int>(c.mode);
  }
}

}  // namespace
}  // namespace vgpud::soft
