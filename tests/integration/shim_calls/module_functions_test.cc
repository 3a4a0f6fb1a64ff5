// SPDX-License-Identifier: Apache-2.0
// Which kernels a module or library has, of libcuda.so.1.
#include <array>
#include <set>
#include <string>

#include "tests/integration/shim_calls/wire.h"

namespace {

std::string NameOf(CUfunction function) {
  const char* name = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetName(&name, function));
  return name == nullptr ? "" : name;
}

TEST_F(ShimApi, AModuleTellsItsFunctions) {
  CUmodule module;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  unsigned count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(2u, count);
  CUfunction all[3] = {};
  EXPECT_EQ(CUDA_SUCCESS, cuModuleEnumerateFunctions(all, 3, module));
  EXPECT_EQ("narrow", NameOf(all[0]));
  EXPECT_EQ("vectoradd", NameOf(all[1]));
  EXPECT_EQ(nullptr, all[2]);
  CUfunction same;
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&same, module, "vectoradd"));
  EXPECT_EQ(all[1], same);
  CUfunction first[2] = {};
  EXPECT_EQ(CUDA_SUCCESS, cuModuleEnumerateFunctions(first, 1, module)) << "as many as there is room for";
  EXPECT_EQ(all[0], first[0]);
  EXPECT_EQ(nullptr, first[1]);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions(nullptr, 1, module));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions(all, 0, module));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunctionCount(nullptr, module));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunctionCount(&count, module));
}

TEST_F(ShimApi, ALibraryTellsItsKernels) {
  CUlibrary library;
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetKernelCount(&count, library));
  EXPECT_EQ(2u, count);
  CUkernel all[2] = {};
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryEnumerateKernels(all, 2, library));
  CUkernel same;
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&same, library, "narrow"));
  EXPECT_EQ(all[0], same);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryEnumerateKernels(all, 0, library));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernelCount(&count, library));
}

TEST_F(ShimApi, TheTableThatCuFftAsksForGivesEachFunction) {
  constexpr std::array<unsigned char, 16> kId = {0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d,
                                                 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e};
  CUuuid_st uuid;
  memcpy(uuid.bytes, kId.data(), sizeof uuid.bytes);
  const void* table = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGetExportTable(&table, &uuid));
  using PerFunction = void (*)(void*, CUfunction, CUmodule);
  const auto for_each = reinterpret_cast<int (*)(CUcontext, CUmodule, PerFunction, void*)>(
      const_cast<void*>(static_cast<const void* const*>(table)[7]));
  CUmodule module;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  struct Seen {
    CUmodule module;
    std::set<std::string> names;
  } seen{module, {}};
  const auto note = [](void* cookie, CUfunction function, CUmodule of) {
    auto* const noted = static_cast<Seen*>(cookie);
    EXPECT_EQ(noted->module, of);
    noted->names.insert(NameOf(function));
  };
  EXPECT_EQ(1, for_each(nullptr, module, note, &seen));
  EXPECT_EQ((std::set<std::string>{"narrow", "vectoradd"}), seen.names);
  EXPECT_EQ(0, for_each(nullptr, module, nullptr, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(0, for_each(nullptr, module, note, &seen));
}

}  // namespace
