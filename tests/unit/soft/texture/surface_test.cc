// SPDX-License-Identifier: Apache-2.0
// suld, sust, sured and suq: bytes arrive where they belong, and what lies outside is treated as the form says.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/texture_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint32_t kWidth = 8, kHeight = 4, kSlices = 3;

struct Surface {
  uint64_t handle;
  TextureMachine::Image image;
};

// Every 32-bit texel holds its number.
Surface MakeSurface(TextureMachine& m, Shape shape, bool layered) {
  TextureDesc desc;
  desc.shape = shape;
  desc.surface = true;
  desc.layered = layered;
  desc.width = kWidth;
  desc.height = shape == Shape::k1d ? 1 : kHeight;
  desc.depth = shape == Shape::k3d ? kSlices : 1;
  desc.layers = layered ? kSlices : 1;
  desc.format = static_cast<uint32_t>(TexelFormat::kU32);
  const uint32_t slices = desc.depth * desc.layers;
  std::vector<uint32_t> texels(kWidth * desc.height * slices);
  for (uint32_t n = 0; n < texels.size(); ++n) texels[n] = n;
  const auto image = m.Upload3(texels, kWidth, desc.height, slices);
  TextureMachine::Put(desc, image);
  return {m.Make(desc), image};
}

struct Geometry {
  const char* name;
  Shape shape;
  bool layered;
  const char* coordinates;  // x, y, slice are in %r1, %r2, %r3
  bool rows, slices;
};
class SoftSurfaceGeometry : public testing::TestWithParam<Geometry> {};

