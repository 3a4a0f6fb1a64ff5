// SPDX-License-Identifier: Apache-2.0
// Modules, kernels and launches of libcuda.so.1, call by call. The fake has the kernels `vectoradd` and `narrow`.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kWildFunction = reinterpret_cast<CUfunction>(0x1234);

class ShimLaunch : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&add_, module_, "vectoradd"));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&narrow_, module_, "narrow"));
    memory_ = Alloc(64);
  }
  CUresult Launch(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block, unsigned shared = 0) {
    unsigned n = 1;
    void* parameters[] = {&memory_, &memory_, &memory_, &n};
    return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, nullptr,
                          parameters, nullptr);
  }
  int Attribute(int which) {
    int value = -99;
    EXPECT_EQ(CUDA_SUCCESS, cuFuncGetAttribute(&value, which, narrow_)) << which;
    return value;
  }
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr, narrow_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(ShimLaunch, ParametersLieAtTheirOffsets) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  unsigned long long id = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamGetId(stream, &id));
  CUdeviceptr b = memory_ + 4, c = memory_ + 8;
  unsigned n = 2;
  void* parameters[] = {&memory_, &b, &c, &n};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(add_, 2, 3, 4, 5, 6, 7, 8, stream, parameters, nullptr));
  const auto sent = Take(VGPU_OP_LAUNCH);
  ASSERT_EQ(1u, sent.size());
  EXPECT_EQ(id, sent[0].entry.stream);
  ASSERT_EQ(sizeof(vgpu_launch) + 28, sent[0].payload.size());
  const auto launch = sent[0].As<vgpu_launch>();
  EXPECT_EQ((std::vector<uint32_t>{2, 3, 4}), std::vector<uint32_t>(launch.grid, launch.grid + 3));
  EXPECT_EQ((std::vector<uint32_t>{5, 6, 7}), std::vector<uint32_t>(launch.block, launch.block + 3));
  EXPECT_EQ(8u, launch.dynamic_shared);
  EXPECT_EQ(28u, launch.param_bytes);
  EXPECT_EQ(0u, launch.flags);
  EXPECT_EQ(memory_, sent[0].As<uint64_t>(sizeof launch));
  EXPECT_EQ(b, sent[0].As<uint64_t>(sizeof launch + 8));
  EXPECT_EQ(c, sent[0].As<uint64_t>(sizeof launch + 16));
  EXPECT_EQ(2u, sent[0].As<uint32_t>(sizeof launch + 24));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

// cuda.h: the context is that of the stream, or the current one for a default stream.
TEST_F(ShimLaunch, AMadeStreamNeedsNoCurrentContext) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  std::thread([&] {
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  }).join();
  EXPECT_EQ(1u, Take(VGPU_OP_LAUNCH).size());
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimLaunch, ShapesAreBoundedByDeviceAndKernel) {
  const struct {
    CUfunction function;
    std::vector<unsigned> grid, block;
    CUresult result;
  } rows[] = {{add_, {2147483647, 1, 1}, {1, 1, 1}, CUDA_SUCCESS},
              {add_, {2147483648, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 65535, 1}, {1, 1, 1}, CUDA_SUCCESS},
              {add_, {1, 65536, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 65534}, {1, 1, 1}, CUDA_SUCCESS},
              {add_, {1, 1, 65535}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {0, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 0, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 0}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {0, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {1, 0, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {1024, 1, 1}, CUDA_SUCCESS},
              {add_, {1, 1, 1}, {1025, 1, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {1, 1023, 1}, CUDA_SUCCESS},
              {add_, {1, 1, 1}, {1, 1024, 1}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {1, 1, 64}, CUDA_SUCCESS},
              {add_, {1, 1, 1}, {1, 1, 65}, CUDA_ERROR_INVALID_VALUE},
              {add_, {1, 1, 1}, {32, 32, 1}, CUDA_SUCCESS},
              {add_, {1, 1, 1}, {32, 33, 1}, CUDA_ERROR_INVALID_VALUE},
              {narrow_, {1, 1, 1}, {96, 1, 1}, CUDA_SUCCESS},
              {narrow_, {1, 1, 1}, {97, 1, 1}, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}};
  for (size_t i = 0; i < std::size(rows); ++i)
    EXPECT_EQ(rows[i].result, Launch(rows[i].function, rows[i].grid, rows[i].block)) << "row " << i;
  EXPECT_EQ(CUDA_SUCCESS, Launch(add_, {1, 1, 1}, {1, 1, 1}, 49152));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Launch(add_, {1, 1, 1}, {1, 1, 1}, 49153));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetAttribute(add_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49153));
  EXPECT_EQ(CUDA_SUCCESS, Launch(add_, {1, 1, 1}, {1, 1, 1}, 49153));
}

TEST_F(ShimLaunch, ParametersInOneBufferAreMarked) {
  struct __attribute__((packed)) {
    CUdeviceptr a, b, c;
    unsigned n;
  } packed{memory_, memory_, memory_, 1};
  size_t bytes = sizeof packed, less = sizeof packed - 1;
  const auto launch = [&](std::vector<void*> extra, void** parameters = nullptr) {
    return cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra.data());
  };
  void* const pointer = reinterpret_cast<void*>(1);
  void* const size = reinterpret_cast<void*>(2);
  EXPECT_EQ(CUDA_SUCCESS, launch({size, &bytes, pointer, &packed, nullptr}));
  EXPECT_EQ(memory_, Take(VGPU_OP_LAUNCH).at(0).As<uint64_t>(sizeof(vgpu_launch)));
  EXPECT_EQ(CUDA_SUCCESS, launch({size, &less, pointer, &packed, nullptr})) << "what is missing is zero";
  EXPECT_EQ(memory_, Take(VGPU_OP_LAUNCH).at(0).As<uint64_t>(sizeof(vgpu_launch)));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({size, &bytes, nullptr}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({size, &bytes, pointer, nullptr, nullptr}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({pointer, &packed, nullptr}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({pointer, &packed, size, nullptr, nullptr}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({reinterpret_cast<void*>(3), &bytes, nullptr}));
  void* parameters[] = {&memory_, &memory_, &memory_, nullptr};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch({size, &bytes, pointer, &packed, nullptr}, parameters)) << "both forms";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  void* none[] = {nullptr};
  EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, none)) << "no parameters";
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE,
            cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(3), nullptr, nullptr));
}

