// SPDX-License-Identifier: Apache-2.0
// Arrays of libcuda.so.1: their bounds, their layout and their levels.
#include <string>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr unsigned kLayered = CUDA_ARRAY3D_LAYERED, kCube = CUDA_ARRAY3D_CUBEMAP;

class ShimArrays : public ShimWire {
 protected:
  // Bytes that an array of this kind takes; the error when there can be none.
  struct Made {
    CUresult result;
    uint64_t bytes;
  };
  static Made Ask(const CUDA_ARRAY3D_DESCRIPTOR_st& desc) {
    Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
    CUarray array = nullptr;
    const CUresult result = cuArray3DCreate_v2(&array, &desc);
    const auto asked = Wire::Get().Take(VGPU_OP_MEM_ALLOC);
    Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, 0);
    return {result, asked.empty() ? 0 : asked[0].entry.args[0]};
  }
};

struct Bound {
  size_t width, height, depth;
  unsigned flags;
};

// The fake's attributes, one over each of them.
TEST_F(ShimArrays, EveryKindHasItsOwnBounds) {
  const Bound largest[] = {{65536, 0, 0, 0},
                           {65000, 1, 0, 0},
                           {1, 64000, 0, 0},
                           {4096, 1, 1, 0},
                           {1, 4001, 1, 0},
                           {1, 1, 4002, 0},
                           {4103, 1, 1, kLayered},
                           {1, 4104, 1, kLayered},
                           {1, 1, 2048, kLayered},
                           {4105, 0, 1, kLayered},
                           {1, 0, 2047, kLayered},
                           {4106, 4106, 6, kCube},
                           {4107, 4107, 6, kCube | kLayered},
                           {1, 1, 2046, kCube | kLayered}};
  for (const Bound& b : largest) {
    CUDA_ARRAY3D_DESCRIPTOR_st desc{b.width, b.height, b.depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, b.flags};
    const std::string name = std::to_string(b.width) + " x " + std::to_string(b.height) + " x " +
                             std::to_string(b.depth) + ", flags " + std::to_string(b.flags);
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, Ask(desc).result) << name << ": as far as memory goes";
    if ((b.flags & kCube) != 0 && b.width > 1) {
      ++desc.Width, ++desc.Height;
    } else if ((b.flags & kCube) != 0) {
      desc.Depth += 6;
    } else {
      size_t& longest = desc.Width > 1 ? desc.Width : desc.Height > 1 ? desc.Height : desc.Depth;
      ++longest;
    }
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask(desc).result) << name;
  }
}

TEST_F(ShimArrays, ShapesMustMakeSense) {
  const Bound bad[] = {{0, 0, 0, 0},
                       {0, 1, 1, 0},
                       {1, 0, 1, 0},
                       {1, 1, 0, kLayered},
                       {0, 1, 1, kLayered},
                       {1, 0, 0, kLayered},
                       {2, 1, 6, kCube},
                       {1, 2, 6, kCube},
                       {1, 1, 5, kCube},
                       {1, 1, 0, kCube},
                       {1, 1, 12, kCube},
                       {1, 1, 7, kCube | kLayered},
                       {1, 1, 0, kCube | kLayered}};
  for (const Bound& b : bad) {
    const CUDA_ARRAY3D_DESCRIPTOR_st desc{b.width, b.height, b.depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, b.flags};
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask(desc).result)
        << b.width << " x " << b.height << " x " << b.depth << ", flags " << b.flags;
  }
  for (unsigned flag = 1; flag != 0; flag <<= 1) {
    // Layered, surface, cube map, gather and colour attachment; the others are not for the soft GPU.
    const bool known = flag == 1 || flag == 2 || flag == 4 || flag == 8 || flag == 32;
    const size_t depth = flag == kCube ? 6 : flag == kLayered ? 1 : 0;
    const CUDA_ARRAY3D_DESCRIPTOR_st desc{1, 1, depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, flag};
    EXPECT_EQ(known ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED, Ask(desc).result) << flag;
  }
}

TEST_F(ShimArrays, RowsAreMultiplesOfSixteenBytes) {
  const struct {
    int format;
    unsigned channels;
    uint64_t texel;
  } rows[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},  {CU_AD_FORMAT_SIGNED_INT8, 2, 2},
              {CU_AD_FORMAT_UNSIGNED_INT16, 4, 8}, {CU_AD_FORMAT_SIGNED_INT16, 1, 2},
              {CU_AD_FORMAT_UNSIGNED_INT32, 1, 4}, {CU_AD_FORMAT_SIGNED_INT32, 2, 8},
              {CU_AD_FORMAT_HALF, 1, 2},           {CU_AD_FORMAT_FLOAT, 4, 16}};
  for (const auto& row : rows) {
    for (const size_t width : {1, 15, 16, 17}) {
      const uint64_t pitch = (width * row.texel + 15) / 16 * 16;
      EXPECT_EQ(pitch, Ask({width, 0, 0, row.format, row.channels, 0}).bytes) << row.format << " " << width;
      EXPECT_EQ(pitch * 3, Ask({width, 3, 0, row.format, row.channels, 0}).bytes);
      EXPECT_EQ(pitch * 6, Ask({width, 3, 2, row.format, row.channels, 0}).bytes);
      EXPECT_EQ(pitch * 2, Ask({width, 0, 2, row.format, row.channels, kLayered}).bytes);
    }
  }
  for (const unsigned channels : {0u, 3u, 5u, 8u})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask({1, 0, 0, CU_AD_FORMAT_FLOAT, channels, 0}).result) << channels;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask({1, 0, 0, -1, 1, 0}).result);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Ask({1, 0, 0, 4, 1, 0}).result);
}

