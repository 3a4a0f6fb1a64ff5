// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress of the library as built, and that everything it hands out is its own.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "gpu/cuda/driver_calls.h"
#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace {

struct Answer {
  CUresult result;
  void* function;
  int status;
};
Answer Ask(const char* name, int version, unsigned long flags = 0) {
  Answer answer{-1, reinterpret_cast<void*>(1), -1};
  answer.result = cuGetProcAddress_v2(name, &answer.function, version, flags, &answer.status);
  return answer;
}
template <class F>
void* Address(F* function) {
  return reinterpret_cast<void*>(function);
}

TEST(GetProcAddress, GivesTheHighestVersionThatIsNotTooNew) {
  EXPECT_EQ(Address(cuCtxSynchronize), Ask("cuCtxSynchronize", 2000).function);
  EXPECT_EQ(Address(cuCtxSynchronize), Ask("cuCtxSynchronize", 12090).function);
  EXPECT_EQ(Address(cuCtxSynchronize_v2), Ask("cuCtxSynchronize", 13000).function);
  EXPECT_EQ(Address(cuMemAlloc_v2), Ask("cuMemAlloc", 13000).function);
  EXPECT_EQ(Address(cuMemAlloc), Ask("cuMemAlloc", 3010).function);
  EXPECT_EQ(Address(cuGetProcAddress), Ask("cuGetProcAddress", 11030).function);
  EXPECT_EQ(Address(cuGetProcAddress_v2), Ask("cuGetProcAddress", 12000).function);
  EXPECT_EQ(Address(cuDeviceGetUuid), Ask("cuDeviceGetUuid", 9020).function);
}

TEST(GetProcAddress, RefusesVersionsThatAreNewerThanTheDriver) {
  int version = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuDriverGetVersion(&version));
  EXPECT_EQ(CUDA_SUCCESS, Ask("cuInit", version).result);
  for (const int newer : {version + 1, 13010, 14000, 2147483647}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask("cuInit", newer).result) << newer;
    void* function;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &function, newer, 0)) << newer;
  }
}

TEST(GetProcAddress, PerThreadFlagPrefersTheTwin) {
  EXPECT_EQ(Address(cuLaunchKernel_ptsz), Ask("cuLaunchKernel", 7000, 2).function);
  EXPECT_EQ(Address(cuLaunchKernel), Ask("cuLaunchKernel", 7000, 1).function);
  EXPECT_EQ(Address(cuLaunchKernel), Ask("cuLaunchKernel", 7000, 0).function);
  EXPECT_EQ(Address(cuMemcpyHtoD_v2_ptds), Ask("cuMemcpyHtoD", 7000, 2).function);
  EXPECT_EQ(Address(cuMemAlloc_v2), Ask("cuMemAlloc", 3020, 2).function) << "no twin: the plain one";
}

// gpu/cuda/driver_calls.h has both names of each form of a call.
TEST(GetProcAddress, FindsTheCallsOfOurProgramsAsTheDynamicLinkerDoes) {
  for (const auto& row : vgpud::driver::kCallRows) {
    const Answer answer = Ask(row.name, row.version);
    EXPECT_NE(nullptr, answer.function) << row.name << " of version " << row.version;
    EXPECT_EQ(dlsym(RTLD_DEFAULT, row.symbol), answer.function) << row.symbol << " for " << row.name;
  }
}

TEST(GetProcAddress, TellsUnknownNamesFromNewerOnes) {
  for (const char* name : {"", "cuNoSuchThing", "cuWGLGetDevice", "cuMemAlloc_v2"}) {
    const Answer answer = Ask(name, 13000);
    EXPECT_EQ(CUDA_SUCCESS, answer.result) << name << ": the status tells";
    EXPECT_EQ(nullptr, answer.function) << name;
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, answer.status) << name;
  }
  const Answer answer = Ask("cuLibraryLoadData", 11080);
  EXPECT_EQ(CUDA_SUCCESS, answer.result);
  EXPECT_EQ(nullptr, answer.function);
  EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, answer.status);
}

