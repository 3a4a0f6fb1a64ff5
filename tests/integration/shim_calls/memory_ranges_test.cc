// SPDX-License-Identifier: Apache-2.0
// What a program has said of parts of managed memory, and what it hears when it asks (cuMemRangeGetAttribute).
#include <array>

#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr size_t kPage = 4096;
constexpr int kCpu = -1, kNowhere = -2;

class ShimMemoryRanges : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&memory_, 4 * kPage, CU_MEM_ATTACH_GLOBAL));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory_));
    ShimWire::TearDown();
  }
  int Of(int attribute, size_t first_page = 0, size_t pages = 4) const {
    int value = 77;
    EXPECT_EQ(CUDA_SUCCESS,
              cuMemRangeGetAttribute(&value, sizeof value, attribute, memory_ + first_page * kPage, pages * kPage));
    return value;
  }
  CUresult Advise(int advice, size_t first_page, size_t pages, CUdevice place = 0) const {
    return cuMemAdvise(memory_ + first_page * kPage, pages * kPage, advice, place);
  }
  CUdeviceptr memory_ = 0;
};

TEST_F(ShimMemoryRanges, NothingWasSaidAtFirst) {
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION));
  EXPECT_EQ(CU_MEM_LOCATION_TYPE_INVALID, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE));
  EXPECT_EQ(CU_MEM_LOCATION_TYPE_INVALID, Of(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE));
}

TEST_F(ShimMemoryRanges, WhatHoldsForAPartDoesNotHoldForAll) {
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, 1, 2));
  EXPECT_EQ(1, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1, 2));
  EXPECT_EQ(1, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 2, 1));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 2));
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_UNSET_READ_MOSTLY, 2, 1));
  EXPECT_EQ(1, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1, 1));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 2, 1));
}

TEST_F(ShimMemoryRanges, APlaceIsADeviceTheHostOrNowhere) {
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0, 4, 0));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION));
  EXPECT_EQ(CU_MEM_LOCATION_TYPE_DEVICE, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID));
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1, 1, kCpu));
  EXPECT_EQ(kCpu, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 1, 1));
  EXPECT_EQ(CU_MEM_LOCATION_TYPE_HOST, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 1, 1));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)) << "two places";
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 1, 1));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 1, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0, 4, 9));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Advise(99, 0, 4));
}

TEST_F(ShimMemoryRanges, ManyMayBeToldToAccessIt) {
  const auto accessed_by = [&](size_t first_page, size_t pages) {
    std::array<int, 3> places{7, 7, 7};
    EXPECT_EQ(CUDA_SUCCESS, cuMemRangeGetAttribute(places.data(), sizeof places, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                                   memory_ + first_page * kPage, pages * kPage));
    return places;
  };
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, 0, 4, 0));
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, 0, 2, kCpu));
  EXPECT_EQ((std::array{kCpu, 0, kNowhere}), accessed_by(0, 2));
  EXPECT_EQ((std::array{0, kNowhere, kNowhere}), accessed_by(0, 4)) << "by whom all of it is";
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0, 1, 0));
  EXPECT_EQ((std::array{kCpu, kNowhere, kNowhere}), accessed_by(0, 1));
  EXPECT_EQ(kCpu, Of(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, 0, 2)) << "as many as there is room for";
}

TEST_F(ShimMemoryRanges, PrefetchesAreRemembered) {
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync(memory_, 4 * kPage, 0, nullptr));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION));
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync(memory_ + 3 * kPage, 1, kCpu, nullptr));
  EXPECT_EQ(kNowhere, Of(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION));
  EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 3));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(memory_, kPage, 9, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(memory_, 5 * kPage, 0, nullptr));
}

TEST_F(ShimMemoryRanges, SeveralAttributesAreAskedForAtOnce) {
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, 0, 4));
  int read_mostly = 7, preferred = 7;
  std::array<int, 2> accessed_by{7, 7};
  void* data[] = {&read_mostly, &accessed_by, &preferred};
  size_t bytes[] = {sizeof read_mostly, sizeof accessed_by, sizeof preferred};
  int which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                 CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  EXPECT_EQ(CUDA_SUCCESS, cuMemRangeGetAttributes(data, bytes, which, 3, memory_, 4 * kPage));
  EXPECT_EQ(1, read_mostly);
  EXPECT_EQ((std::array{kNowhere, kNowhere}), accessed_by);
  EXPECT_EQ(kNowhere, preferred);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, bytes, which, 0, memory_, kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(nullptr, bytes, which, 3, memory_, kPage));
  bytes[0] = 8;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, bytes, which, 3, memory_, kPage));
}

TEST_F(ShimMemoryRanges, OnlyManagedMemoryHasAny) {
  const CUdeviceptr device = Alloc(kPage);
  int value = 0;
  for (const auto& [at, bytes] : {std::pair{device, kPage}, {memory_, 5 * kPage}, {memory_, size_t{0}}})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&value, sizeof value, 99, memory_, kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(device, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
}

TEST_F(ShimMemoryRanges, WhatWasSaidEndsWithTheMemory) {
  ASSERT_EQ(CUDA_SUCCESS, Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, 0, 4));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory_));
    ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&memory_, 4 * kPage, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(0, Of(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY));
  }
}

}  // namespace
