// SPDX-License-Identifier: Apache-2.0
// The limits of textures: extents as the device attributes say (CUDA C++ Programming Guide, "Technical Specifications
// per Compute Capability"), levels, where their texels may lie, handles, and what a file may say of them.
#include <gmock/gmock.h>

#include <cmath>

#include "gpu/soft/texture/texture.h"
#include "tests/unit/soft/rig/state_fields.h"

namespace vgpud::soft {
namespace {

using Address = TextureDesc::Address;
using Shape = TextureDesc::Shape;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kBase = 0x700000000000;
constexpr uint32_t kU8 = 0x01, kU16 = 0x02, kU32 = 0x03, kS8 = 0x08, kS16 = 0x09, kS32 = 0x0a, kHalf = 0x10,
                   kFloat = 0x20;

class TextureLimits : public testing::Test {
 protected:
  TextureLimits() : arena(2 << 20) { EXPECT_TRUE(arena.Alloc(1 << 20, false)); }
  // "": it can be made.
  std::string Refusal(const TextureDesc& desc, bool memory_gone = false) const {
    const auto made = MakeTexture(desc, arena, memory_gone);
    return made ? "" : made.error().text;
  }
  static TextureDesc Desc(Shape shape, uint32_t width, uint32_t height = 1, uint32_t depth = 1, uint32_t layers = 1) {
    TextureDesc desc;
    desc.shape = shape;
    desc.width = width;
    desc.height = height;
    desc.depth = depth;
    desc.layers = layers;
    desc.layered = layers > 1 && shape != Shape::k3d;
    desc.format = kU8;
    desc.levels.push_back({GpuVa{kBase}, 0, 0});
    return desc;
  }
  Arena arena;
};

struct ExtentCase {
  Shape shape;
  uint32_t width, height, depth, layers;
  bool allowed;
};

TEST_F(TextureLimits, ExtentsAreThoseOfTheDevice) {
  const ExtentCase cases[] = {
      {Shape::kBuffer, 1u << 28, 1, 1, 1, true}, {Shape::kBuffer, (1u << 28) + 1, 1, 1, 1, false},
      {Shape::kBuffer, 1, 2, 1, 1, false},       {Shape::kBuffer, 1, 1, 2, 1, false},
      {Shape::k1d, 131072, 1, 1, 1, true},       {Shape::k1d, 131073, 1, 1, 1, false},
      {Shape::k1d, 1, 2, 1, 1, false},           {Shape::k1d, 1, 1, 2, 1, false},
      {Shape::k1d, 1, 1, 1, 2048, true},         {Shape::k1d, 1, 1, 1, 2049, false},
      {Shape::k2d, 131072, 1, 1, 1, true},       {Shape::k2d, 131073, 1, 1, 1, false},
      {Shape::k2d, 1, 65536, 1, 1, true},        {Shape::k2d, 1, 65537, 1, 1, false},
      {Shape::k2d, 1, 1, 2, 1, false},           {Shape::k2d, 1, 1, 1, 2048, true},
      {Shape::k2d, 1, 1, 1, 2049, false},        {Shape::k3d, 32768, 1, 1, 1, true},
      {Shape::k3d, 32769, 1, 1, 1, false},       {Shape::k3d, 1, 16384, 1, 1, true},
      {Shape::k3d, 1, 16385, 1, 1, false},       {Shape::k3d, 1, 1, 32768, 1, true},
      {Shape::k3d, 1, 1, 32769, 1, false},       {Shape::k3d, 1, 1, 1, 2, false},
      {Shape::kCube, 32768, 32768, 1, 6, true},  {Shape::kCube, 32769, 32769, 1, 6, false},
      {Shape::kCube, 2, 1, 1, 6, false},         {Shape::kCube, 1, 1, 2, 6, false},
      {Shape::kCube, 1, 1, 1, 1, false},         {Shape::kCube, 1, 1, 1, 6, true},
      {Shape::kCube, 1, 1, 1, 7, false},         {Shape::kCube, 1, 1, 1, 2046 * 6, true},
      {Shape::kCube, 1, 1, 1, 2047 * 6, false},  {Shape::k2d, 0, 1, 1, 1, false},
      {Shape::k2d, 1, 0, 1, 1, false},           {Shape::k2d, 1, 1, 0, 1, false},
      {Shape::k2d, 1, 1, 1, 0, false},           {Shape::k2d, 1, 1, 1, 1, true},
  };
  for (const ExtentCase& c : cases) {
    const std::string text = Refusal(Desc(c.shape, c.width, c.height, c.depth, c.layers));
    const std::string what = testing::PrintToString(c.width) + " x " + testing::PrintToString(c.height) + " x " +
                             testing::PrintToString(c.depth) + ", " + testing::PrintToString(c.layers);
    // One that is allowed may be too large for this memory.
    if (c.allowed) {
      EXPECT_THAT(text, Not(HasSubstr("at most"))) << what;
    } else {
      EXPECT_THAT(text, HasSubstr("at most")) << what;
    }
  }
  TextureDesc layers = Desc(Shape::k2d, 1, 1, 1, 2);
  layers.layered = false;
  EXPECT_THAT(Refusal(layers), HasSubstr("at most")) << "layers of one that is not layered";
  for (const uint32_t shape : {5u, 6u, 1000u}) {
    TextureDesc unknown = Desc(Shape{shape}, 1);
    EXPECT_THAT(Refusal(unknown), HasSubstr("unknown shape"));
  }
}

TEST_F(TextureLimits, LevelsHalveTheLongestExtent) {
  struct Case {
    Shape shape;
    uint32_t width, height, depth;
    size_t levels;  // at most
  };
  const Case cases[] = {{Shape::k1d, 1, 1, 1, 1},      {Shape::k1d, 2, 1, 1, 2},      {Shape::k1d, 3, 1, 1, 2},
                        {Shape::k1d, 4, 1, 1, 3},      {Shape::k2d, 1, 16, 1, 5},     {Shape::k2d, 31, 16, 1, 5},
                        {Shape::k3d, 2, 2, 64, 7},     {Shape::k1d, 65536, 1, 1, 17}, {Shape::k1d, 131072, 1, 1, 17},
                        {Shape::kBuffer, 100, 1, 1, 1}};
  for (const Case& c : cases)
    for (size_t levels = 0; levels <= c.levels + 1; ++levels) {
      TextureDesc desc = Desc(c.shape, c.width, c.height, c.depth);
      desc.levels.assign(levels, {GpuVa{kBase}, c.width, uint64_t{c.width} * c.height});
      const std::string text = Refusal(desc);
      if (levels != 0 && levels <= c.levels) {
        EXPECT_EQ(text, "") << c.width << ", " << levels;
      } else {
        EXPECT_THAT(text, HasSubstr("with " + std::to_string(levels) + " levels")) << c.width;
      }
    }
  TextureDesc layered = Desc(Shape::kBuffer, 4);
  layered.layered = true;
  EXPECT_THAT(Refusal(layered), HasSubstr("layered"));
}

TEST_F(TextureLimits, SamplingIsCheckedForTexturesOnly) {
  const auto changed = [&](const std::function<void(TextureDesc&)>& change) {
    TextureDesc desc = Desc(Shape::k3d, 1);
    desc.format = kFloat;
    change(desc);
    const std::string text = Refusal(desc);
    desc.surface = true;
    EXPECT_EQ(Refusal(desc), "") << "of a surface these mean nothing";
    return text;
  };
  for (const int axis : {0, 1, 2}) {
    EXPECT_EQ(changed([&](TextureDesc& d) { d.address[axis] = Address::kBorder; }), "");
    EXPECT_THAT(changed([&](TextureDesc& d) { d.address[axis] = Address{4}; }), HasSubstr("unknown address mode 4"));
  }
  const float inf = INFINITY, nan = NAN;
  for (const float bad : {inf, -inf, nan})
    EXPECT_THAT(changed([&](TextureDesc& d) { d.lod_bias = bad; }), HasSubstr("no number"));
  for (const float fine : {inf, -inf, 3.0f}) {
    EXPECT_EQ(changed([&](TextureDesc& d) { d.lod_min = fine; }), "");
    EXPECT_EQ(changed([&](TextureDesc& d) { d.lod_max = fine; }), "");
  }
  EXPECT_THAT(changed([&](TextureDesc& d) { d.lod_min = nan; }), HasSubstr("no number"));
  EXPECT_THAT(changed([&](TextureDesc& d) { d.lod_max = nan; }), HasSubstr("no number"));
}

struct FormatCase {
  uint32_t format;
  uint32_t bytes;
  bool is_float;
  bool can_scale;  // read as floats from 0 or -1 to 1
};

TEST_F(TextureLimits, FormatsSayHowLongTexelsAreAndWhatIsFiltered) {
  const FormatCase cases[] = {{kU8, 1, false, true},   {kU16, 2, false, true},  {kU32, 4, false, false},
                              {kS8, 1, false, true},   {kS16, 2, false, true},  {kS32, 4, false, false},
                              {kHalf, 2, true, false}, {kFloat, 4, true, false}};
  for (const FormatCase& c : cases)
    for (const uint32_t channels : {1u, 2u, 4u})
      for (const bool read_float : {false, true}) {
        TextureDesc desc = Desc(Shape::k1d, 1);
        desc.format = c.format;
        desc.channels = channels;
        desc.read_float = read_float;
        const auto made = MakeTexture(desc, arena, false);
        ASSERT_TRUE(made) << made.error().text;
        const Texture& t = **made;
        EXPECT_EQ(static_cast<uint32_t>(t.format), c.format);
        EXPECT_EQ(t.channel_bytes, c.bytes);
        EXPECT_EQ(t.texel_bytes, c.bytes * channels);
        EXPECT_EQ(t.scaled, c.can_scale && read_float) << c.format;
        EXPECT_EQ(t.as_float, c.is_float || (c.can_scale && read_float)) << c.format;
        desc.linear = true;
        EXPECT_EQ(Refusal(desc) == "", t.as_float) << c.format;
      }
  for (const uint32_t format : {0u, 4u, 7u, 11u, 0x0fu, 0x11u, 0x21u, 0xb0u}) {
    TextureDesc desc = Desc(Shape::k1d, 1);
    desc.format = format;
    EXPECT_EQ(MakeTexture(desc, arena, false).error().status, CuStatus::kNotSupported) << format;
  }
  for (const uint32_t channels : {0u, 3u, 5u, 8u}) {
    TextureDesc desc = Desc(Shape::k1d, 1);
    desc.channels = channels;
    EXPECT_THAT(Refusal(desc), HasSubstr("channels: 1, 2 or 4"));
  }
}

constexpr const char* kPitch = "the pitch does not hold a row";
constexpr const char* kSlice = "the slice does not hold its rows";
constexpr const char* kAligned = "texels are not aligned";
constexpr const char* kOutside = "not inside one allocation";

// Texels of 4 bytes.
TEST_F(TextureLimits, LevelsLieInsideOneAllocation) {
  struct Case {
    const char* name;
    Shape shape;
    uint32_t width, height, depth, layers;
    uint64_t asked;  // the allocation
    uint64_t offset, pitch, slice;
    const char* text;
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const Case cases[] = {
      {"line", Shape::k1d, 16, 1, 1, 1, 64, 0, 0, 0, ""},
      {"line too long", Shape::k1d, 17, 1, 1, 1, 64, 0, 0, 0, kOutside},
      {"pitch of a line means nothing", Shape::k1d, 16, 1, 1, 1, 64, 0, 3 * kGiB + 1, 5, ""},
      {"rows", Shape::k2d, 4, 3, 1, 1, 48, 0, 16, 0, ""},
      {"rows with room", Shape::k2d, 4, 3, 1, 1, 56, 0, 20, 0, ""},
      {"rows with room, too short", Shape::k2d, 4, 3, 1, 1, 55, 0, 20, 0, kOutside},
      {"rows behind the start", Shape::k2d, 4, 3, 1, 1, 52, 4, 16, 0, ""},
      {"rows behind the start, too short", Shape::k2d, 4, 3, 1, 1, 51, 4, 16, 0, kOutside},
      {"short pitch", Shape::k2d, 4, 3, 1, 1, 48, 0, 15, 0, kPitch},
      {"odd pitch", Shape::k2d, 4, 3, 1, 1, 96, 0, 18, 0, kAligned},
      {"odd place", Shape::k2d, 4, 3, 1, 1, 96, 2, 16, 0, kAligned},
      {"greatest pitch", Shape::k2d, 4, 2, 1, 1, 96, 0, 2 * kGiB, 0, kOutside},
      {"greater pitch", Shape::k2d, 4, 2, 1, 1, 96, 0, 2 * kGiB + 4, 0, kPitch},
      {"layers", Shape::k2d, 4, 2, 1, 3, 96, 0, 16, 32, ""},
      {"layers with room", Shape::k2d, 4, 2, 1, 3, 104, 0, 16, 36, ""},
      {"layers with room, too short", Shape::k2d, 4, 2, 1, 3, 103, 0, 16, 36, kOutside},
      {"short slice", Shape::k2d, 4, 2, 1, 3, 96, 0, 16, 31, kSlice},
      {"odd slice", Shape::k2d, 4, 2, 1, 3, 200, 0, 16, 34, kAligned},
      {"odd slice of two", Shape::k2d, 4, 2, 1, 2, 200, 0, 16, 34, kAligned},
      {"slice as large as the device", Shape::k2d, 4, 2, 1, 2, 96, 0, 16, 2 << 20, kOutside},
      {"larger slice", Shape::k2d, 4, 2, 1, 2, 96, 0, 16, (2 << 20) + 4, kSlice},
      {"layers of lines", Shape::k1d, 4, 1, 1, 3, 48, 0, 0, 16, ""},
      {"depth", Shape::k3d, 4, 2, 3, 1, 96, 0, 16, 32, ""},
      {"depth, too short", Shape::k3d, 4, 2, 3, 1, 95, 0, 16, 32, kOutside},
      {"slice of one image means nothing", Shape::k2d, 4, 2, 1, 1, 32, 0, 16, 3, ""},
      {"faces", Shape::kCube, 2, 2, 1, 6, 96, 0, 8, 16, ""},
      {"faces, too short", Shape::kCube, 2, 2, 1, 6, 95, 0, 8, 16, kOutside},
  };
  for (const Case& c : cases) {
    Arena memory(2 << 20);
    const uint64_t at = Raw(*memory.Alloc(c.asked, false)) + c.offset;
    TextureDesc desc = Desc(c.shape, c.width, c.height, c.depth, c.layers);
    desc.format = kU32;
    desc.levels[0] = {GpuVa{at}, c.pitch, c.slice};
    const auto made = MakeTexture(desc, memory, false);
    if (*c.text != '\0') {
      ASSERT_FALSE(made) << c.name;
      EXPECT_EQ(made.error().status, CuStatus::kInvalidValue);
      EXPECT_THAT(made.error().text, HasSubstr(c.text)) << c.name;
      continue;
    }
    ASSERT_TRUE(made) << c.name << ": " << made.error().text;
    const TextureLevel& level = (*made)->levels[0];
    EXPECT_EQ(level.offset, ReachSpace::kBytes + c.offset);
    EXPECT_EQ(level.pitch, c.pitch);
    EXPECT_EQ(level.slice, c.slice);
    EXPECT_EQ((*made)->slices, c.layers);
  }
}

TEST_F(TextureLimits, EachLevelHasHalfTheExtentsAtLeastOne) {
  TextureDesc desc = Desc(Shape::k3d, 9, 4, 2);
  const uint32_t extents[4][3] = {{9, 4, 2}, {4, 2, 1}, {2, 1, 1}, {1, 1, 1}};
  desc.levels.assign(4, {GpuVa{kBase}, 16, 64});
  const auto made = MakeTexture(desc, arena, false);
  ASSERT_TRUE(made) << made.error().text;
  for (size_t n = 0; n < 4; ++n) {
    const TextureLevel& level = (*made)->levels[n];
    EXPECT_EQ(level.width, extents[n][0]) << n;
    EXPECT_EQ(level.height, extents[n][1]) << n;
    EXPECT_EQ(level.depth, extents[n][2]) << n;
  }
  desc.levels[2].address = GpuVa{kBase + (1 << 20) - 1};
  EXPECT_THAT(Refusal(desc), HasSubstr("texture level 2"));
  desc.levels[2].address = GpuVa{kBase + (1 << 20) - 2};
  EXPECT_EQ(Refusal(desc), "");
}

// As when a context is read back.
TEST_F(TextureLimits, MemoryThatIsGoneIsInsideTheDeviceAllTheSame) {
  TextureDesc desc = Desc(Shape::k1d, 512);
  constexpr uint64_t kEnd = kBase + (2 << 20);
  for (const auto& [at, fine] : {std::pair{kBase, true},
                                 {kBase + (1 << 20), true},
                                 {kEnd - 512, true},
                                 {kEnd - 511, false},
                                 {kEnd, false},
                                 {kBase - 1, false},
                                 {uint64_t{0}, false}}) {
    desc.levels[0].address = GpuVa{at};
    EXPECT_EQ(Refusal(desc, true) == "", fine) << at;
    EXPECT_EQ(Refusal(desc, false) == "", at == kBase) << at;
  }
}

TEST_F(TextureLimits, HandlesHaveAGenerationAndAPlace) {
  EXPECT_EQ(TextureHandle(1, 0), 0x00f1000000100000u);
  EXPECT_EQ(TextureHandle(0xffffff, 0xffff), 0x00f10ffffff0ffffu);
  TextureTable table;
  EXPECT_TRUE(table.empty());
  const TextureDesc desc = Desc(Shape::k1d, 4);
  const uint64_t first = *table.Add(desc, arena);
  EXPECT_EQ(first, TextureHandle(1, 0));
  const uint64_t second = *table.Add(desc, arena);
  EXPECT_EQ(second, TextureHandle(2, 1));
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.Find(second)->handle, second);
  for (const uint64_t wrong : {TextureHandle(1, 1), TextureHandle(2, 0), TextureHandle(3, 2), second & 0xfffff})
    EXPECT_EQ(table.Find(wrong), nullptr);
  EXPECT_EQ(table.Remove(TextureHandle(1, 1)).error().status, CuStatus::kInvalidHandle);
  ASSERT_TRUE(table.Remove(first));
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_FALSE(table.Remove(first));
  EXPECT_EQ(*table.Add(desc, arena), TextureHandle(3, 0)) << "the place is used again";
  EXPECT_EQ(*table.Add(desc, arena), TextureHandle(4, 2));
}

// A texture of a line of `width` bytes.
StateFields& PutLine(StateFields& fields, uint32_t width, uint64_t levels = 1, uint8_t flag = 0) {
  fields.U32(1);
  for (const uint8_t value : {uint8_t{0}, uint8_t{0}, uint8_t{0}, flag, uint8_t{1}, uint8_t{0}, uint8_t{0}})
    fields.U8(value);
  for (const uint32_t value : {width, 1u, 1u, 1u, kU8, 1u}) fields.U32(value);
  for (const float value : {0.5f, -1.0f, 3.0f}) fields.Put(value);
  for (const uint32_t mode : {0u, 1u, 3u}) fields.U32(mode);
  for (const uint32_t bits : {10u, 11u, 12u, 13u}) fields.U32(bits);
  fields.U64(levels);
  for (uint64_t n = 0; n < std::min<uint64_t>(levels, 64); ++n) fields.U64(kBase).U64(100).U64(200);
  return fields;
}

GpuError LoadError(const Arena& arena, const StateFields& fields) {
  TextureTable table;
  return ErrorOfReading(fields.bytes(), [&](StateReader& in) { table.Load(in, arena); });
}

TEST_F(TextureLimits, AFileSaysEveryField) {
  StateFields fields;
  fields.U64(77).U64(3).U64(0).U64(TextureHandle(5, 1));
  PutLine(fields, 16, 1, 1).U64(0).U32(2).U32(0);
  TextureTable table;
  ASSERT_EQ(ErrorOfReading(fields.bytes(), [&](StateReader& in) { table.Load(in, arena); }).text, "");
  const Texture* t = table.Find(TextureHandle(5, 1));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->desc.shape, Shape::k1d);
  EXPECT_EQ(t->desc.width, 16u);
  EXPECT_TRUE(t->desc.mip_linear && t->desc.normalized);
  EXPECT_FALSE(t->desc.layered || t->desc.surface || t->desc.linear || t->desc.read_float || t->desc.srgb);
  EXPECT_EQ(t->desc.lod_bias, 0.5f);
  EXPECT_EQ(t->desc.lod_min, -1.0f);
  EXPECT_EQ(t->desc.lod_max, 3.0f);
  EXPECT_EQ(t->desc.address[2], Address::kBorder);
  EXPECT_EQ(t->desc.border[3], 13u);
  const auto again = Written([&](StateWriter& out) { table.Save(out); });
  auto same = fields.bytes();
  same.resize((same.size() + 7) / 8 * 8);
  EXPECT_EQ(again, same);
  const TextureDesc desc = Desc(Shape::k1d, 4);
  EXPECT_EQ(*table.Add(desc, arena), TextureHandle(78, 0)) << "the last one that became free";
  EXPECT_EQ(*table.Add(desc, arena), TextureHandle(79, 2));
  EXPECT_EQ(*table.Add(desc, arena), TextureHandle(80, 3));
}

TEST_F(TextureLimits, GenerationsBeginAgain) {
  TextureTable table;
  const auto last = StateFields().U64(0xffffff).U64(0);
  ASSERT_EQ(ErrorOfReading(last.bytes(), [&](StateReader& in) { table.Load(in, arena); }).text, "");
  EXPECT_EQ(*table.Add(Desc(Shape::k1d, 4), arena), TextureHandle(0, 0));
}

TEST_F(TextureLimits, WhatAFileSaysOfTexturesIsChecked) {
  const auto of = [](uint64_t handle, uint32_t width = 16, uint64_t levels = 1, uint8_t flag = 0) {
    StateFields fields;
    fields.U64(1).U64(1).U64(handle);
    return PutLine(fields, width, levels, flag);
  };
  struct Case {
    StateFields fields;
    const char* text;
  };
  const Case cases[] = {
      {of(TextureHandle(9, 0)), ""},
      {of(TextureHandle(0, 0)), ""},
      {of(TextureHandle(0xffffff, 0)), ""},
      {of(TextureHandle(0x1000000, 0)), "bad texture handle"},
      {of(TextureHandle(9, 1)), "bad texture handle"},
      {of(1), "bad texture handle"},
      {of(TextureHandle(9, 0), 0), "saved context: 1D texture of 0 x 1 x 1"},
      {of(TextureHandle(9, 0), 16, 6), "with 6 levels"},
      {of(TextureHandle(9, 0), 16, 64), "with 64 levels"},
      {of(TextureHandle(9, 0), 16, 65), "bad number of texture levels (0x41)"},
      {of(TextureHandle(9, 0), 16, 1, 2), "bad texture flag (0x2)"},
      {StateFields().U64(0x1000000).U64(0), "bad texture generation"},
      {StateFields().U64(1).U64(65537), "bad number of textures (0x10001)"},
      {StateFields().U64(1).U64(65536), "it ends after 16 bytes"},
      {StateFields().U64(1).U64(2).U64(0).U64(0).U32(0).U32(1), ""},
      {StateFields().U64(1).U64(2).U64(0).U64(0).U32(1).U32(1), "bad free texture (0x1)"},
      {StateFields().U64(1).U64(2).U64(0).U64(0).U32(2).U32(1), "bad free texture (0x2)"},
      {of(TextureHandle(9, 0)).U32(0), ""},
  };
  for (size_t n = 0; n < std::size(cases); ++n) {
    const GpuError error = LoadError(arena, cases[n].fields);
    if (*cases[n].text == '\0') {
      EXPECT_EQ(error.text, "") << n;
    } else {
      EXPECT_THAT(error.text, HasSubstr(cases[n].text)) << n;
    }
  }
  StateFields taken;
  taken.U64(1).U64(2).U64(TextureHandle(3, 0));
  PutLine(taken, 16).U64(0).U32(0);
  EXPECT_THAT(LoadError(arena, taken).text, HasSubstr("bad free texture (0x0)"));
}

}  // namespace
}  // namespace vgpud::soft
