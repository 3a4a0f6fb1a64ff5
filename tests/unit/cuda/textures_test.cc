// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces that need arrays of the driver's: what is written on one side is read on the other. The handle
// of a surface of the made-up driver is the address of its array, whose texels lie in another order.
#include "gpu/cuda/arrays/texels.h"
#include "tests/unit/cuda/cuda_fixture.h"
#include "tests/unit/cuda/fake_arrays.h"

namespace vgpud::driver {
namespace {

using testing::ElementsAre;
using testing::Not;

constexpr uint32_t kWidth = 4, kRows = 3, kPitch = 32;

uint32_t& TexelOf(uint64_t surface, uint32_t x, uint32_t y, uint32_t z) {
  auto& array = *reinterpret_cast<fake_cuda::Array*>(surface);
  const size_t rows = array.height * std::max<size_t>(array.depth, 1), row = rows - 1 - (z * array.height + y);
  return reinterpret_cast<uint32_t*>(array.texels.data())[row * array.width + x];
}

class TexturesTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    CudaGpuTest::SetUp();
    memory_ = *gpu_->Alloc(4096);
    (void)Notes();
  }
  TextureDesc Layers(uint32_t layers) const {
    TextureDesc desc;
    desc.layered = true;
    desc.width = kWidth;
    desc.height = kRows;
    desc.layers = layers;
    desc.format = cuda_enum::CU_AD_FORMAT_UNSIGNED_INT32;
    desc.levels = {{memory_, kPitch, kRows * kPitch}};
    return desc;
  }
  TextureDesc Surface(uint32_t layers) const {
    TextureDesc desc = Layers(layers);
    desc.surface = true;
    return desc;
  }
  void Write(uint32_t x, uint32_t y, uint32_t z, uint32_t value) {
    ASSERT_TRUE(gpu_->CopyIn(At(x, y, z), std::as_bytes(std::span{&value, 1})));
  }
  uint32_t Read(uint32_t x, uint32_t y, uint32_t z) {
    uint32_t value = 0;
    EXPECT_TRUE(gpu_->CopyOut(std::as_writable_bytes(std::span{&value, 1}), At(x, y, z)));
    return value;
  }
  GpuVa At(uint32_t x, uint32_t y, uint32_t z) const {
    return GpuVa{Raw(memory_) + (z * kRows + y) * uint64_t{kPitch} + x * 4};
  }

  GpuVa memory_{0};
};

TEST_F(TexturesTest, ATextureOfLayersIsAnArrayWithWhatTheMemoryHas) {
  Write(1, 2, 1, 42);
  const TextureDesc desc = Layers(2);
  EXPECT_EQ(uint64_t{64} << 10, gpu_->TextureBytes(desc));
  const auto texture = gpu_->CreateTexture(desc);
  ASSERT_TRUE(texture) << texture.error().text;
  EXPECT_THAT(Notes(),
              AllOf(HasSubstr("array of 4 x 3 x 2, flags 3\n3 x 2 rows in\n"), HasSubstr("texture of kind 0")));
  EXPECT_EQ(0u, gpu_->TextureBytes(desc)) << "the array is there";
  Write(1, 1, 0, 7);
  EXPECT_EQ("1 x 1 rows in\n", Notes()) << "what is written later follows";
  EXPECT_EQ(7u, Read(1, 1, 0));
  EXPECT_EQ("", Notes()) << "nobody but copies writes to it";
  EXPECT_EQ(uint64_t{64} << 10, *gpu_->DestroyTexture(*texture));
  EXPECT_THAT(Notes(), HasSubstr("no array of 4"));
}

TEST_F(TexturesTest, WhatASurfaceWritesIsReadFromTheMemoryAndTheOtherWayRound) {
  const auto surface = gpu_->CreateTexture(Surface(2));
  ASSERT_TRUE(surface) << surface.error().text;
  Write(3, 1, 1, 5);
  EXPECT_EQ(5u, TexelOf(*surface, 3, 1, 1));
  TexelOf(*surface, 2, 1, 1) = 6;
  EXPECT_EQ(6u, Read(2, 1, 1));
  TexelOf(*surface, 0, 1, 1) = 8;
  Write(1, 1, 1, 9);  // beside it in its row
  EXPECT_THAT((std::vector{TexelOf(*surface, 0, 1, 1), TexelOf(*surface, 1, 1, 1), TexelOf(*surface, 2, 1, 1)}),
              ElementsAre(8, 9, 6));
  TexelOf(*surface, 0, 0, 0) = 10;
  ASSERT_TRUE(gpu_->CopyDev(At(1, 0, 1), At(0, 0, 0), 4));
  EXPECT_EQ(10u, TexelOf(*surface, 1, 0, 1));
  ASSERT_TRUE(gpu_->Fill(At(0, 2, 0), 11, 4, kWidth));
  EXPECT_EQ(11u, TexelOf(*surface, 3, 2, 0));
  TexelOf(*surface, 3, 2, 1) = 12;
  EXPECT_NE(0u, *gpu_->DestroyTexture(*surface));
  EXPECT_EQ(12u, Read(3, 2, 1)) << "also when it has gone";
}

