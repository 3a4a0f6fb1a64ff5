// SPDX-License-Identifier: Apache-2.0
// The linker's calls of libcuda.so.1 and their arguments.
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

const auto kWild = reinterpret_cast<CUlinkState>(0x1234);

class ShimLink : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(0, nullptr, nullptr, &state_));
  }
  CUresult Add(int type, std::string data) {
    return cuLinkAddData_v2(state_, type, data.data(), data.size(), "name", 0, nullptr, nullptr);
  }
  CUlinkState state_ = nullptr;
};

TEST_F(ShimLink, OptionsAreThoseOfCuda13) {
  CUlinkState made = nullptr;
  for (const int option : {-1, 0, 1, 7, 34, 35, 1000}) {
    int options[] = {option};
    void* values[] = {nullptr};
    const bool known = option >= 0 && option < 35;
    EXPECT_EQ(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(1, options, values, &made)) << option;
  }
  int options[] = {CU_JIT_TARGET};
  void* values[] = {nullptr};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(1, nullptr, values, &made));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(1, options, nullptr, &made));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(0, nullptr, nullptr, nullptr));
}

TEST_F(ShimLink, LogsAreEmptyAndNoTimePassed) {
  char info[8] = "info", error[8] = "error";
  int options[] = {CU_JIT_WALL_TIME,
                   CU_JIT_INFO_LOG_BUFFER,
                   CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_ERROR_LOG_BUFFER,
                   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_TARGET};
  void* const size = reinterpret_cast<void*>(8);
  void* values[] = {size, info, size, error, size, size};
  CUlinkState state = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(6, options, values, &state));
  std::string ptx(kPtx);
  ASSERT_EQ(CUDA_SUCCESS, cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "", 0, nullptr, nullptr));
  void* image = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuLinkComplete(state, &image, nullptr));
  EXPECT_STREQ("", info);
  EXPECT_STREQ("", error);
  for (const int i : {0, 2, 4}) EXPECT_EQ(nullptr, values[i]) << i;
  EXPECT_EQ(info, values[1]);
  EXPECT_EQ(size, values[5]) << "no answer";
  values[1] = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuLinkComplete(state, &image, nullptr)) << "no log is wanted any more";
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(state));
}

TEST_F(ShimLink, TheErrorLogNamesTheInputThatWasRefused) {
  char error[200] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(sizeof error)};
  CUlinkState state = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(2, options, values, &state));
  char object[] =
      "\x7f"
      "ELF";
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED,
            cuLinkAddData_v2(state, CU_JIT_INPUT_OBJECT, object, sizeof object, "part.o", 0, nullptr, nullptr));
  EXPECT_NE(nullptr, strstr(error, "part.o: machine code")) << error;
  EXPECT_EQ(strlen(error), reinterpret_cast<size_t>(values[1]));
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(state));
}

TEST_F(ShimLink, TextsAndFatbinsAreTaken) {
  const struct {
    int type;
    CUresult result;
  } rows[] = {{-1, CUDA_ERROR_INVALID_VALUE},
              {CU_JIT_INPUT_CUBIN, CUDA_ERROR_NOT_SUPPORTED},
              {CU_JIT_INPUT_PTX, CUDA_SUCCESS},
              {CU_JIT_INPUT_FATBINARY, CUDA_SUCCESS},
              {CU_JIT_INPUT_OBJECT, CUDA_ERROR_NOT_SUPPORTED},
              {CU_JIT_NUM_INPUT_TYPES - 1, CUDA_ERROR_NOT_SUPPORTED},
              {CU_JIT_NUM_INPUT_TYPES, CUDA_ERROR_INVALID_VALUE}};
  for (const auto& row : rows) EXPECT_EQ(row.result, Add(row.type, kPtx)) << row.type;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Add(CU_JIT_INPUT_PTX, ""));
  const std::string damaged("\x50\xed\x55\xba\x09\x00\x10\x00", 8);
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, Add(CU_JIT_INPUT_PTX, damaged + std::string(8, '\0')));
  EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, Add(CU_JIT_INPUT_FATBINARY, damaged + std::string(8, '\0')));
  char byte = 'x';
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkAddData_v2(state_, 1, nullptr, 1, "", 0, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLinkAddData_v2(kWild, 1, &byte, 1, "", 0, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkAddFile_v2(state_, 1, nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile_v2(state_, 1, "/nonexistent.ptx", 0, nullptr, nullptr));
}

TEST_F(ShimLink, AnImageOfOneInputIsThatInputAndANul) {
  char path[] = "/tmp/shim_link_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_LE(0, fd);
  ASSERT_EQ(ssize_t{sizeof kPtx - 1}, write(fd, kPtx, sizeof kPtx - 1));
  close(fd);
  void* image = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state_, &image, &bytes)) << "of nothing";
  EXPECT_EQ(CUDA_SUCCESS, cuLinkAddFile_v2(state_, CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr));
  unlink(path);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuLinkComplete(state_, &image, &bytes));
    EXPECT_EQ(sizeof kPtx, bytes) << "the same every time";
    EXPECT_EQ(0, memcmp(kPtx, image, sizeof kPtx));
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state_, nullptr, &bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(kWild, &image, &bytes));
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(state_));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state_));
}

}  // namespace
