// SPDX-License-Identifier: Apache-2.0
// Contexts of libcuda.so.1 in their older forms, and whose a function, a kernel or a stream is.
#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kWildFunction = reinterpret_cast<CUfunction>(0x1234);

CUcontext Top() {
  CUcontext current = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  return current;
}

TEST_F(ShimApi, ContextsAreAttachedAndDetached) {
  CUcontext made = nullptr, again = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate(&made, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&again, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(nullptr, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxAttach(&again, 0));
  EXPECT_EQ(made, again);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(context_)) << "not the current one";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDetach(made));
  EXPECT_EQ(made, Top()) << "it is still used";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDetach(made));
  EXPECT_EQ(context_, Top());
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(made)) << "gone";
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(context_)) << "the primary one is released, not detached";
  ASSERT_EQ(CUDA_SUCCESS, cuCtxAttach(&again, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDetach(context_));
}

TEST_F(ShimApi, ContextsWithAffinitiesAreRefused) {
  CUcontext made = nullptr;
  EXPECT_EQ(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&made, nullptr, 1, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&made, nullptr, -1, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v3(&made, nullptr, 0, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
}

TEST_F(ShimApi, FlagsOfTheCurrentContextCanBeSet) {
  unsigned flags = 99, primary = 99;
  int active = 0;
  CUcontext made = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetFlags(CU_CTX_SCHED_YIELD));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &primary, &active));
  EXPECT_EQ(unsigned{CU_CTX_SCHED_YIELD}, primary);
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetFlags(CU_CTX_SCHED_SPIN));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetFlags(&flags));
  EXPECT_EQ(unsigned{CU_CTX_SCHED_SPIN}, flags);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(256));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetFlags(&flags));
  EXPECT_EQ(unsigned{CU_CTX_SCHED_YIELD}, flags) << "each has its own";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetFlags(0));
}

TEST_F(ShimApi, NoContextIsAPeer) {
  CUcontext made = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuCtxEnablePeerAccess(made, 0)) << "oneself";
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuCtxEnablePeerAccess(context_, 0)) << "the same device";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(context_, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(context_));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDisablePeerAccess(nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
}

TEST_F(ShimApi, BanksAndCachesAreHints) {
  int config = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetSharedMemConfig(&config));
  EXPECT_EQ(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, config);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetSharedMemConfig(nullptr));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "narrow"));
  for (const int size : {-1, 0, 1, 2, 3}) {
    const CUresult expected = size >= 0 && size <= 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(expected, cuCtxSetSharedMemConfig(size)) << size;
    EXPECT_EQ(expected, cuFuncSetSharedMemConfig(function, size)) << size;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedMemConfig(kWildFunction, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxResetPersistingL2Cache());
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0)) << "none is what there is";
  EXPECT_EQ(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxResetPersistingL2Cache());
}

TEST_F(ShimApi, FunctionsAndKernelsTellWhereTheyAreFrom) {
  CUmodule module = nullptr, other = nullptr, of = nullptr;
  CUlibrary library = nullptr, home = nullptr;
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&other, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "narrow"));
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&kernel, library, "narrow"));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetModule(&of, function));
  EXPECT_EQ(module, of);
  EXPECT_EQ(CUDA_SUCCESS, cuKernelGetLibrary(&home, kernel));
  EXPECT_EQ(library, home);
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuKernelGetLibrary(&home, reinterpret_cast<CUkernel>(function)));
  CUmodule of_library = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetModule(&of_library, library));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetModule(&of, reinterpret_cast<CUfunction>(kernel)));
  EXPECT_EQ(of_library, of);
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuFuncGetModule(&of, kWildFunction));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetModule(nullptr, function));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuKernelGetLibrary(&home, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuKernelGetLibrary(nullptr, kernel));
  int state = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncIsLoaded(&state, function));
  EXPECT_EQ(CU_FUNCTION_LOADING_STATE_LOADED, state);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncIsLoaded(nullptr, function));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncIsLoaded(&state, kWildFunction));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncLoad(function));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncLoad(kWildFunction));
}

TEST_F(ShimApi, StreamsHaveNoGreenContext) {
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  auto green = reinterpret_cast<CUgreenCtx>(1);
  CUcontext context = nullptr;
  for (const CUstream each : {stream, CUstream{nullptr}}) {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx_v2(each, &context, &green));
    EXPECT_EQ(context_, context);
    EXPECT_EQ(nullptr, green);
  }
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx_v2_ptsz(nullptr, &context, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamGetCtx_v2(reinterpret_cast<CUstream>(3), &context, &green));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimApi, OldFormsOfHostMemoryWorkAsTheNewOnes) {
  void* memory = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocHost(&memory, 100));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(memory));
  static char mine[64];
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostRegister(mine, sizeof mine, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostUnregister(mine));
  unsigned free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo(&free_bytes, &total_bytes));
  EXPECT_EQ(1u << 30, total_bytes);
  total_bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo(nullptr, &total_bytes));
  EXPECT_EQ(1u << 30, total_bytes);
  free_bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo(&free_bytes, nullptr));
  EXPECT_EQ(1000u, free_bytes);
}

}  // namespace
