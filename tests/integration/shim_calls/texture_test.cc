// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects of libcuda.so.1: what the executor is told of them.
#include <bit>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr unsigned kLayered = CUDA_ARRAY3D_LAYERED, kCube = CUDA_ARRAY3D_CUBEMAP, kStore = CUDA_ARRAY3D_SURFACE_LDST;

struct Told {
  CUresult result = CUDA_SUCCESS;
  vgpu_texture texture{};
  std::vector<vgpu_texture_level> levels;
};

class ShimTextures : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    memory_ = Alloc(1 << 20);
  }
  static Told FromWire(CUresult result) {
    Told told;
    told.result = result;
    for (const Sent& sent : Wire::Get().Take(VGPU_OP_TEXTURE_CREATE)) {
      told.texture = sent.As<vgpu_texture>();
      for (size_t at = sizeof told.texture; at < sent.payload.size(); at += sizeof(vgpu_texture_level))
        told.levels.push_back(sent.As<vgpu_texture_level>(at));
    }
    return told;
  }
  Told Create(const CUDA_RESOURCE_DESC_st& resource, const CUDA_RESOURCE_VIEW_DESC_st* view = nullptr) {
    unsigned long long handle = 0;
    return FromWire(cuTexObjectCreate(&handle, &resource, &how_, view));
  }
  static Told Surface(CUarray array) {
    unsigned long long handle = 0;
    const CUDA_RESOURCE_DESC_st resource = Of(array);
    return FromWire(cuSurfObjectCreate(&handle, &resource));
  }
  static CUDA_RESOURCE_DESC_st Of(CUarray array) {
    CUDA_RESOURCE_DESC_st resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
  }
  CUDA_RESOURCE_DESC_st Linear(int format, unsigned channels, size_t bytes) const {
    CUDA_RESOURCE_DESC_st resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {memory_, format, channels, bytes};
    return resource;
  }
  CUDA_RESOURCE_DESC_st Rows2D(size_t width, size_t height, size_t pitch) const {
    CUDA_RESOURCE_DESC_st resource{};
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {memory_, CU_AD_FORMAT_UNSIGNED_INT8, 1, width, height, pitch};
    return resource;
  }
  static CUarray Make(size_t width, size_t height, size_t depth, unsigned flags = 0) {
    const CUDA_ARRAY3D_DESCRIPTOR_st desc{width, height, depth, CU_AD_FORMAT_SIGNED_INT16, 2, flags};
    CUarray array = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuArray3DCreate_v2(&array, &desc));
    return array;
  }
  static CUDA_RESOURCE_DESC_st Pyramid(size_t width, size_t height, size_t depth, unsigned flags, unsigned levels) {
    const CUDA_ARRAY3D_DESCRIPTOR_st desc{width, height, depth, CU_AD_FORMAT_SIGNED_INT16, 2, flags};
    CUDA_RESOURCE_DESC_st resource{};
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&resource.res.mipmap.hMipmappedArray, &desc, levels));
    return resource;
  }
  CUdeviceptr memory_ = 0;
  CUDA_TEXTURE_DESC_st how_{};
};

TEST_F(ShimTextures, ArraysAreTexturesOfTheirShape) {
  const struct {
    size_t width, height, depth;
    unsigned flags;
    uint32_t shape, rows, deep, layers, told_flags;
  } rows[] = {{6, 0, 0, 0, VGPU_TEXTURE_1D, 1, 1, 1, 0},
              {6, 0, 3, kLayered, VGPU_TEXTURE_1D, 1, 1, 3, VGPU_TEXTURE_LAYERED},
              {6, 5, 0, 0, VGPU_TEXTURE_2D, 5, 1, 1, 0},
              {6, 5, 3, kLayered, VGPU_TEXTURE_2D, 5, 1, 3, VGPU_TEXTURE_LAYERED},
              {6, 5, 3, 0, VGPU_TEXTURE_3D, 5, 3, 1, 0},
              {6, 6, 6, kCube, VGPU_TEXTURE_CUBE, 6, 1, 6, 0},
              {6, 6, 12, kCube | kLayered, VGPU_TEXTURE_CUBE, 6, 1, 12, VGPU_TEXTURE_LAYERED}};
  for (const auto& row : rows) {
    const Told told = Create(Of(Make(row.width, row.height, row.depth, row.flags)));
    ASSERT_EQ(CUDA_SUCCESS, told.result);
    EXPECT_EQ(row.shape, told.texture.shape);
    EXPECT_EQ(6u, told.texture.width);
    EXPECT_EQ(row.rows, told.texture.height);
    EXPECT_EQ(row.deep, told.texture.depth);
    EXPECT_EQ(row.layers, told.texture.layers);
    EXPECT_EQ(uint32_t{CU_AD_FORMAT_SIGNED_INT16}, told.texture.format);
    EXPECT_EQ(2u, told.texture.channels);
    EXPECT_EQ(row.told_flags | VGPU_TEXTURE_READ_FLOAT, told.texture.flags);
    EXPECT_EQ(1u, told.texture.levels);
    ASSERT_EQ(1u, told.levels.size());
    EXPECT_EQ(32u, told.levels[0].pitch);
    EXPECT_EQ(32u * row.rows, told.levels[0].slice);
  }
}