// Two multiprocessors of 65536 registers: `narrow` takes 48 for each of 96 threads, 14 times.
TEST_F(ShimLaunch, CooperativeGridsAreResidentAtOnce) {
  const auto launch = [this](unsigned x, unsigned y, unsigned z) {
    return cuLaunchCooperativeKernel(narrow_, x, y, z, 96, 1, 1, 0, nullptr, nullptr);
  };
  int blocks = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, narrow_, 96, 0));
  EXPECT_EQ(10, blocks) << "1024 threads";
  EXPECT_EQ(CUDA_SUCCESS, launch(20, 1, 1));
  EXPECT_EQ(VGPU_LAUNCH_COOPERATIVE, Take(VGPU_OP_LAUNCH).at(0).As<vgpu_launch>().flags);
  EXPECT_EQ(CUDA_SUCCESS, launch(2, 5, 2));
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launch(21, 1, 1));
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launch(1, 21, 1));
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launch(1, 3, 7));
  EXPECT_EQ(CUDA_SUCCESS, cuLaunchCooperativeKernel(narrow_, 2, 1, 1, 8, 4, 3, 0, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(narrow_, 21, 1, 1, 8, 4, 3, 0, nullptr, nullptr));
}

TEST_F(ShimLaunch, LaunchAttributesAreHintsOrRefused) {
  CUlaunchConfig_st config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  const auto launch = [&](int id, std::vector<uint32_t> value) {
    CUlaunchAttribute_st attribute{};
    attribute.id = id;
    memcpy(attribute.value, value.data(), value.size() * 4);
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, narrow_, nullptr, nullptr);
  };
  for (const int hint : {0, 1, 3, 5, 6, 8, 9, 10, 14, 16}) EXPECT_EQ(CUDA_SUCCESS, launch(hint, {1})) << hint;
  for (const int refused : {13, 15, 17}) EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, launch(refused, {1})) << refused;
  EXPECT_EQ(CUDA_SUCCESS, launch(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, {1, 1, 1}));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, launch(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, {2, 1, 1}));
  Take(VGPU_OP_LAUNCH);
  EXPECT_EQ(CUDA_SUCCESS, launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {1, 1, 1}));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {2, 1, 1}));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {1, 2, 1}));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {1, 1, 2}));
  EXPECT_EQ(0u, Take(VGPU_OP_LAUNCH).at(0).As<vgpu_launch>().flags);
  EXPECT_EQ(CUDA_SUCCESS, launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1}));
  EXPECT_EQ(VGPU_LAUNCH_COOPERATIVE, Take(VGPU_OP_LAUNCH).at(0).As<vgpu_launch>().flags);
  EXPECT_EQ(CUDA_SUCCESS, launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {0}));
  EXPECT_EQ(0u, Take(VGPU_OP_LAUNCH).at(0).As<vgpu_launch>().flags);
  config.attrs = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, narrow_, nullptr, nullptr));
  config.numAttrs = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernelEx(&config, narrow_, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(nullptr, narrow_, nullptr, nullptr));
}

