// SPDX-License-Identifier: Apache-2.0
// Arrays, texture and surface objects of libcuda.so.1, served by fake_vf (shim_api_test.cc).
#include <numeric>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

CUDA_ARRAY3D_DESCRIPTOR_st Describe(size_t width, size_t height, size_t depth, int format = CU_AD_FORMAT_FLOAT,
                                    unsigned flags = 0) {
  return {width, height, depth, format, 1, flags};
}

CUarray Make(const CUDA_ARRAY3D_DESCRIPTOR_st& desc) {
  CUarray array = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuArray3DCreate_v2(&array, &desc));
  return array;
}

TEST_F(ShimApi, ArraysRememberWhatTheyAre) {
  const CUDA_ARRAY_DESCRIPTOR_st flat{10, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  CUarray array;
  ASSERT_EQ(CUDA_SUCCESS, cuArrayCreate_v2(&array, &flat));
  CUDA_ARRAY_DESCRIPTOR_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuArrayGetDescriptor_v2(&told, array));
  EXPECT_EQ(10u, told.Width);
  EXPECT_EQ(4u, told.Height);
  EXPECT_EQ(4u, told.NumChannels);
  CUDA_ARRAY3D_DESCRIPTOR_st full{};
  EXPECT_EQ(CUDA_SUCCESS, cuArray3DGetDescriptor_v2(&full, array));
  EXPECT_EQ(0u, full.Depth);
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor_v2(&told, array));
}

TEST_F(ShimApi, ArraysThatCannotBeAreRefused) {
  CUarray array;
  const auto refused = [&](CUDA_ARRAY3D_DESCRIPTOR_st desc) { return cuArray3DCreate_v2(&array, &desc); };
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(0, 4, 0)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(70000, 0, 0)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(4, 0, 4)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(4, 4, 3000, CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_LAYERED)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(4, 5, 6, CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_CUBEMAP)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(4, 4, 12, CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_CUBEMAP)));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, refused(Describe(4, 4, 0, CU_AD_FORMAT_NV12)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(Describe(4, 4, 0, 0)));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, refused(Describe(4, 4, 0, CU_AD_FORMAT_FLOAT, 0x40)));
  CUDA_ARRAY3D_DESCRIPTOR_st three = Describe(4, 4, 0);
  three.NumChannels = 3;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused(three));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(nullptr, &three));
}

class ShimArrayCopy : public ShimApi {
 protected:
  static constexpr size_t kWidth = 5, kHeight = 3, kDepth = 2;  // rows that are no multiple of the pitch
  void SetUp() override {
    ShimApi::SetUp();
    std::iota(in_.begin(), in_.end(), 1.0f);
    array_ = Make(Describe(kWidth, kHeight, kDepth));
    ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3D_v2(&Upload()));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array_));
    ShimApi::TearDown();
  }
  CUDA_MEMCPY3D_st& Upload() {
    copy_ = {};
    copy_.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy_.srcHost = in_.data();
    copy_.srcPitch = kWidth * 4;
    copy_.srcHeight = kHeight;
    copy_.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy_.dstArray = array_;
    copy_.WidthInBytes = kWidth * 4;
    copy_.Height = kHeight;
    copy_.Depth = kDepth;
    return copy_;
  }
  // A box of the array, packed.
  std::vector<float> Box(size_t x, size_t y, size_t z, size_t width, size_t height, size_t depth) {
    std::vector<float> out(width * height * depth);
    CUDA_MEMCPY3D_st copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array_;
    copy.srcXInBytes = x * 4;
    copy.srcY = y;
    copy.srcZ = z;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out.data();
    copy.dstPitch = width * 4;
    copy.dstHeight = height;
    copy.WidthInBytes = width * 4;
    copy.Height = height;
    copy.Depth = depth;
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpy3D_v2(&copy));
    return out;
  }

  std::vector<float> in_ = std::vector<float>(kWidth * kHeight * kDepth);
  CUDA_MEMCPY3D_st copy_{};
  CUarray array_ = nullptr;
};

TEST_F(ShimArrayCopy, BoxesComeBack) {
  EXPECT_EQ(in_, Box(0, 0, 0, kWidth, kHeight, kDepth));
  EXPECT_EQ((std::vector<float>{22, 23, 27, 28}), Box(1, 1, 1, 2, 2, 1));
}

TEST_F(ShimArrayCopy, NothingOutsideIsTouched) {
  for (size_t CUDA_MEMCPY3D_st::*field :
       {&CUDA_MEMCPY3D_st::dstXInBytes, &CUDA_MEMCPY3D_st::dstY, &CUDA_MEMCPY3D_st::dstZ}) {
    for (const size_t offset : {size_t{1}, ~size_t{0}}) {
      CUDA_MEMCPY3D_st& copy = Upload();
      copy.*field = offset;
      EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&copy));
    }
  }
  CUDA_MEMCPY3D_st& wide = Upload();
  wide.WidthInBytes += 4;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&wide));
  CUDA_MEMCPY3D_st& level = Upload();
  level.dstLOD = 1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&level));
  CUDA_MEMCPY3D_st& none = Upload();
  none.dstArray = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3D_v2(&none));
}