TEST_F(ShimArrays, MemoryRequirementsAreWhatIsTaken) {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_st desc{5, 3, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  ASSERT_EQ(CUDA_SUCCESS, cuArray3DCreate_v2(&array, &desc));
  CUDA_ARRAY_MEMORY_REQUIREMENTS_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuArrayGetMemoryRequirements(&told, array, 0));
  EXPECT_EQ(32u * 3 * 2, told.size);
  EXPECT_EQ(512u, told.alignment);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(nullptr, array, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArrayGetMemoryRequirements(&told, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArray3DGetDescriptor_v2(nullptr, array));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArrayGetDescriptor_v2(nullptr, array));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&array, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(nullptr, &desc));
  const auto address = ArgsOf(VGPU_OP_MEM_ALLOC, 1);
  EXPECT_EQ((Rows{{192}}), address);
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array));
  EXPECT_EQ(1u, Take(VGPU_OP_MEM_FREE).size());
}

TEST_F(ShimArrays, LevelsHalveUntilTheyAreOneTexel) {
  const CUDA_ARRAY3D_DESCRIPTOR_st desc{20, 5, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUmipmappedArray pyramid = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &desc, 99));
  const size_t widths[] = {20, 10, 5, 2, 1}, heights[] = {5, 2, 1, 1, 1};
  CUarray level = nullptr;
  for (unsigned n = 0; n < 5; ++n) {
    CUDA_ARRAY3D_DESCRIPTOR_st told{};
    ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayGetLevel(&level, pyramid, n));
    EXPECT_EQ(CUDA_SUCCESS, cuArray3DGetDescriptor_v2(&told, level));
    EXPECT_EQ(widths[n], told.Width) << n;
    EXPECT_EQ(heights[n], told.Height) << n;
    EXPECT_EQ(0u, told.Depth) << n;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, pyramid, 5));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(nullptr, pyramid, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&level, nullptr, 0));
  // Each level begins at a multiple of 512.
  EXPECT_EQ((Rows{{5 * 512}}), ArgsOf(VGPU_OP_MEM_ALLOC, 1));
  CUDA_ARRAY_MEMORY_REQUIREMENTS_st needed{};
  EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayGetMemoryRequirements(&needed, pyramid, 0));
  EXPECT_EQ(5u * 512, needed.size);
  EXPECT_EQ(512u, needed.alignment);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(nullptr, pyramid, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetMemoryRequirements(&needed, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(pyramid));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(pyramid));
  EXPECT_EQ(1u, Take(VGPU_OP_MEM_FREE).size()) << "one allocation for all";
}

TEST_F(ShimArrays, DepthHalvesButLayersDoNot) {
  CUmipmappedArray pyramid = nullptr;
  CUarray level = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_st told{};
  const auto depth_of = [&](unsigned n) {
    EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayGetLevel(&level, pyramid, n));
    EXPECT_EQ(CUDA_SUCCESS, cuArray3DGetDescriptor_v2(&told, level));
    return told.Depth;
  };
  const CUDA_ARRAY3D_DESCRIPTOR_st solid{4, 4, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &solid, 99));
  EXPECT_EQ(8u, depth_of(1));
  EXPECT_EQ(1u, depth_of(4)) << "as many levels as the depth has";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, pyramid, 5));
  EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(pyramid));
  for (const unsigned flags : {kLayered, kCube, kCube | kLayered}) {
    const CUDA_ARRAY3D_DESCRIPTOR_st layers{4, 4, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, flags};
    ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &layers, 99));
    EXPECT_EQ(6u, depth_of(2));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, pyramid, 3));
    EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(pyramid));
  }
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &solid, 2));
  EXPECT_EQ(8u, depth_of(1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, pyramid, 2)) << "as many as wanted";
  EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(pyramid));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&pyramid, &solid, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(nullptr, &solid, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&pyramid, nullptr, 1));
}

TEST_F(ShimArrays, ArraysGoWithTheirContext) {
  CUcontext made = nullptr;
  CUarray own = nullptr, other = nullptr;
  CUmipmappedArray pyramid = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_st told{};
  CUDA_ARRAY_MEMORY_REQUIREMENTS_st needed{};
  const CUDA_ARRAY3D_DESCRIPTOR_st desc{4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  ASSERT_EQ(CUDA_SUCCESS, cuArray3DCreate_v2(&own, &desc));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuArray3DCreate_v2(&other, &desc));
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &desc, 2));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&told, other));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetMemoryRequirements(&needed, pyramid, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuArray3DGetDescriptor_v2(&told, own));
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(own));
}

}  // namespace