TEST_F(ShimTextures, SamplingIsTranslated) {
  how_.addressMode[0] = CU_TR_ADDRESS_MODE_BORDER;
  how_.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
  how_.addressMode[2] = CU_TR_ADDRESS_MODE_CLAMP;
  how_.filterMode = how_.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
  how_.flags = CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_READ_AS_INTEGER;
  how_.mipmapLevelBias = 0.5f;
  how_.minMipmapLevelClamp = 1.5f;
  how_.maxMipmapLevelClamp = 2.5f;
  for (int c = 0; c < 4; ++c) how_.borderColor[c] = 0.25f * static_cast<float>(c + 1);
  const Told array = Create(Of(Make(6, 5, 0)));
  ASSERT_EQ(CUDA_SUCCESS, array.result);
  EXPECT_EQ(VGPU_TEXTURE_LINEAR | VGPU_TEXTURE_MIP_LINEAR | VGPU_TEXTURE_NORMALIZED | VGPU_TEXTURE_SRGB,
            array.texture.flags);
  EXPECT_EQ(3u, array.texture.address[0]);
  EXPECT_EQ(2u, array.texture.address[1]);
  EXPECT_EQ(1u, array.texture.address[2]);
  EXPECT_EQ(std::bit_cast<uint32_t>(0.5f), array.texture.lod_bias);
  EXPECT_EQ(std::bit_cast<uint32_t>(1.5f), array.texture.lod_min);
  EXPECT_EQ(std::bit_cast<uint32_t>(2.5f), array.texture.lod_max);
  for (int c = 0; c < 4; ++c)
    EXPECT_EQ(std::bit_cast<uint32_t>(0.25f * static_cast<float>(c + 1)), array.texture.border[c]);
  const Told linear = Create(Linear(CU_AD_FORMAT_FLOAT, 1, 64));
  ASSERT_EQ(CUDA_SUCCESS, linear.result);
  EXPECT_EQ(VGPU_TEXTURE_SRGB, linear.texture.flags) << "read by index";
  for (const unsigned flag : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u}) {
    how_.flags = flag;
    const bool known = flag == 0 || flag == 1 || flag == 2 || flag == 16 || flag == 32 || flag == 64;
    EXPECT_EQ(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, Create(Linear(CU_AD_FORMAT_FLOAT, 1, 64)).result)
        << flag;
  }
  how_.flags = 0;
  for (int axis = 0; axis < 3; ++axis) {
    for (const int bad : {-1, 4}) {
      how_.addressMode[axis] = bad;
      EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Linear(CU_AD_FORMAT_FLOAT, 1, 64)).result);
    }
    how_.addressMode[axis] = 0;
  }
}

