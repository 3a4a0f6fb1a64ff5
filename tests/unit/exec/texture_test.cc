// SPDX-License-Identifier: Apache-2.0
// TEXTURE_CREATE and TEXTURE_DESTROY: what the backend is told, what of it is refused before, and who waits for whom.
#include <bit>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

vgpu_texture Plain() {
  vgpu_texture texture{};
  texture.shape = VGPU_TEXTURE_2D;
  texture.width = 16;
  texture.height = 8;
  texture.depth = texture.layers = 1;
  texture.format = 0x20;
  texture.channels = 1;
  texture.levels = 1;
  return texture;
}

uint64_t Create(ExecRig& rig, const vgpu_texture& texture, std::vector<vgpu_texture_level> levels) {
  const size_t level_bytes = levels.size() * sizeof(vgpu_texture_level);
  const auto payload = rig.guest.Take(static_cast<uint32_t>(sizeof texture + level_bytes));
  std::memcpy(payload.at, &texture, sizeof texture);
  std::memcpy(payload.at + sizeof texture, levels.data(), level_bytes);
  return rig.guest.Submit({VGPU_OP_TEXTURE_CREATE, {}, 0, payload});
}

TEST(Texture, ReachesTheBackendAsItWasSent) {
  ExecRig rig;
  const uint64_t memory = rig.Alloc(4096);
  vgpu_texture texture = Plain();
  texture.flags = VGPU_TEXTURE_LINEAR | VGPU_TEXTURE_NORMALIZED | VGPU_TEXTURE_LAYERED;
  texture.layers = 3;
  texture.levels = 2;
  texture.address[1] = 3;
  texture.lod_bias = std::bit_cast<uint32_t>(0.5f);
  texture.border[2] = 77;
  const uint64_t seqno = Create(rig, texture, {{memory, 64, 512}, {memory + 2048, 32, 128}});
  ASSERT_EQ(0u, rig.Status(seqno));
  const TextureDesc& desc = rig.script->textures.at(rig.guest.Completion(seqno)->value[0]);
  EXPECT_TRUE(desc.linear && desc.normalized && desc.layered);
  EXPECT_FALSE(desc.surface || desc.srgb || desc.read_float || desc.mip_linear);
  EXPECT_EQ(3u, desc.layers);
  EXPECT_EQ(TextureDesc::Address::kBorder, desc.address[1]);
  EXPECT_EQ(0.5f, desc.lod_bias);
  EXPECT_EQ(77u, desc.border[2]);
  ASSERT_EQ(2u, desc.levels.size());
  EXPECT_EQ(GpuVa{memory + 2048}, desc.levels[1].address);
  EXPECT_EQ(32u, desc.levels[1].pitch);
  EXPECT_EQ(128u, desc.levels[1].slice);
}

TEST(Texture, TakesVramBesideItsMemoryWhereTheBackendSaysSo) {
  ExecRig rig;
  const uint64_t memory = rig.Alloc(4096);
  const auto free = [&] { return rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO})).value[0]; };
  const uint64_t before = free();
  rig.script->surface_bytes = 8 << 20;
  vgpu_texture surface = Plain();
  surface.flags = VGPU_TEXTURE_SURFACE;
  const uint64_t seqno = Create(rig, surface, {{memory, 64, 0}});
  ASSERT_EQ(0u, rig.Status(seqno));
  EXPECT_EQ(before - (8 << 20), free());
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_TEXTURE_DESTROY, {rig.guest.Completion(seqno)->value[0]}})));
  EXPECT_EQ(before, free());
  rig.script->surface_bytes = rig.vf_quota + 1;
  EXPECT_EQ(2u, rig.Status(Create(rig, surface, {{memory, 64, 0}})));
  EXPECT_TRUE(rig.script->textures.empty());
}

struct BadTexture {
  const char* name;
  void (*damage)(vgpu_texture&);
  const char* text;
};
class TextureForm : public testing::TestWithParam<BadTexture> {};

TEST_P(TextureForm, IsRefusedBeforeTheBackendSeesIt) {
  ExecRig rig;
  vgpu_texture texture = Plain();
  GetParam().damage(texture);
  EXPECT_EQ(1u, rig.Status(Create(rig, texture, {{rig.Alloc(512), 64, 0}})));
  EXPECT_NE(std::string::npos, rig.error_text().find(GetParam().text)) << rig.error_text();
  EXPECT_TRUE(rig.script->textures.empty());
  EXPECT_EQ(0u, rig.guest.sticky());
}