TEST_F(ShimLaunch, FunctionsTellWhatTheExecutorSaid) {
  const int expected[] = {96, 1000, 11, 12, 41, 75, 86, 0, 48152, -1, 0, 0, 0, 0, 0, 0};
  for (int which = 0; which < CU_FUNC_ATTRIBUTE_MAX; ++which) EXPECT_EQ(expected[which], Attribute(which)) << which;
  int value = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, narrow_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, -1, narrow_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(nullptr, 0, narrow_));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, 0, kWildFunction));
  const auto kernel = reinterpret_cast<CUkernel>(narrow_);
  EXPECT_EQ(CUDA_SUCCESS, cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
  EXPECT_EQ(41, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, 0, kernel, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuKernelSetAttribute(8, 0, kernel, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuKernelSetAttribute(8, 0, nullptr, 0));
  const char* name = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetName(&name, narrow_));
  EXPECT_STREQ("narrow", name);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetName(nullptr, narrow_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuKernelGetName(&name, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetName(&name, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, reinterpret_cast<CUfunction>(0x1234)));
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetParamInfo(add_, 1, &offset, nullptr));
  EXPECT_EQ(8u, offset);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(add_, 1, nullptr, &bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncGetParamInfo(kWildFunction, 0, &offset, &bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(narrow_, 0, &offset, &bytes)) << "it has none";
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetCacheConfig(narrow_, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncSetCacheConfig(kWildFunction, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuKernelSetCacheConfig(kernel, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuKernelSetCacheConfig(nullptr, 1, 0));
  CUfunction function = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuKernelGetFunction(&function, kernel));
  EXPECT_EQ(narrow_, function);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuKernelGetFunction(nullptr, kernel));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, nullptr));
}

TEST_F(ShimLaunch, TwoAttributesOfFunctionsCanBeSet) {
  constexpr int kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  constexpr int kCarveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  const struct {
    int attribute, value;
    CUresult result;
  } rows[] = {{kShared, 0, CUDA_SUCCESS},
              {kShared, -1, CUDA_ERROR_INVALID_VALUE},
              {kShared, 59000, CUDA_SUCCESS},  // 60000 may be opted in to, 1000 are static
              {kShared, 59001, CUDA_ERROR_INVALID_VALUE},
              {kCarveout, -1, CUDA_SUCCESS},
              {kCarveout, -2, CUDA_ERROR_INVALID_VALUE},
              {kCarveout, 0, CUDA_SUCCESS},
              {kCarveout, 101, CUDA_ERROR_INVALID_VALUE},
              {kCarveout, 100, CUDA_SUCCESS},
              {CU_FUNC_ATTRIBUTE_NUM_REGS, 1, CUDA_ERROR_INVALID_VALUE},
              {CU_FUNC_ATTRIBUTE_MAX, 1, CUDA_ERROR_INVALID_VALUE}};
  Rows sent;
  for (const auto& row : rows) {
    EXPECT_EQ(row.result, cuFuncSetAttribute(narrow_, row.attribute, row.value)) << row.attribute << " " << row.value;
    if (row.result == CUDA_SUCCESS)
      sent.push_back({static_cast<uint64_t>(row.attribute), static_cast<uint64_t>(int64_t{row.value})});
  }
  Rows told;
  for (const Sent& each : Take(VGPU_OP_FUNCTION_SET)) told.push_back({each.entry.args[1], each.entry.args[2]});
  EXPECT_EQ(sent, told);
  EXPECT_EQ(59000, Attribute(kShared));
  EXPECT_EQ(100, Attribute(kCarveout));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetAttribute(narrow_, kShared, 0));
  EXPECT_EQ(0, Attribute(kShared)) << "none is not unset";
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuFuncSetAttribute(kWildFunction, kShared, 0));
}