TEST_F(ShimTextures, LinearMemoryIsMeasuredInTexels) {
  const Told told = Create(Linear(CU_AD_FORMAT_UNSIGNED_INT16, 4, 100));
  ASSERT_EQ(CUDA_SUCCESS, told.result);
  EXPECT_EQ(VGPU_TEXTURE_BUFFER, told.texture.shape);
  EXPECT_EQ(12u, told.texture.width);
  EXPECT_EQ(1u, told.texture.height);
  EXPECT_EQ(1u, told.texture.depth);
  EXPECT_EQ(1u, told.texture.layers);
  ASSERT_EQ(1u, told.levels.size());
  EXPECT_EQ(memory_, told.levels[0].address);
  EXPECT_EQ(0u, told.levels[0].pitch);
  EXPECT_EQ(0u, told.levels[0].slice);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Linear(CU_AD_FORMAT_FLOAT, 0, 64)).result);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Linear(0x77, 1, 64)).result);
  Wire::Get().Refuse(VGPU_OP_TEXTURE_CREATE, CUDA_ERROR_OUT_OF_MEMORY);
  const size_t most = ~uint32_t{0};
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, Create(Linear(CU_AD_FORMAT_UNSIGNED_INT8, 1, most)).result);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Linear(CU_AD_FORMAT_UNSIGNED_INT8, 1, most + 1)).result);
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, Create(Rows2D(most, most, 64)).result);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Rows2D(most + 1, 1, 64)).result);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Rows2D(1, most + 1, 64)).result);
}

TEST_F(ShimTextures, RowsInMemoryAreOneLevel) {
  const Told told = Create(Rows2D(40, 7, 64));
  ASSERT_EQ(CUDA_SUCCESS, told.result);
  EXPECT_EQ(VGPU_TEXTURE_2D, told.texture.shape);
  EXPECT_EQ(40u, told.texture.width);
  EXPECT_EQ(7u, told.texture.height);
  EXPECT_EQ(1u, told.texture.depth);
  EXPECT_EQ(1u, told.texture.layers);
  ASSERT_EQ(1u, told.levels.size());
  EXPECT_EQ(memory_, told.levels[0].address);
  EXPECT_EQ(64u, told.levels[0].pitch);
  EXPECT_EQ(0u, told.levels[0].slice);
}

// CUresourceViewFormat, in the order of cuda.h: the format and its three channel counts.
TEST_F(ShimTextures, ViewsReadTexelsOfTheSameSizeAnotherWay) {
  const struct {
    int format;
    unsigned bytes;
  } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_SIGNED_INT8, 1},    {CU_AD_FORMAT_UNSIGNED_INT16, 2},
                 {CU_AD_FORMAT_SIGNED_INT16, 2},  {CU_AD_FORMAT_UNSIGNED_INT32, 4}, {CU_AD_FORMAT_SIGNED_INT32, 4},
                 {CU_AD_FORMAT_HALF, 2},          {CU_AD_FORMAT_FLOAT, 4}};
  const CUarray array = Make(8, 4, 0);  // of two 16 bit channels
  CUDA_RESOURCE_VIEW_DESC_st view{};
  for (int i = 0; i < 24; ++i) {
    view.format = i + 1;
    const unsigned channels = 1u << (i % 3);
    const bool fits = formats[i / 3].bytes * channels == 4;
    const Told told = Create(Of(array), &view);
    EXPECT_EQ(fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, told.result) << view.format;
    if (!fits) continue;
    EXPECT_EQ(static_cast<uint32_t>(formats[i / 3].format), told.texture.format) << view.format;
    EXPECT_EQ(channels, told.texture.channels) << view.format;
  }
  view.format = -1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Of(array), &view).result);
  view.format = CU_RES_VIEW_FORMAT_FLOAT_4X32 + 1;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Create(Of(array), &view).result) << "compressed blocks";
  view.format = CU_RES_VIEW_FORMAT_NONE;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Create(Linear(CU_AD_FORMAT_FLOAT, 1, 64), &view).result);
  const struct {
    size_t width, height;
    CUresult result;
  } sizes[] = {{8, 4, CUDA_SUCCESS},
               {0, 0, CUDA_SUCCESS},
               {7, 4, CUDA_ERROR_INVALID_VALUE},
               {8, 3, CUDA_ERROR_INVALID_VALUE},
               {9, 0, CUDA_ERROR_INVALID_VALUE}};
  for (const auto& size : sizes) {
    view.width = size.width, view.height = size.height;
    EXPECT_EQ(size.result, Create(Of(array), &view).result) << size.width << " x " << size.height;
  }
}

