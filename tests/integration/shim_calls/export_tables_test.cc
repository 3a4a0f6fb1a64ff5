// SPDX-License-Identifier: Apache-2.0
// The tables that CUDA's runtime asks for at start: where their functions are, and what those answer.
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

using Id = std::array<unsigned char, 16>;
constexpr Id kRuntime = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                         0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
constexpr Id kHooks = {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66};
constexpr Id kThreads = {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47,
                         0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc};
constexpr Id kStorage = {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
                         0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93};
constexpr Id kChecks = {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e};
constexpr Id kIntegrity = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
                           0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};
constexpr Id kHelpers = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                         0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};

// nullptr when there is none.
const void* const* TableOf(const Id& id) {
  CUuuid_st uuid;
  memcpy(uuid.bytes, id.data(), sizeof uuid.bytes);
  const void* table = &uuid;
  const CUresult result = cuGetExportTable(&table, &uuid);
  EXPECT_EQ(table != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, result);
  return static_cast<const void* const*>(table);
}
template <class Function>
Function* Slot(const Id& id, size_t slot) {
  return reinterpret_cast<Function*>(const_cast<void*>(TableOf(id)[slot]));
}

TEST_F(ShimApi, ExportTablesHaveTheirFunctionsInPlace) {
  const struct {
    const Id& id;
    size_t words;
    std::set<size_t> functions;
    bool sized = true;
  } rows[] = {{kRuntime, 13, {1, 2, 6, 7, 8, 12}},
              {kHooks, 7, {2, 6}},
              {kThreads, 4, {2}},
              {kStorage, 4, {0, 1, 2}, false},
              {kChecks, 4, {2, 3}},
              {kHelpers, 64, {4, 39, 51}},
              {kIntegrity, 3, {1}}};
  for (const auto& row : rows) {
    const void* const* const table = TableOf(row.id);
    if (&row.id == &kIntegrity && table == nullptr) continue;  // a build without it
    ASSERT_NE(nullptr, table);
    if (row.sized) {
      EXPECT_EQ(row.words * 8, reinterpret_cast<uint64_t>(table[0]));
    }
    for (size_t word = row.sized ? 1 : 0; word < row.words; ++word)
      EXPECT_EQ(row.functions.contains(word), table[word] != nullptr) << word << " of " << row.words;
  }
  Id other = kRuntime;
  ++other[15];
  EXPECT_EQ(nullptr, TableOf(other));
  CUuuid_st uuid{};
  const void* table;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(nullptr, &uuid));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, nullptr));
}

TEST_F(ShimApi, TheRuntimeGetsThePrimaryContextAndLoadsModules) {
  auto* const primary = Slot<CUresult(CUcontext*, CUdevice)>(kRuntime, 2);
  CUcontext context = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, primary(&context, 0));
  EXPECT_EQ(context_, context);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, primary(&context, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, primary(nullptr, 0));
  CUmodule module = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(CUmodule*, const void*)>(kRuntime, 1)(&module, kPtx));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  using Extended = CUresult(CUmodule*, const void*, void*, void*, void*);
  EXPECT_EQ(CUDA_SUCCESS, Slot<Extended>(kRuntime, 6)(&module, kPtx, nullptr, nullptr, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  using Fatbin = CUresult(const void*, CUmodule*, void*, void*, void*);
  EXPECT_EQ(CUDA_SUCCESS, Slot<Fatbin>(kRuntime, 8)(kPtx, &module, nullptr, nullptr, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(size_t)>(kRuntime, 7)(5));
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult()>(kRuntime, 12)());
}

TEST_F(ShimApi, NoToolListens) {
  const struct { size_t slot, bytes; } rows[] = {{2, 1024}, {6, 14}};
  for (const auto& row : rows) {
    void* buffer = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(void**, size_t*)>(kHooks, row.slot)(&buffer, &bytes));
    EXPECT_EQ(row.bytes, bytes);
    const auto* at = static_cast<const unsigned char*>(buffer);
    EXPECT_EQ(std::vector<unsigned char>(bytes), std::vector<unsigned char>(at, at + bytes));
  }
  void* thread = &thread;
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(void**)>(kThreads, 2)(&thread));
  EXPECT_EQ(nullptr, thread);
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(void**)>(kThreads, 2)(nullptr));
  using Check = CUresult(CUcontext, uint32_t*, void**);
  uint32_t answer = 99;
  EXPECT_EQ(CUDA_SUCCESS, Slot<Check>(kChecks, 2)(context_, &answer, nullptr));
  EXPECT_EQ(0u, answer);
  EXPECT_EQ(CUDA_SUCCESS, Slot<Check>(kChecks, 2)(context_, nullptr, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult()>(kChecks, 3)());
}