TEST_F(ShimLaunch, OccupancyIsTheSmallestOfWhatResourcesAllow) {
  const struct {
    CUfunction function;
    int threads;
    size_t shared;
    int blocks;
  } rows[] = {
      {add_, 1, 0, 16},   // slots
      {add_, 64, 0, 16},  // 1024 threads
      {add_, 65, 0, 10},  // whole warps: 96 threads
      {add_, 512, 0, 2},       {add_, 513, 0, 1},       {add_, 1024, 0, 1},
      {add_, 1025, 0, 0},                                                      // more than the kernel may have
      {narrow_, 96, 0, 10},    {narrow_, 97, 0, 0},     {add_, 32, 64512, 1},  // 64 KiB, 1024 of them reserved
      {add_, 32, 64513, 0},    {add_, 32, 31744, 2},    {add_, 32, 31745, 1},
      {narrow_, 32, 30744, 2}, {narrow_, 32, 30745, 1},  // and 1000 static ones
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    int blocks = -1;
    EXPECT_EQ(CUDA_SUCCESS,
              cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rows[i].function, rows[i].threads, rows[i].shared));
    EXPECT_EQ(rows[i].blocks, blocks) << "row " << i;
  }
  int blocks = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, add_, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kWildFunction, 1, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, add_, 512, 0, 1));
  EXPECT_EQ(2, blocks);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, add_, 512, 0, 2));
}

TEST_F(ShimLaunch, TheBestBlockIsTheLargestOfEquals) {
  int grid = 0, block = 0;
  const auto best = [&](CUfunction function, size_t (*shared_of)(int), size_t shared, int limit) {
    return cuOccupancyMaxPotentialBlockSize(&grid, &block, function, shared_of, shared, limit);
  };
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 0, 0));
  EXPECT_EQ(1024, block);
  EXPECT_EQ(2, grid) << "one on each multiprocessor";
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 0, 512));
  EXPECT_EQ(512, block);
  EXPECT_EQ(4, grid);
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 0, 5000));
  EXPECT_EQ(1024, block);
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 0, 20));
  EXPECT_EQ(20, block) << "less than a warp";
  EXPECT_EQ(32, grid);
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 0, 70));
  EXPECT_EQ(64, block) << "whole warps";
  EXPECT_EQ(CUDA_SUCCESS, best(narrow_, nullptr, 0, 0));
  EXPECT_EQ(64, block) << "16 of 64 threads are more than 10 of 96";
  EXPECT_EQ(32, grid);
  EXPECT_EQ(CUDA_SUCCESS, best(
                              add_, [](int threads) { return static_cast<size_t>(threads) * 64; }, 0, 0));
  EXPECT_EQ(992, block) << "1024 threads would take all 64 KiB";
  EXPECT_EQ(CUDA_SUCCESS, best(add_, nullptr, 70000, 0));
  EXPECT_EQ(0, block) << "none fits";
  EXPECT_EQ(0, grid);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, best(add_, nullptr, 0, -1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, best(kWildFunction, nullptr, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(nullptr, &block, add_, nullptr, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(&grid, nullptr, add_, nullptr, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, add_, nullptr, 0, 0, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, add_, nullptr, 0, 0, 2));
}

TEST_F(ShimLaunch, SharedMemoryIsDividedAmongBlocks) {
  const struct {
    CUfunction function;
    int blocks;
    size_t bytes;
  } rows[] = {{add_, 1, 60000}, {add_, 2, 31744}, {add_, 4, 15360}, {narrow_, 2, 30744}, {add_, 64, 0}, {add_, 100, 0}};
  for (const auto& row : rows) {
    size_t bytes = 99;
    EXPECT_EQ(CUDA_SUCCESS, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, row.function, row.blocks, 32));
    EXPECT_EQ(row.bytes, bytes) << row.blocks;
  }
  size_t bytes = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(nullptr, add_, 1, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, add_, 0, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, add_, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, kWildFunction, 1, 1));
}

TEST_F(ShimLaunch, ImagesAreUploadedInPieces) {
  const size_t piece = 256 << 10;
  std::string text(2 * piece + 5, 'x');
  CUmodule module;
  Take(VGPU_OP_MODULE_BEGIN);
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, text.c_str()));
  const auto begun = ArgsOf(VGPU_OP_MODULE_BEGIN, 2);
  ASSERT_EQ(1u, begun.size());
  const uint64_t number = begun[0][0];
  EXPECT_EQ(text.size(), begun[0][1]);
  Rows pieces;
  for (const Sent& sent : Take(VGPU_OP_MODULE_DATA))
    if (sent.entry.args[0] == number) pieces.push_back({sent.entry.args[1], sent.payload.size()});
  EXPECT_EQ((Rows{{0, piece}, {piece, piece}, {2 * piece, 5}}), pieces);
  EXPECT_EQ(number, ArgsOf(VGPU_OP_MODULE_LOAD, 1).back()[0]);
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(Rows{{number}}, ArgsOf(VGPU_OP_MODULE_UNLOAD, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
  Wire::Get().Refuse(VGPU_OP_MODULE_LOAD, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, kPtx));
  EXPECT_EQ(1u, Take(VGPU_OP_MODULE_UNLOAD).size()) << "what did not load goes";
}