TEST_P(SoftSurfaceGeometry, LoadsAndStoresEveryTexel) {
  const Geometry& g = GetParam();
  TextureMachine m;
  const Surface s = MakeSurface(m, g.shape, g.layered);
  std::vector<Quad> in;
  for (uint32_t z = 0; z < (g.slices ? kSlices : 1); ++z)
    for (uint32_t y = 0; y < (g.rows ? kHeight : 1); ++y)
      for (uint32_t x = 0; x < kWidth; ++x) in.push_back({x * 4, y, z, 0});
  const std::string where = std::string("[%rd1, {") + g.coordinates + "}]";
  const std::string name = g.name;
  const auto out = m.Each(s.handle,
                          "suld.b." + name + ".b32.trap {%r10}, " + where + "; add.u32 %r9, %r10, 1000; sust.b." +
                              name + ".b32.trap " + where + ", {%r9};",
                          in);
  for (uint32_t n = 0; n < in.size(); ++n) {
    EXPECT_EQ(out[n][0], n);
    const GpuVa at{Raw(s.image.address) + in[n][0] + in[n][1] * s.image.pitch + in[n][2] * s.image.slice};
    EXPECT_EQ(m.Download<uint32_t>(at, 1)[0], 1000 + n);
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftSurfaceGeometry,
                         testing::ValuesIn(std::vector<Geometry>{
                             {"1d", Shape::k1d, false, "%r1", false, false},
                             {"2d", Shape::k2d, false, "%r1, %r2", true, false},
                             {"3d", Shape::k3d, false, "%r1, %r2, %r3, %r4", true, true},
                             {"a1d", Shape::k1d, true, "%r3, %r1", false, true},
                             {"a2d", Shape::k2d, true, "%r3, %r1, %r2, %r4", true, true},
                         }),
                         [](const auto& p) { return std::string("s") + p.param.name; });

TEST(SoftSurface, ElementsOfEveryWidth) {
  TextureMachine m;
  const Surface s = MakeSurface(m, Shape::k2d, false);
  const auto row = [&] { return m.Download<uint32_t>(s.image.address, kWidth); };
  m.Each(s.handle,
         "mov.u16 %rs1, 0x11; mov.u16 %rs2, 0x2222; mov.u64 %rd11, 0x3333333344444444; mov.u64 %rd12, 5;\n"
         "sust.b.2d.b8.trap [%rd1, {1, 0}], {%rs1}; sust.b.2d.v2.b16.trap [%rd1, {4, 0}], {%rs2, %rs1};\n"
         "sust.b.2d.b64.trap [%rd1, {8, 0}], {%rd11}; sust.b.2d.v2.b64.trap [%rd1, {16, 0}], {%rd12, %rd11};",
         {{}});
  EXPECT_THAT(row(), testing::ElementsAre(0x1100, 0x00112222, 0x44444444, 0x33333333, 5, 0, 0x44444444, 0x33333333));
  const auto out = m.Each(s.handle,
                          "suld.b.2d.v4.b8.trap {%rs1, %rs2, %rs3, %rs4}, [%rd1, {4, 0}]; cvt.u32.u16 %r10, %rs1;\n"
                          "cvt.u32.u16 %r11, %rs3; suld.b.2d.v2.b64.trap {%rd11, %rd12}, [%rd1, {0, 0}];\n"
                          "cvt.u32.u64 %r12, %rd12; suld.b.2d.v2.b16.trap {%rs5, %rs6}, [%rd1, {4, 0}];\n"
                          "cvt.u32.u16 %r13, %rs5;",
                          {{}});
  EXPECT_EQ(out[0], (Quad{0x22, 0x11, 0x44444444, 0x2222}));
  const auto four = m.Each(s.handle, "suld.b.2d.v4.b32.trap {%r10, %r11, %r12, %r13}, [%rd1, {16, 0}];", {{}});
  EXPECT_EQ(four[0], (Quad{5, 0, 0x44444444, 0x33333333}));
}

TEST(SoftSurface, OutsideIsClampedZeroOrAFault) {
  TextureMachine m;
  const Surface s = MakeSurface(m, Shape::k2d, false);
  const std::vector<Quad> in = {{32, 0}, {0xfffffffc, 2}, {8, 4}, {4, 0xffffffff}, {28, 3}};
  const auto first = [](const std::vector<Quad>& out) {
    std::vector<uint32_t> words;
    for (const Quad& q : out) words.push_back(q[0]);
    return words;
  };
  EXPECT_THAT(first(m.Each(s.handle, "mov.u32 %r10, 77; suld.b.2d.b32.clamp {%r10}, [%rd1, {%r1, %r2}];", in)),
              testing::ElementsAre(7, 16, 26, 1, 31));
  EXPECT_THAT(first(m.Each(s.handle, "mov.u32 %r10, 77; suld.b.2d.b32.zero {%r10}, [%rd1, {%r1, %r2}];", in)),
              testing::ElementsAre(0, 0, 0, 0, 31));
  m.Each(s.handle, "sust.b.2d.b32.zero [%rd1, {%r1, %r2}], {900};", {{32, 0}, {0, 4}});
  m.Each(s.handle, "sust.b.2d.b32.clamp [%rd1, {%r1, %r2}], {901};", {{32, 9}});
  EXPECT_EQ(m.Download<uint32_t>(s.image.address, 1)[0], 0u);
  EXPECT_EQ(m.Download<uint32_t>(GpuVa{Raw(s.image.address) + 3 * s.image.pitch + 28}, 1)[0], 901u);
  for (const Quad& outside : in) {
    if (outside[0] == 28) continue;
    Outcome outcome;
    m.Each(s.handle, "suld.b.2d.b32.trap {%r10}, [%rd1, {%r1, %r2}];", {outside}, &outcome);
    EXPECT_EQ(outcome.status, CuStatus::kLaunchFailed);
    EXPECT_THAT(outcome.text, HasSubstr("is outside of a surface of 8 x 4"));
  }
  Outcome outcome;
  m.Each(s.handle, "suld.b.2d.b32.trap {%r10}, [%rd1, {2, 0}];", {{}}, &outcome);
  EXPECT_EQ(outcome.status, CuStatus::kMisalignedAddress);
}

// No element of a surface that is narrower than the access is inside.
TEST(SoftSurface, AccessWiderThanTheSurfaceIsAFault) {
  TextureMachine m;
  TextureDesc desc;
  desc.surface = true;
  desc.width = 1;
  desc.format = static_cast<uint32_t>(TexelFormat::kU8);
  desc.levels.push_back({m.Alloc(1), 0, 0});
  const uint64_t handle = m.Make(desc);
  for (const char* how : {"clamp", "trap"}) {
    Outcome outcome;
    m.Each(handle, std::string("sust.b.2d.v4.b32.") + how + " [%rd1, {0, 0}], {%r1, %r1, %r1, %r1};", {{}}, &outcome);
    EXPECT_EQ(outcome.status, CuStatus::kLaunchFailed) << how;
  }
}

TEST(SoftSurface, FormattedStoresConvert) {
  struct Case {
    TexelFormat format;
    uint32_t channels;
    Quad value;
    std::vector<uint8_t> expected;
  };
  for (const Case& c : std::vector<Case>{
           {TexelFormat::kU8, 4, {1, 300, 255, 7}, {1, 255, 255, 7}},
           {TexelFormat::kS8, 2, {0xffffff00, 5, 0, 0}, {0x80, 5}},
           {TexelFormat::kU16, 1, {70000, 0, 0, 0}, {0xff, 0xff}},
           {TexelFormat::kS16, 1, {0xffff0000, 0, 0, 0}, {0, 0x80}},
           {TexelFormat::kHalf, 1, Floats(1.5f), {0, 0x3e}},
           {TexelFormat::kFloat, 1, Floats(1.0f), {0, 0, 0x80, 0x3f}},
       }) {
    TextureMachine m;
    TextureDesc desc;
    desc.surface = true;
    desc.width = 2;
    desc.format = static_cast<uint32_t>(c.format);
    desc.channels = c.channels;
    desc.levels.push_back({m.Alloc(16), 16, 0});
    m.Each(m.Make(desc), "sust.p.2d.v4.b32.trap [%rd1, {1, 0}], {%r1, %r2, %r3, %r4};", {c.value});
    EXPECT_EQ(m.Download<uint8_t>(GpuVa{Raw(desc.levels[0].address) + c.expected.size()}, c.expected.size()),
              c.expected);
  }
}

TEST(SoftSurface, StoredIntegersAreClampedToTheirChannel) {
  struct Case {
    TexelFormat format;
    uint32_t bytes;
    std::vector<std::pair<int64_t, uint32_t>> stored;  // what is stored, what is there then
  };
  const Case cases[] = {
      {TexelFormat::kU8, 1, {{0, 0}, {1, 1}, {254, 254}, {255, 255}, {256, 255}, {-1, 255}}},
      {TexelFormat::kS8, 1, {{126, 126}, {127, 127}, {128, 127}, {-1, 255}, {-127, 129}, {-128, 128}, {-129, 128}}},
      {TexelFormat::kU16, 2, {{0, 0}, {65534, 65534}, {65535, 65535}, {65536, 65535}, {-1, 65535}}},
      {TexelFormat::kS16, 2, {{32766, 32766}, {32767, 32767}, {32768, 32767}, {-32768, 32768}, {-32769, 32768}}},
      {TexelFormat::kU32, 4, {{0, 0}, {-1, 0xffffffff}, {INT32_MAX, INT32_MAX}}},
      {TexelFormat::kS32, 4, {{0, 0}, {-1, 0xffffffff}, {INT32_MIN, 0x80000000}}},
  };
  TextureMachine m;
  for (const Case& c : cases) {
    TextureDesc desc;
    desc.surface = true;
    desc.shape = Shape::k1d;
    desc.width = 16;
    desc.format = static_cast<uint32_t>(c.format);
    desc.levels.push_back({m.Upload(std::vector<uint8_t>(64, 0x77)), 0, 0});
    std::vector<Quad> in;
    for (const auto& [value, there] : c.stored)
      in.push_back({static_cast<uint32_t>(in.size()), static_cast<uint32_t>(value)});
    m.Each(m.Make(desc), "sust.p.1d.b32.trap [%rd1, {%r1}], {%r2};", in);
    const auto bytes = m.Download<uint8_t>(desc.levels[0].address, 64);
    for (size_t n = 0; n < c.stored.size(); ++n) {
      uint32_t there = 0;
      std::memcpy(&there, &bytes[n * c.bytes], c.bytes);
      EXPECT_EQ(there, c.stored[n].second) << c.bytes << " bytes, " << c.stored[n].first;
    }
    EXPECT_EQ(bytes[c.stored.size() * c.bytes], 0x77) << "the next texel";
  }
}

TEST(SoftSurface, ReductionsOfAllLanesArrive) {
  struct Case {
    const char* form;
    uint64_t start, expected;
  };
  const auto run = [](const std::string& ptx, uint64_t start) {
    TextureMachine m;
    TextureDesc desc;
    desc.surface = true;
    desc.width = 1;
    desc.format = static_cast<uint32_t>(TexelFormat::kU32);
    desc.channels = 2;
    desc.levels.push_back({m.Upload(std::vector<uint64_t>{start}), 8, 0});
    std::vector<Quad> in;
    for (uint32_t n = 0; n < 64; ++n) in.push_back({n, n + 1 - 32});
    m.Each(m.Make(desc), "cvt.s64.s32 %rd11, %r2;\n" + ptx, in);
    return m.Download<uint64_t>(desc.levels[0].address, 1)[0];
  };
  EXPECT_EQ(run("sured.b.add.2d.u32.trap [%rd1, {0, 0}], %r1;", 5), 5u + 63 * 32);
  EXPECT_EQ(run("sured.b.min.2d.s32.trap [%rd1, {0, 0}], %r2;", 5), uint64_t{0xffffffe1});
  EXPECT_EQ(run("sured.b.max.2d.u32.clamp [%rd1, {0, 0}], %r1;", 5), 63u);
  EXPECT_EQ(run("sured.b.and.2d.b32.zero [%rd1, {4, 0}], %r1;", ~uint64_t{0}), uint64_t{0xffffffff});
  EXPECT_EQ(run("sured.b.or.1d.b32.trap [%rd1, {0}], %r1;", 0x100), 0x13fu);
  EXPECT_EQ(run("sured.b.add.2d.u64.trap [%rd1, {0, 0}], %rd11;", 0), static_cast<uint64_t>(64 * 65 / 2 - 32 * 64));
  EXPECT_EQ(run("sured.b.min.2d.s64.trap [%rd1, {0, 0}], %rd11;", 0), static_cast<uint64_t>(-31));
  EXPECT_EQ(run("sured.p.max.2d.b32.trap [%rd1, {0, 0}], %r1;", 5), 63u);
}

TEST(SoftSurface, QueriesAnswerWhatTheDescriptorSays) {
  TextureMachine m;
  const Surface s = MakeSurface(m, Shape::k2d, true);
  const auto out = m.Each(s.handle,
                          "suq.width.b32 %r10, [%rd1]; suq.height.b32 %r11, [%rd1]; suq.array_size.b32 %r12, [%rd1];\n"
                          "suq.channel_data_type.b32 %r13, [%rd1];",
                          {{}});
  EXPECT_EQ(out[0], (Quad{kWidth, kHeight, kSlices, 3}));
}

}  // namespace
}  // namespace vgpud::soft