TEST_F(ShimApi, ContextsKeepWhatRuntimesStoreInThem) {
  using Destructor = void (*)(void*, void*, void*);
  auto* const put = Slot<CUresult(CUcontext, void*, void*, Destructor)>(kStorage, 0);
  auto* const forget = Slot<CUresult(CUcontext, void*)>(kStorage, 1);
  auto* const get = Slot<CUresult(void**, CUcontext, void*)>(kStorage, 2);
  int key = 0, other = 0;
  static std::vector<void*> ended;
  ended.clear();
  const Destructor note = [](void*, void*, void* value) { ended.push_back(value); };
  void* value = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, put(nullptr, &key, &other, note)) << "the current context";
  EXPECT_EQ(CUDA_SUCCESS, get(&value, context_, &key));
  EXPECT_EQ(&other, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, get(&value, nullptr, &other));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, get(nullptr, nullptr, &key));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, forget(nullptr, &other));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, put(nullptr, nullptr, &other, note));
  const auto wild = reinterpret_cast<CUcontext>(0x1234);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, put(wild, &key, &other, note));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, forget(wild, &key));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, get(&value, wild, &key));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  EXPECT_EQ(std::vector<void*>{&other}, ended);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, put(nullptr, &key, &other, note)) << "none is current";
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
}

TEST_F(ShimApi, LibrariesAreHelpedAlong) {
  uint64_t kind = 99;
  auto* const kind_of = Slot<CUresult(CUstream, uint64_t*)>(kHelpers, 4);
  EXPECT_EQ(CUDA_SUCCESS, kind_of(nullptr, &kind));
  EXPECT_EQ(0u, kind);
  EXPECT_EQ(CUDA_SUCCESS, kind_of(reinterpret_cast<CUstream>(1), &kind));
  EXPECT_EQ(1u, kind);
  EXPECT_EQ(CUDA_SUCCESS, Slot<CUresult(void*, void*, uint64_t*)>(kHelpers, 39)(nullptr, nullptr, &kind));
  EXPECT_EQ(0u, kind);
  void* object = nullptr;
  auto* const object_of = Slot<CUresult(void*, uint64_t, void**)>(kHelpers, 51);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, object_of(nullptr, ~uint64_t{0}, &object));
  EXPECT_EQ(nullptr, object);
  EXPECT_EQ(CUDA_SUCCESS, object_of(nullptr, 7, &object));
  const auto* at = static_cast<const unsigned char*>(object);
  EXPECT_EQ(std::vector<unsigned char>(4096), std::vector<unsigned char>(at, at + 4096));
}

TEST_F(ShimApi, TheDriverPassesTheRuntimesSelfTest) {
  if (TableOf(kIntegrity) == nullptr) GTEST_SKIP() << "a build without it";
  auto* const answer = Slot<CUresult(uint32_t, uint64_t, unsigned char*)>(kIntegrity, 1);
  const unsigned char fixed[16] = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
                                   0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};
  std::array<unsigned char, 16> first{}, again{}, later{};
  EXPECT_EQ(CUDA_SUCCESS, answer(13000, 1, first.data()));
  EXPECT_EQ(0, memcmp(fixed, first.data(), 16)) << "of versions that end in 0";
  EXPECT_EQ(CUDA_SUCCESS, answer(13002, 1, first.data()));
  EXPECT_EQ(CUDA_SUCCESS, answer(13002, 1, again.data()));
  EXPECT_EQ(CUDA_SUCCESS, answer(13002, 2, later.data()));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, later);
}

}  // namespace
