// SPDX-License-Identifier: Apache-2.0
// cuLink of one image and of several, served by fake_vf (shim_api_test.cc).
#include <string>
#include <string_view>

#include "tests/integration/shim_fixture.h"

namespace {

TEST_F(ShimApi, LinksASingleImage) {
  CUlinkState state = nullptr;
  char log[16] = "untouched";
  int options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(2, options, values, &state));
  void* image = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state, &image, &bytes)) << "of nothing";
  char text[] =
      "\x7f"
      "ELF";
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, 4, "bad", 0, nullptr, nullptr));
  std::string ptx(kPtx);
  ASSERT_EQ(CUDA_SUCCESS,
            cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "good", 0, nullptr, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuLinkComplete(state, &image, &bytes));
  EXPECT_STREQ("", log);
  EXPECT_EQ(nullptr, values[1]) << "bytes said";
  CUmodule module;
  CUfunction function;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, image));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "vectoradd"));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(state));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state));
}

TEST_F(ShimApi, LinksSeveralImagesIntoOneThatHoldsThemAll) {
  CUlinkState state = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(0, nullptr, nullptr, &state));
  const auto add = [&](std::string ptx) {
    return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "part", 0, nullptr, nullptr);
  };
  const std::string second = ".version 9.0 .target sm_75 .address_size 64 // the second";
  ASSERT_EQ(CUDA_SUCCESS, add(kPtx));
  ASSERT_EQ(CUDA_SUCCESS, add(second));
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuLinkComplete(state, &image, &bytes));
  const std::string_view all(static_cast<const char*>(image), bytes);
  EXPECT_TRUE(all.starts_with("\x50\xed\x55\xba")) << "a fatbin";
  EXPECT_LT(all.find(kPtx), all.find(second));
  EXPECT_NE(std::string_view::npos, all.find(second));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, add(second)) << "complete";
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(state));
}

}  // namespace