TEST_F(ShimArrayCopy, BytesRunThroughTheRows) {
  const float changed[] = {-1, -2, -3};
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoA_v2(array_, 4 * 4, changed, sizeof changed));
  EXPECT_EQ((std::vector<float>{4, -1, -2, -3, 8}), [&] {
    std::vector<float> out(5);
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyAtoH_v2(out.data(), array_, 3 * 4, 20));
    return out;
  }());
  const CUdeviceptr device = Alloc(60);
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyAtoD_v2(device, array_, 0, 60));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoA_v2(array_, 20, device, 40));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyAtoA_v2(array_, 0, array_, 40, 8));
  EXPECT_EQ((std::vector<float>{-2, -3, 3, 4, -1, 1, 2, 3, 4, -1, -2, -3, 8, 9, 10}), Box(0, 0, 0, 5, 3, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(array_, 52, changed, sizeof changed));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(device));
}

TEST_F(ShimApi, MipmappedArraysHaveLevels) {
  const CUDA_ARRAY3D_DESCRIPTOR_st desc = Describe(8, 2, 0);
  CUmipmappedArray pyramid;
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&pyramid, &desc, 100));
  CUarray level;
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayGetLevel(&level, pyramid, 2));
  CUDA_ARRAY3D_DESCRIPTOR_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuArray3DGetDescriptor_v2(&told, level));
  EXPECT_EQ(2u, told.Width);
  EXPECT_EQ(1u, told.Height);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, pyramid, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(pyramid));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&told, level));
}

CUDA_RESOURCE_DESC_st Of(CUarray array) {
  CUDA_RESOURCE_DESC_st resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

TEST_F(ShimApi, TextureObjectsTellWhatTheyAreMadeOf) {
  const CUarray array = Make(Describe(8, 8, 0));
  const CUDA_RESOURCE_DESC_st resource = Of(array);
  CUDA_TEXTURE_DESC_st how{};
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  how.borderColor[2] = 0.5f;
  unsigned long long texture = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how, nullptr));
  EXPECT_NE(0u, texture);
  CUDA_RESOURCE_DESC_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectGetResourceDesc(&told, texture));
  EXPECT_EQ(array, told.res.array.hArray);
  CUDA_TEXTURE_DESC_st how_told{};
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectGetTextureDesc(&how_told, texture));
  EXPECT_EQ(0.5f, how_told.borderColor[2]);
  CUDA_RESOURCE_VIEW_DESC_st view{};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(&view, texture));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(texture));
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectDestroy(texture));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(texture));
  view.format = CU_RES_VIEW_FORMAT_UINT_4X8;
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how, &view));
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectGetResourceViewDesc(&view, texture));
  EXPECT_EQ(CU_RES_VIEW_FORMAT_UINT_4X8, view.format);
  view.format = CU_RES_VIEW_FORMAT_UINT_4X16;  // texels of another size
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, &view));
  view = {};
  view.lastLayer = 1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, &view));
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuTexObjectCreate(&texture, &resource, &how, nullptr));
}

TEST_F(ShimApi, SurfacesNeedAnArrayMadeForThem) {
  const CUarray plain = Make(Describe(8, 8, 0));
  const CUarray made = Make(Describe(8, 8, 0, CU_AD_FORMAT_SIGNED_INT16, CUDA_ARRAY3D_SURFACE_LDST));
  CUDA_RESOURCE_DESC_st resource = Of(plain);
  unsigned long long surface = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &resource));
  resource = Of(made);
  EXPECT_EQ(CUDA_SUCCESS, cuSurfObjectCreate(&surface, &resource));
  CUDA_RESOURCE_DESC_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuSurfObjectGetResourceDesc(&told, surface));
  EXPECT_EQ(made, told.res.array.hArray);
  EXPECT_EQ(CUDA_SUCCESS, cuSurfObjectDestroy(surface));
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &resource));
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(plain));
  EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(made));
}

TEST_F(ShimApi, LinearAndPitchedMemoryAreTextures) {
  const CUdeviceptr memory = Alloc(1024);
  CUDA_RESOURCE_DESC_st resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, 1024};
  CUDA_TEXTURE_DESC_st how{};
  unsigned long long texture = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectDestroy(texture));
  resource.res.linear.format = 0x77;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, nullptr));
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {memory, CU_AD_FORMAT_UNSIGNED_INT8, 4, 8, 8, 64};
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how, nullptr));
  how.addressMode[1] = 7;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, nullptr));
  // A texture that its context still has goes with it.
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(texture));
}

}  // namespace