TEST_F(TexturesTest, ATextureAndASurfaceOfOneArrayShareIt) {
  const auto surface = gpu_->CreateTexture(Surface(2));
  ASSERT_TRUE(surface);
  (void)Notes();
  const auto texture = gpu_->CreateTexture(Layers(2));
  ASSERT_TRUE(texture);
  EXPECT_EQ("texture of kind 0\n", Notes());
  EXPECT_EQ(0u, *gpu_->DestroyTexture(*surface));
  EXPECT_NE(0u, *gpu_->DestroyTexture(*texture));
}

TEST_F(TexturesTest, ASurfaceIsOfALevelOfItsMipmappedArray) {
  TextureDesc levels = Layers(2);
  levels.levels.push_back({GpuVa{Raw(memory_) + 1024}, 16, 16});
  ASSERT_TRUE(gpu_->CreateTexture(levels));
  (void)Notes();
  TextureDesc one = Surface(2);
  one.width = 2;
  one.height = 1;
  one.levels = {levels.levels[1]};
  const auto surface = gpu_->CreateTexture(one);
  ASSERT_TRUE(surface) << surface.error().text;
  EXPECT_THAT(Notes(), Not(HasSubstr("array of")));
  TexelOf(*surface, 1, 0, 1) = 3;
  const GpuVa at{Raw(memory_) + 1024 + 16 + 4};
  EXPECT_EQ(3u, *gpu_->ReadWord(at, 4));
}

// A layer alone, as a resource view makes it: the driver has no array of the same texels.
TEST_F(TexturesTest, ObjectsThatSeeTheSameMemoryInOtherWaysAreBroughtTogetherBeforeALaunch) {
  const auto surface = gpu_->CreateTexture(Surface(2));
  ASSERT_TRUE(surface);
  TextureDesc layer = Layers(1);
  layer.levels[0].address = At(0, 0, 1);
  ASSERT_TRUE(gpu_->CreateTexture(layer));
  TexelOf(*surface, 0, 0, 1) = 1;
  (void)Notes();
  const auto grid = CudaGpuTest::Launch();
  ASSERT_TRUE(grid) << grid.error().text;
  EXPECT_THAT(Notes(), HasSubstr("3 x 2 rows out\n3 x 1 rows in\nlaunched\n"));
  EXPECT_EQ(CuStatus::kNotSupported, gpu_->CreateTexture(Surface(1)).error().status) << "which of them is right?";
}

TEST_F(TexturesTest, MemoryThatWasGivenBackIsLeftAlone) {
  const auto surface = gpu_->CreateTexture(Surface(2));
  ASSERT_TRUE(surface);
  ASSERT_TRUE(gpu_->Free(memory_));
  (void)Notes();
  EXPECT_NE(0u, *gpu_->DestroyTexture(*surface));
  EXPECT_EQ("no array of 4\n", Notes());
}

TEST_F(TexturesTest, WhatContradictsItselfIsRefused) {
  const auto refused = [&](auto change) {
    TextureDesc desc = Layers(2);
    change(desc);
    const auto made = gpu_->CreateTexture(desc);
    return made ? CuStatus::kSuccess : made.error().status;
  };
  using Shape = TextureDesc::Shape;
  constexpr auto kWrong = CuStatus::kInvalidValue;
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.layers = 0; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.layers = 1u << 31; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.depth = 2; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.layered = false; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.shape = Shape::k3d; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.shape = Shape::kCube; })) << "of two faces";
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.shape = static_cast<Shape>(9); }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.levels[0].slice = 64; })) << "layers that overlap";
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.levels[0].slice = UINT64_MAX; }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) { d.levels.push_back({GpuVa{1}, 16, 16}); }));
  EXPECT_EQ(kWrong, refused([](TextureDesc& d) {
              d.surface = true;
              d.levels.push_back(d.levels[0]);
            }));
  const Told told("array=2");
  EXPECT_EQ(CuStatus::kOutOfMemory, refused([](TextureDesc&) {}));
}

TEST(Texels, AreFoundByTheirBytes) {
  const TexelLevel level{1000, 32, 100, 20, 3, 4};
  const auto box = [&](uint64_t address, uint64_t bytes) {
    const TexelBox found = BoxOf(level, address, bytes);
    return std::vector<uint64_t>{found.first_slice, found.slices, found.first_row, found.rows};
  };
  EXPECT_THAT(box(0, 1000), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(box(0, 1001), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(box(1031, 2), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(box(1099, 1), ElementsAre(0, 1, 2, 1)) << "between two slices";
  EXPECT_THAT(box(1099, 2), ElementsAre(0, 2, 0, 3));
  EXPECT_THAT(box(0, UINT64_MAX), ElementsAre(0, 4, 0, 3));
  EXPECT_THAT(box(level.end() - 1, 100), ElementsAre(3, 1, 2, 1));
  EXPECT_THAT(box(level.end(), 100), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace vgpud::driver