TEST_F(ShimLaunch, ModulesCheckTheirArguments) {
  CUmodule module;
  CUfunction function = nullptr, again = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&again, module_, "narrow"));
  EXPECT_EQ(narrow_, again) << "one handle per name";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(nullptr, kPtx));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(nullptr, "/"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&module, nullptr));
  EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/")) << "no file";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(nullptr, module_, "narrow"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&function, module_, nullptr));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module_, ""));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, nullptr, "narrow"));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetGlobal_v2(&address, nullptr, module_, "variable"));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetGlobal_v2(nullptr, &bytes, module_, "variable"));
  EXPECT_EQ(200u, bytes);
  EXPECT_EQ(1u, Take(VGPU_OP_MODULE_GLOBAL).size()) << "asked once";
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(address + 199, 1, 1)) << "memory like any other";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(address + 199, 1, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(nullptr, nullptr, module_, "variable"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&address, &bytes, module_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&address, &bytes, module_, ""));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&address, &bytes, module_, "nothing"));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleGetGlobal_v2(&address, &bytes, nullptr, "variable"));
}

class ShimLibrary : public ShimLaunch {
 protected:
  static CUresult Load(CUlibrary* out, const void* image, int* options = nullptr, void** values = nullptr,
                       unsigned count = 0) {
    return cuLibraryLoadData(out, image, nullptr, nullptr, 0, options, values, count);
  }
};

TEST_F(ShimLibrary, LibrariesHaveKernelsAndOneModule) {
  CUlibrary library = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, Load(&library, kPtx));
  CUkernel kernel = nullptr, again = nullptr;
  CUmodule module = nullptr, same = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&kernel, library, "narrow"));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&again, library, "narrow"));
  EXPECT_EQ(kernel, again);
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetModule(&module, library));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetModule(&same, library));
  EXPECT_EQ(module, same);
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "narrow"));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetGlobal(&address, &bytes, library, "variable"));
  EXPECT_EQ(200u, bytes);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(nullptr, library, "narrow"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&kernel, library, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&again, nullptr, "narrow"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetModule(nullptr, library));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetModule(&same, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetGlobal(&address, &bytes, nullptr, "variable"));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetModule(&same, library)) << "made anew";
  EXPECT_NE(module, same);
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(same)) << "its module went with it";
  const char* name;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
}

TEST_F(ShimLibrary, AnImageIsCopiedUnlessTheProgramKeepsIt) {
  int options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  void* yes[] = {reinterpret_cast<void*>(1)};
  void* no[] = {nullptr};
  const struct {
    int* options;
    void** values;
    unsigned count;
    char uploaded_again;
  } rows[] = {{nullptr, nullptr, 0, 'x'},
              {options, yes, 1, 'y'},
              {options, no, 1, 'x'},
              {options, nullptr, 1, 'x'},
              {options, yes, 0, 'x'}};
  for (const auto& row : rows) {
    std::string text(100, 'x');
    CUlibrary library = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, Load(&library, text.c_str(), row.options, row.values, row.count));
    text[0] = 'y';
    ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));  // forgets what was uploaded
    ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
    Take(VGPU_OP_MODULE_DATA);
    CUkernel kernel = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&kernel, library, "narrow"));
    const auto sent = Take(VGPU_OP_MODULE_DATA);
    ASSERT_EQ(1u, sent.size());
    EXPECT_EQ(row.uploaded_again, sent[0].As<char>());
    EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  }
  CUlibrary library;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Load(&library, kPtx, nullptr, nullptr, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Load(nullptr, kPtx));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Load(&library, nullptr));
}

TEST_F(ShimLibrary, FilesAreImages) {
  char path[] = "/tmp/shim_image_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_LE(0, fd);
  ASSERT_EQ(ssize_t{sizeof kPtx - 1}, write(fd, kPtx, sizeof kPtx - 1));
  close(fd);
  Take(VGPU_OP_MODULE_BEGIN);
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuModuleLoad(&module, path));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  for (const auto& begun : ArgsOf(VGPU_OP_MODULE_BEGIN, 2)) EXPECT_EQ(sizeof kPtx - 1, begun[1]);
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadFromFile(nullptr, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuLibraryLoadFromFile(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unlink(path);
  EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace
