// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what the layout of uapi/vgpu_tensor_map.h gets of a call, and which calls are wrong.
#include <cstring>

#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"
#include "tests/integration/shim_calls/wire.h"

namespace {

struct Ask {
  int type = 7;  // FLOAT32
  unsigned rank = 3;
  uint64_t address = 0x700000000100;
  unsigned long size[5] = {100, 50, 20, 3, 2};
  unsigned long stride[4] = {400, 20000, 400000, 1200000};
  unsigned box[5] = {32, 16, 4, 1, 1};
  unsigned step[5] = {1, 2, 1, 1, 1};
  int interleave = 0;
  int swizzle = 0;
  int promotion = 0;
  int fill = 0;
};

class ShimTensorMap : public ShimWire {
 protected:
  CUresult Encode(const Ask& a) {
    return cuTensorMapEncodeTiled(reinterpret_cast<CUtensorMap_st*>(&map_), a.type, a.rank,
                                  reinterpret_cast<void*>(a.address), a.size, a.stride, a.box, a.step, a.interleave,
                                  a.swizzle, a.promotion, a.fill);
  }
  template <class Change>
  CUresult EncodeWith(Change change) {
    Ask ask;
    change(ask);
    return Encode(ask);
  }
  alignas(64) vgpu_tensor_map map_{};
};

TEST_F(ShimTensorMap, EveryArgumentIsWritten) {
  Ask ask;
  ask.swizzle = 5;
  ask.fill = 1;
  ask.promotion = 3;
  ASSERT_EQ(CUDA_SUCCESS, Encode(ask));
  vgpu_tensor_map expected{};
  expected.magic = VGPU_TENSOR_MAP_MAGIC;
  expected.type = VGPU_TENSOR_F32;
  expected.rank_minus_1 = 2;
  expected.swizzle = VGPU_SWIZZLE_128;
  expected.atomicity = VGPU_ATOM_32_FLIP_8;
  expected.fill = 1;
  expected.address = 0x700000000100;
  for (int d = 0; d < 3; ++d) {
    expected.size[d] = ask.size[d];
    expected.box[d] = static_cast<uint16_t>(ask.box[d]);
    expected.element_stride[d] = static_cast<uint8_t>(ask.step[d]);
  }
  expected.stride[0] = 400;
  expected.stride[1] = 20000;
  EXPECT_EQ(0, memcmp(&expected, &map_, sizeof map_));
  ASSERT_EQ(CUDA_SUCCESS, cuTensorMapReplaceAddress(reinterpret_cast<CUtensorMap_st*>(&map_),
                                                    reinterpret_cast<void*>(0x700000000200)));
  expected.address = 0x700000000200;
  EXPECT_EQ(0, memcmp(&expected, &map_, sizeof map_));
}

TEST_F(ShimTensorMap, TypesHaveTheNumbersOfInstructions) {
  const uint8_t types[] = {VGPU_TENSOR_U8,       VGPU_TENSOR_U16,  VGPU_TENSOR_U32,     VGPU_TENSOR_S32,
                           VGPU_TENSOR_U64,      VGPU_TENSOR_S64,  VGPU_TENSOR_F16,     VGPU_TENSOR_F32,
                           VGPU_TENSOR_F64,      VGPU_TENSOR_BF16, VGPU_TENSOR_F32_FTZ, VGPU_TENSOR_TF32,
                           VGPU_TENSOR_TF32_FTZ, VGPU_TENSOR_B4X16};
  for (int type = 0; type < 14; ++type) {
    EXPECT_EQ(CUDA_SUCCESS, EncodeWith([&](Ask& a) { a.type = type; })) << type;
    EXPECT_EQ(types[type], map_.type) << type;
  }
  for (const int type : {14, 15}) {
    const auto packed = [&](Ask& a) {
      a.type = type, a.size[0] = 256, a.box[0] = 128;
      for (auto& s : a.stride) s = 1600;
    };
    EXPECT_EQ(CUDA_SUCCESS, EncodeWith(packed)) << type;
    EXPECT_EQ(type, map_.type);
  }
}

TEST_F(ShimTensorMap, WrongArgumentsAreRefused) {
  ASSERT_EQ(CUDA_SUCCESS, Encode({}));
  const vgpu_tensor_map before = map_;
  void (*const wrong[])(Ask&) = {
      [](Ask& a) { a.type = 16; },     [](Ask& a) { a.type = -1; },
      [](Ask& a) { a.rank = 0; },      [](Ask& a) { a.rank = 6; },
      [](Ask& a) { a.address += 8; },  [](Ask& a) { a.address = 0; },
      [](Ask& a) { a.size[1] = 0; },   [](Ask& a) { a.size[0] = 1ul << 33; },
      [](Ask& a) { a.stride[1] = 8; }, [](Ask& a) { a.stride[0] = 1ul << 40; },
      [](Ask& a) { a.box[2] = 0; },    [](Ask& a) { a.box[2] = 257; },
      [](Ask& a) { a.box[0] = 30; },   [](Ask& a) { a.step[1] = 0; },
      [](Ask& a) { a.step[1] = 9; },   [](Ask& a) { a.interleave = 3; },
      [](Ask& a) { a.swizzle = 7; },   [](Ask& a) { a.promotion = 4; },
      [](Ask& a) { a.fill = 2; },      [](Ask& a) { a.type = 2, a.fill = 1; },
      [](Ask& a) { a.swizzle = 1; },   [](Ask& a) { a.type = 13, a.size[0] = 101; },
      [](Ask& a) { a.type = 15; },     [](Ask& a) { a.rank = 2, a.interleave = 1; },
  };
  for (size_t n = 0; n < std::size(wrong); ++n) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, EncodeWith(wrong[n])) << n;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, EncodeWith([](Ask& a) { a.interleave = 1; }))
      << "there is such a map, but not here";
  EXPECT_EQ(0, memcmp(&before, &map_, sizeof map_)) << "nothing of them was written";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(reinterpret_cast<CUtensorMap_st*>(&map_),
                                                                reinterpret_cast<void*>(0x700000000208)));
  map_ = {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(reinterpret_cast<CUtensorMap_st*>(&map_),
                                                                reinterpret_cast<void*>(0x700000000200)));
}

TEST_F(ShimTensorMap, ColumnsOfImagesAreTheHostsOrNone) {
  const Ask ask;
  const int corner[3] = {};
  const auto columns = [&](unsigned rank, const int* lower) {
    return cuTensorMapEncodeIm2col(reinterpret_cast<CUtensorMap_st*>(&map_), ask.type, rank,
                                   reinterpret_cast<void*>(ask.address), ask.size, ask.stride, lower, corner, 32, 16,
                                   ask.step, 0, 0, 0, 0);
  };
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, columns(3, corner)) << "the soft GPU has none";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, columns(2, corner));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, columns(6, corner));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuTensorMapEncodeIm2colWide(reinterpret_cast<CUtensorMap_st*>(&map_), ask.type, 3,
                                                                  reinterpret_cast<void*>(ask.address), ask.size,
                                                                  ask.stride, 0, 0, 32, 16, ask.step, 0, 0, 0, 0, 0));
}

}  // namespace