TEST_F(ShimTextures, ViewsAreOfLevelsAndLayers) {
  const CUDA_RESOURCE_DESC_st pyramid = Pyramid(64, 16, 5, kLayered, 4);
  const Told whole = Create(pyramid);
  ASSERT_EQ(CUDA_SUCCESS, whole.result);
  ASSERT_EQ(4u, whole.levels.size());
  EXPECT_EQ(4u, whole.texture.levels);
  CUDA_RESOURCE_VIEW_DESC_st view{};
  view.firstMipmapLevel = 1, view.lastMipmapLevel = 2;
  view.firstLayer = 2, view.lastLayer = 4;
  const Told part = Create(pyramid, &view);
  ASSERT_EQ(CUDA_SUCCESS, part.result);
  EXPECT_EQ(32u, part.texture.width);
  EXPECT_EQ(8u, part.texture.height);
  EXPECT_EQ(1u, part.texture.depth);
  EXPECT_EQ(3u, part.texture.layers);
  EXPECT_EQ(2u, part.texture.levels);
  ASSERT_EQ(2u, part.levels.size());
  for (size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(whole.levels[n + 1].address + 2 * whole.levels[n + 1].slice, part.levels[n].address);
    EXPECT_EQ(whole.levels[n + 1].pitch, part.levels[n].pitch);
  }
  const auto result = [&](unsigned first_level, unsigned last_level, unsigned first_layer, unsigned last_layer) {
    view = {};
    view.firstMipmapLevel = first_level, view.lastMipmapLevel = last_level;
    view.firstLayer = first_layer, view.lastLayer = last_layer;
    return Create(pyramid, &view).result;
  };
  EXPECT_EQ(CUDA_SUCCESS, result(3, 3, 4, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(2, 1, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(0, 4, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(0, 0, 2, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(0, 0, 0, 5));
  view = {};
  view.firstMipmapLevel = view.lastMipmapLevel = 4;
  const Told small = Create(Pyramid(16, 4, 0, 0, 5), &view);
  EXPECT_EQ(1u, small.texture.width);
  EXPECT_EQ(1u, small.texture.height) << "no level is less than a texel";
}

TEST_F(ShimTextures, SurfacesTakeFacesForLayers) {
  const Told cube = Surface(Make(8, 8, 6, kStore | kCube));
  EXPECT_EQ(VGPU_TEXTURE_2D, cube.texture.shape);
  EXPECT_EQ(VGPU_TEXTURE_SURFACE | VGPU_TEXTURE_LAYERED, cube.texture.flags);
  EXPECT_EQ(6u, cube.texture.layers);
  const Told flat = Surface(Make(8, 4, 0, kStore));
  EXPECT_EQ(VGPU_TEXTURE_2D, flat.texture.shape);
  EXPECT_EQ(VGPU_TEXTURE_SURFACE, flat.texture.flags);
}

TEST_F(ShimTextures, CallsCheckTheirArguments) {
  const CUarray array = Make(8, 4, 0, kStore);
  CUDA_RESOURCE_DESC_st resource = Of(array);
  unsigned long long texture = 0, surface = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(nullptr, &resource, &how_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, nullptr, &how_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(nullptr, &resource));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, nullptr));
  resource.flags = 1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how_, nullptr));
  resource.flags = 0;
  resource.resType = 4;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how_, nullptr));
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuTexObjectCreate(&texture, &resource, &how_, nullptr));
  resource = Of(nullptr);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuSurfObjectCreate(&surface, &resource));
  resource = Of(array);
  ASSERT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how_, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuSurfObjectCreate(&surface, &resource));
  CUDA_RESOURCE_DESC_st told{};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(nullptr, texture));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&told, surface));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&told, texture));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(surface));
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectDestroy(texture));
  EXPECT_EQ(CUDA_SUCCESS, cuSurfObjectDestroy(surface));
  EXPECT_EQ((Rows{{texture}, {surface}}), ArgsOf(VGPU_OP_TEXTURE_DESTROY, 1));
  size_t width = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
  EXPECT_EQ(size_t{1} << 27, width);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(nullptr, CU_AD_FORMAT_FLOAT, 4, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&width, 0, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 1));
}

TEST_F(ShimTextures, ObjectsOfAContextGoWithIt) {
  CUcontext made = nullptr;
  unsigned long long own = 0, other = 0;
  const CUDA_RESOURCE_DESC_st resource = Linear(CU_AD_FORMAT_FLOAT, 1, 64);
  ASSERT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&own, &resource, &how_, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&other, &resource, &how_, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  EXPECT_EQ(Rows{{other}}, ArgsOf(VGPU_OP_TEXTURE_DESTROY, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(other));
  EXPECT_EQ(CUDA_SUCCESS, cuTexObjectDestroy(own));
}

}  // namespace
