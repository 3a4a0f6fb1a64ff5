// SPDX-License-Identifier: Apache-2.0
// What is no texture: descriptors that contradict themselves, one too many, and instructions that are not there.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/texture_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

struct BadDescriptor {
  const char* name;
  void (*damage)(TextureDesc&);
  CuStatus status;
  const char* text;
};
class SoftTextureDescriptor : public testing::TestWithParam<BadDescriptor> {};

TEST_P(SoftTextureDescriptor, IsRefused) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = 16;
  desc.height = 8;
  desc.format = static_cast<uint32_t>(TexelFormat::kFloat);
  desc.levels.push_back({m.Alloc(16 * 8 * 4), 64, 0});
  ASSERT_TRUE(m.gpu.CreateTexture(desc));
  GetParam().damage(desc);
  const auto refused = m.gpu.CreateTexture(desc);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, GetParam().status);
  EXPECT_THAT(refused.error().text, HasSubstr(GetParam().text));
}

constexpr auto kInvalid = CuStatus::kInvalidValue;
INSTANTIATE_TEST_SUITE_P(
    , SoftTextureDescriptor,
    testing::ValuesIn(std::vector<BadDescriptor>{
        {"shape", [](TextureDesc& d) { d.shape = Shape{9}; }, kInvalid, "unknown shape 9"},
        {"width_0", [](TextureDesc& d) { d.width = 0; }, kInvalid, "0 x 8"},
        {"width_wild", [](TextureDesc& d) { d.width = 0xffffffff; }, kInvalid, "at most"},
        {"height_0", [](TextureDesc& d) { d.height = 0; }, kInvalid, "16 x 0"},
        {"depth_of_2d", [](TextureDesc& d) { d.depth = 2; }, kInvalid, "at most"},
        {"layers_of_plain", [](TextureDesc& d) { d.layers = 2; }, kInvalid, "2 layers"},
        {"layers_wild",
         [](TextureDesc& d) {
           d.layers = 0xffffffff;
           d.layered = true;
         },
         kInvalid, "at most"},
        {"cube_not_square",
         [](TextureDesc& d) {
           d.shape = Shape::kCube;
           d.layers = 6;
         },
         kInvalid, "square faces"},
        {"cube_of_5",
         [](TextureDesc& d) {
           d.shape = Shape::kCube;
           d.width = 8;
           d.layers = 5;
         },
         kInvalid, "six per cube"},
        {"format", [](TextureDesc& d) { d.format = 0xb0; }, CuStatus::kNotSupported, "format 0xb0"},
        {"channels", [](TextureDesc& d) { d.channels = 3; }, kInvalid, "3 channels"},
        {"no_level", [](TextureDesc& d) { d.levels.clear(); }, kInvalid, "0 levels"},
        {"many_levels", [](TextureDesc& d) { d.levels.resize(6, d.levels[0]); }, kInvalid, "6 levels"},
        {"address_mode", [](TextureDesc& d) { d.address[1] = Address{4}; }, kInvalid, "address mode 4"},
        {"linear_integers",
         [](TextureDesc& d) {
           d.format = 3;
           d.linear = true;
         },
         kInvalid, "linear filter"},
        {"lod", [](TextureDesc& d) { d.lod_min = __builtin_nanf(""); }, kInvalid, "no number"},
        {"pitch_short", [](TextureDesc& d) { d.levels[0].pitch = 60; }, kInvalid, "pitch does not hold"},
        {"pitch_wild", [](TextureDesc& d) { d.levels[0].pitch = ~uint64_t{0}; }, kInvalid, "pitch"},
        {"too_long", [](TextureDesc& d) { d.height = 9; }, kInvalid, "not inside one allocation"},
        {"slice_wild",
         [](TextureDesc& d) {
           d.layered = true;
           d.layers = 2;
           d.levels[0].slice = ~uint64_t{0};
         },
         kInvalid, "slice"},
        {"elsewhere", [](TextureDesc& d) { d.levels[0].address = GpuVa{0x1000}; }, kInvalid, "not inside"},
        {"misaligned", [](TextureDesc& d) { d.levels[0].address = GpuVa{Raw(d.levels[0].address) + 2}; }, kInvalid,
         "not aligned"},
    }),
    [](const auto& p) { return std::string(p.param.name); });

TEST(SoftTexture, ThereIsABoundOnTheirNumber) {
  TextureMachine m;
  TextureDesc desc;
  desc.width = 1;
  desc.format = static_cast<uint32_t>(TexelFormat::kU8);
  desc.levels.push_back({m.Alloc(1), 0, 0});
  GpuResult<uint64_t> last = m.gpu.CreateTexture(desc);
  uint32_t made = 0;
  while (last && made < 100000) {
    ++made;
    last = m.gpu.CreateTexture(desc);
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(made, 65536u);
  EXPECT_EQ(last.error().status, CuStatus::kOutOfMemory);
}

struct BadForm {
  const char* name;
  const char* text;
};
class SoftTextureForm : public testing::TestWithParam<BadForm> {};

TEST_P(SoftTextureForm, IsRefusedWithItsTextAndLine) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody("", GetParam().text, ".global .texref old_texture;");
  EXPECT_NE(loaded.status, CuStatus::kSuccess);
  EXPECT_THAT(loaded.text, HasSubstr("PTX line "));
  const std::string text(GetParam().text);
  EXPECT_THAT(loaded.text, HasSubstr(text.substr(0, text.size() - 1)));
}

INSTANTIATE_TEST_SUITE_P(, SoftTextureForm,
                         testing::ValuesIn(std::vector<BadForm>{
                             {"sampler", "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, %rd2, {%f1,%f2}];"},
                             {"offset", "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}], {%r1, %r2};"},
                             {"reference", "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [old_texture, {%f1,%f2}];"},
                             {"multisample", "tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1,%r2,%r3,%r4}];"},
                             {"short_coordinates", "tex.3d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}];"},
                             {"short_result", "tex.2d.v4.f32.f32 {%f1,%f2}, [%rd1, {%f1,%f2}];"},
                             {"narrow_handle", "tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%r1, {%f1}];"},
                             {"cube_surface", "sust.b.cube.b32.trap [%rd1, {%r1,%r2,%r3,%r4}], {%r1};"},
                             {"wide_surface_load", "suld.b.2d.v4.b64.trap {%rd1,%rd2,%rd3,%rd4}, [%rd1, {%r1,%r2}];"},
                             {"reduction", "sured.b.xor.2d.b32.trap [%rd1, {%r1,%r2}], %r3;"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace vgpud::soft