TEST(GetProcAddress, OfBeforeCuda12TellsByItsResult) {
  void* function = &function;
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNoSuchThing", &function, 11030, 0));
  EXPECT_EQ(nullptr, function);
}

TEST(GetProcAddress, KnowsTheCallsForGraphics) {
  EXPECT_EQ(Address(cuGLGetDevices_v2), Ask("cuGLGetDevices", 13000).function);
  EXPECT_EQ(Address(cuGLGetDevices), Ask("cuGLGetDevices", 6000).function);
  EXPECT_EQ(Address(cuGLMapBufferObject_v2_ptds), Ask("cuGLMapBufferObject", 13000, 2).function);
  EXPECT_EQ(Address(cuEGLStreamConsumerConnect), Ask("cuEGLStreamConsumerConnect", 7000).function);
  EXPECT_EQ(Address(cuVDPAUCtxCreate_v2), Ask("cuVDPAUCtxCreate", 13000).function);
}

TEST(GetProcAddress, RefusesBadArgumentsAndTakesANullStatus) {
  void* function;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2(nullptr, &function, 13000, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", nullptr, 13000, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", &function, 13000, 4, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuGetProcAddress_v2("cuInit", &function, 13000, 0, nullptr));
}

TEST(GetProcAddress, FlagsChooseOneKindOfDefaultStream) {
  for (const unsigned long flags : {0ul, 1ul, 2ul}) EXPECT_EQ(CUDA_SUCCESS, Ask("cuInit", 13000, flags).result);
  for (const unsigned long flags : {3ul, 4ul, 8ul, 5ul, 6ul})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask("cuInit", 13000, flags).result) << flags;
  void* function = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGetProcAddress("cuInit", &function, 13000, 0));
  EXPECT_EQ(Address(cuInit), function);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(nullptr, &function, 13000, 0));
  EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, Ask("cuInit", 13000).status);
  EXPECT_EQ(Address(cuInit), Ask("cuInit", 2000).function) << "of its very version";
  EXPECT_EQ(nullptr, Ask("cuInit", 1999).function);
  // A twin that is newer than what is asked for is none yet.
  EXPECT_EQ(Address(cuLaunchKernel), Ask("cuLaunchKernel", 6999, 2).function);
}

TEST(Library, KnowsItsFirstAndItsLastError) {
  const char* text = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGetErrorName(0, &text));
  EXPECT_STREQ("CUDA_SUCCESS", text);
  EXPECT_EQ(CUDA_SUCCESS, cuGetErrorName(999, &text));
  EXPECT_STREQ("CUDA_ERROR_UNKNOWN", text);
  for (const CUresult unknown : {-1, 998, 1000}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(unknown, &text)) << unknown;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(unknown, &text)) << unknown;
    EXPECT_EQ(nullptr, text);
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(1, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(1, nullptr));
}

TEST(Library, KnowsItsErrors) {
  const char* text;
  ASSERT_EQ(CUDA_SUCCESS, cuGetErrorName(700, &text));
  EXPECT_STREQ("CUDA_ERROR_ILLEGAL_ADDRESS", text);
  ASSERT_EQ(CUDA_SUCCESS, cuGetErrorString(700, &text));
  EXPECT_STREQ("an illegal memory access was encountered", text);
  ASSERT_EQ(CUDA_SUCCESS, cuGetErrorString(1, &text));
  EXPECT_STREQ("invalid argument", text);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(12345, &text));
  EXPECT_EQ(nullptr, text);
}

TEST(Library, AnswersNotInitializedBeforeInit) {
  int count;
  CUcontext context;
  CUdeviceptr address;
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&address, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuDriverGetVersion(&count));
  EXPECT_EQ(13000, count);
}

TEST(Library, SaysWhatItDoesNotDo) {
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMulticastUnbind(0, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(nullptr, 0));
}

}  // namespace