INSTANTIATE_TEST_SUITE_P(, TextureForm,
                         testing::ValuesIn(std::vector<BadTexture>{
                             {"flags", [](vgpu_texture& bad) { bad.flags = 0x80; }, "flags 0x80"},
                             {"mbz", [](vgpu_texture& bad) { bad.mbz = 1; }, "mbz 0x1"},
                             {"no_levels", [](vgpu_texture& bad) { bad.levels = 0; }, "0 levels"},
                             {"more_levels", [](vgpu_texture& bad) { bad.levels = 2; }, "2 levels"},
                             {"endless_levels", [](vgpu_texture& bad) { bad.levels = 0xffffffff; }, "levels"},
                             {"sampled_surface",
                              [](vgpu_texture& bad) { bad.flags = VGPU_TEXTURE_SURFACE | VGPU_TEXTURE_SRGB; },
                              "a surface"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Texture, DestroyWaitsForWorkThatMayUseIt) {
  ExecRig rig;
  const uint64_t created = Create(rig, Plain(), {{rig.Alloc(512), 64, 0}});
  ASSERT_EQ(0u, rig.Status(created));
  const uint64_t handle = rig.guest.Completion(created)->value[0];
  rig.guest.Launch(rig.Kernel("a"), 0);
  const uint64_t destroyed = rig.guest.Submit({VGPU_OP_TEXTURE_DESTROY, {handle}});
  rig.Settle();
  EXPECT_EQ(nullptr, rig.guest.Completion(destroyed));
  EXPECT_EQ(1u, rig.script->textures.count(handle));
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(destroyed));
  EXPECT_TRUE(rig.script->textures.empty());
  EXPECT_EQ(400u, rig.Status(rig.guest.Submit({VGPU_OP_TEXTURE_DESTROY, {handle}})));
}

struct FlagRow {
  uint32_t flag;
  bool TextureDesc::*field;
};
constexpr FlagRow kFlags[] = {{1, &TextureDesc::surface},     {2, &TextureDesc::layered},
                              {4, &TextureDesc::linear},      {8, &TextureDesc::mip_linear},
                              {16, &TextureDesc::normalized}, {32, &TextureDesc::read_float},
                              {64, &TextureDesc::srgb}};

TEST(Texture, EachFlagIsOneThing) {
  for (const FlagRow& row : kFlags) {
    ExecRig rig;
    vgpu_texture texture = Plain();
    texture.flags = row.flag;
    const uint64_t seqno = Create(rig, texture, {{rig.Alloc(512), 64, 0}});
    ASSERT_EQ(0u, rig.Status(seqno)) << row.flag;
    const TextureDesc& desc = rig.script->textures.at(rig.guest.Completion(seqno)->value[0]);
    for (const FlagRow& other : kFlags)
      EXPECT_EQ(other.flag == row.flag, desc.*other.field) << row.flag << " " << other.flag;
  }
}

TEST(Texture, ASurfaceIsNotSampled) {
  for (const FlagRow& row : kFlags) {
    ExecRig rig;
    vgpu_texture texture = Plain();
    texture.flags = VGPU_TEXTURE_SURFACE | row.flag;
    const bool sampling = row.flag > 2;
    EXPECT_EQ(sampling ? 1u : 0u, rig.Status(Create(rig, texture, {{rig.Alloc(512), 64, 0}}))) << row.flag;
  }
}

TEST(Texture, EachFieldHasItsPlace) {
  ExecRig rig;
  vgpu_texture texture{};
  texture.shape = VGPU_TEXTURE_3D;
  texture.width = 11;
  texture.height = 12;
  texture.depth = 13;
  texture.layers = 14;
  texture.format = 15;
  texture.channels = 16;
  texture.levels = 1;
  for (uint32_t axis = 0; axis < 3; ++axis) texture.address[axis] = axis + 1;
  texture.lod_bias = std::bit_cast<uint32_t>(0.25f);
  texture.lod_min = std::bit_cast<uint32_t>(1.25f);
  texture.lod_max = std::bit_cast<uint32_t>(2.25f);
  for (uint32_t channel = 0; channel < 4; ++channel) texture.border[channel] = 20 + channel;
  const uint64_t memory = rig.Alloc(512);
  const uint64_t seqno = Create(rig, texture, {{memory, 31, 32}});
  ASSERT_EQ(0u, rig.Status(seqno));
  const TextureDesc& desc = rig.script->textures.at(rig.guest.Completion(seqno)->value[0]);
  EXPECT_EQ(3, static_cast<int>(desc.shape));
  EXPECT_EQ(11u, desc.width);
  EXPECT_EQ(12u, desc.height);
  EXPECT_EQ(13u, desc.depth);
  EXPECT_EQ(14u, desc.layers);
  EXPECT_EQ(15u, desc.format);
  EXPECT_EQ(16u, desc.channels);
  for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(axis + 1, static_cast<int>(desc.address[axis]));
  EXPECT_EQ(0.25f, desc.lod_bias);
  EXPECT_EQ(1.25f, desc.lod_min);
  EXPECT_EQ(2.25f, desc.lod_max);
  for (uint32_t channel = 0; channel < 4; ++channel) EXPECT_EQ(20 + channel, desc.border[channel]);
  ASSERT_EQ(1u, desc.levels.size());
  EXPECT_EQ(GpuVa{memory}, desc.levels[0].address);
  EXPECT_EQ(31u, desc.levels[0].pitch);
  EXPECT_EQ(32u, desc.levels[0].slice);
}

TEST(Texture, ThereAreAtMost17Levels) {
  for (const uint32_t levels : {17u, 18u}) {
    ExecRig rig;
    vgpu_texture texture = Plain();
    texture.levels = levels;
    const uint64_t memory = rig.Alloc(512);
    EXPECT_EQ(levels == 17 ? 0u : 1u,
              rig.Status(Create(rig, texture, std::vector<vgpu_texture_level>(levels, {memory, 64, 0}))));
  }
}

}  // namespace
}  // namespace vgpud::exec
