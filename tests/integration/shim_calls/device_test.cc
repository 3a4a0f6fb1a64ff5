// SPDX-License-Identifier: Apache-2.0
// Devices, contexts and limits of libcuda.so.1, call by call (shim_api_test.cc has the fake VF).
#include <cstdint>
#include <string>
#include <thread>

#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr CUdevice kNone = 1;  // the fake is the only device

TEST_F(ShimApi, DevicePropertiesAreAttributes) {
  CUdevprop_st p{};
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetProperties(&p, 0));
  const int told[] = {p.maxThreadsPerBlock,  p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2],
                      p.maxGridSize[0],      p.maxGridSize[1],   p.maxGridSize[2],   p.sharedMemPerBlock,
                      p.totalConstantMemory, p.SIMDWidth,        p.memPitch,         p.regsPerBlock,
                      p.clockRate,           p.textureAlign};
  const int expected[] = {1024, 1024, 1023, 64, 2147483647, 65535, 65534, 49152, 65536, 32, 777, 65500, 1500, 512};
  for (size_t i = 0; i < std::size(told); ++i) EXPECT_EQ(expected[i], told[i]) << i;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetProperties(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetProperties(&p, kNone));
}

TEST_F(ShimApi, AttributesEndAtTheLastOneOfCuda13) {
  const struct {
    int attribute;
    CUresult result;
    int value;
  } rows[] = {{-1, CUDA_ERROR_INVALID_VALUE, 0},
              {0, CUDA_ERROR_INVALID_VALUE, 0},
              {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CUDA_SUCCESS, 1024},
              {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CUDA_SUCCESS, 0},
              {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, CUDA_SUCCESS, 5},
              {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, CUDA_SUCCESS, 1},
              {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, CUDA_SUCCESS, 1},
              {CU_DEVICE_ATTRIBUTE_MAX - 1, CUDA_SUCCESS, 7},
              {CU_DEVICE_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE, 0}};
  for (const auto& row : rows) {
    int value = 0;
    EXPECT_EQ(row.result, cuDeviceGetAttribute(&value, row.attribute, 0)) << row.attribute;
    EXPECT_EQ(row.value, value) << row.attribute;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(nullptr, 1, 0));
}

TEST_F(ShimApi, DeviceTextsAreCutToTheBuffer) {
  char text[32];
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetName(text, 5, 0));
  EXPECT_STREQ("fake", text);
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetName(text, 1, 0));
  EXPECT_STREQ("", text);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(text, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(nullptr, 5, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetPCIBusId(text, 13, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(text, 12, 0)) << "no room for the end of the text";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(text, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(nullptr, 13, 0));
}

TEST_F(ShimApi, DevicesAreFoundByPciAddress) {
  const struct {
    const char* text;
    CUresult result;
  } rows[] = {{"0000:03:05.0", CUDA_SUCCESS},
              {"0:3:5", CUDA_SUCCESS},
              {"03:05.0", CUDA_SUCCESS},
              {"0001:03:05.0", CUDA_ERROR_INVALID_DEVICE},
              {"0000:04:05.0", CUDA_ERROR_INVALID_DEVICE},
              {"0000:03:06.0", CUDA_ERROR_INVALID_DEVICE},
              {"03", CUDA_ERROR_INVALID_VALUE},
              {"", CUDA_ERROR_INVALID_VALUE}};
  for (const auto& row : rows) {
    CUdevice device = -1;
    EXPECT_EQ(row.result, cuDeviceGetByPCIBusId(&device, row.text)) << row.text;
    EXPECT_EQ(row.result == CUDA_SUCCESS ? 0 : -1, device) << row.text;
  }
  CUdevice device;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(nullptr, "03:05"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&device, nullptr));
}

TEST_F(ShimApi, DeviceQueriesCheckTheirArguments) {
  int value = -1, minor = -1;
  unsigned bytes = 0;
  size_t wide = 0;
  CUdevice device = -1;
  CUuuid_st uuid;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGet(&device, 0));
  EXPECT_EQ(0, device);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, kNone));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(1u << 30, bytes);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem_v2(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem_v2(&wide, kNone));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid_v2(nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetUuid_v2(&uuid, 0));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(0xa0 + i, static_cast<unsigned char>(uuid.bytes[i]));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceComputeCapability(&value, &minor, 0));
  EXPECT_EQ(7, value);
  EXPECT_EQ(5, minor);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(nullptr, &minor, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(&value, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceCanAccessPeer(&value, 0, 0));
  EXPECT_EQ(0, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceCanAccessPeer(nullptr, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, 0, kNone));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, kNone, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, 1, 0, 0)) << "a device is not its own peer";
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, 9999, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, 1, 0, kNone));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(nullptr, 1, 0, kNone));
  value = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetExecAffinitySupport(&value, 0, 0));
  EXPECT_EQ(0, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetExecAffinitySupport(nullptr, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleGetLoadingMode(&value));
  EXPECT_EQ(CU_MODULE_LAZY_LOADING, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(nullptr));
  EXPECT_EQ(CUDA_ERROR_PROFILER_DISABLED, cuProfilerInitialize(nullptr, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuProfilerStart());
  EXPECT_EQ(CUDA_SUCCESS, cuProfilerStop());
}

TEST_F(ShimApi, ContextFlagsAreOneByte) {
  unsigned flags = 99;
  int active = 99;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, 256));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxSetFlags_v2(kNone, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN | CU_CTX_SYNC_MEMOPS));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(129u, flags);
  EXPECT_EQ(1, active);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetFlags(&flags));
  EXPECT_EQ(129u, flags);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetFlags(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxGetState(0, nullptr, &active));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxGetState(0, &flags, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxSetFlags_v2(0, 0));
  CUcontext made = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&made, 256, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(nullptr, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&made, 0, kNone));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, CU_CTX_MAP_HOST, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetFlags(&flags));
  EXPECT_EQ(unsigned{CU_CTX_MAP_HOST}, flags) << "its own, not the primary context's";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
}

TEST_F(ShimApi, ContextsOfNewerCallsArePlainOnes) {
  CUcontext made = nullptr;
  CUctxCreateParams_st parameters{};
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&made, nullptr, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&made, &parameters, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  parameters.numExecAffinityParams = 1;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuCtxCreate_v4(&made, &parameters, 0, 0));
  parameters.numExecAffinityParams = 0;
  parameters.cigParams = reinterpret_cast<CUctxCigParam_st*>(&made);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuCtxCreate_v4(&made, &parameters, 0, 0));
}

TEST_F(ShimApi, ContextsSayWhichTheyAre) {
  unsigned long long primary = 0, first = 0, second = 0;
  unsigned version = 0;
  CUdevice device = -1;
  int config = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetId(nullptr, &primary));
  EXPECT_EQ(1u, primary);
  CUcontext a = nullptr, b = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&a, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&b, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetId(a, &first));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetId(b, &second));
  EXPECT_EQ(first + 1, second);
  EXPECT_LT(primary, first);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetApiVersion(a, &version));
  EXPECT_EQ(13000u, version);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetDevice_v2(&device, a));
  EXPECT_EQ(0, device);
  // One that is not on top of the stack goes without a change of the stack.
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize_v2(a));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(a));
  CUcontext current = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(b, current);
  for (const CUresult result : {cuCtxGetId(a, &first), cuCtxGetApiVersion(a, &version), cuCtxGetDevice_v2(&device, a),
                                cuCtxSynchronize_v2(a), cuCtxDestroy_v2(a), cuCtxPushCurrent_v2(a)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, result);
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetId(b, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetApiVersion(b, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice_v2(nullptr, b));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(context_)) << "the primary context";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(b));
  EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetDevice(&device)) << "what was below it went before it";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(a, current);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(context_, current);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCacheConfig(&config));
  EXPECT_EQ(CU_FUNC_CACHE_PREFER_NONE, config);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetCacheConfig(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig(-1));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCacheConfig(0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCacheConfig(3));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig(4));
}

TEST_F(ShimApi, TheStackOfContextsMayHoldOneTwice) {
  CUcontext current = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxPushCurrent_v2(context_));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr)) << "takes the upper one away";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(context_, current);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_)) << "takes its own place";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxPopCurrent_v2(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
}

TEST_F(ShimApi, ThePrimaryContextGoesWithItsLastUser) {
  CUcontext again = nullptr;
  int active = -1;
  unsigned flags;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&again, kNone));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(context_, again);
  const CUdeviceptr memory = Alloc(16);
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(memory, 1, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(0, active);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRelease_v2(kNone));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxReset_v2(kNone));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(memory));
}

TEST_F(ShimWire, AResetSparesOtherContexts) {
  const CUdeviceptr of_primary = Alloc(16);
  CUcontext other = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&other, 0, 0));
  const CUdeviceptr of_other = Alloc(16);
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  EXPECT_EQ(Rows{{of_primary}}, ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(0u, Take(VGPU_OP_CONTEXT_RESET).size());
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(of_other, 1, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(other));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
  EXPECT_EQ(Rows{{of_other}}, ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
  EXPECT_EQ(1u, Take(VGPU_OP_CONTEXT_RESET).size()) << "alone again";
}

// As with NVIDIA's driver.
TEST_F(ShimWire, AfterAResetTheContextIsDestroyedUntilItIsRetained) {
  unsigned flags = 0;
  int active = 1;
  CUdeviceptr memory = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
  EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
  EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&memory, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(0, active);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
  CUcontext again = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(context_, again);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(ShimWire, LimitsHaveTheDefaultsOfCuda) {
  const struct {
    int limit;
    CUresult get, set;
    size_t value;
  } rows[] = {{-1, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 0},
              {CU_LIMIT_STACK_SIZE, CUDA_SUCCESS, CUDA_SUCCESS, 1024},
              {CU_LIMIT_PRINTF_FIFO_SIZE, CUDA_SUCCESS, CUDA_SUCCESS, 1048576},
              {CU_LIMIT_MALLOC_HEAP_SIZE, CUDA_SUCCESS, CUDA_SUCCESS, 8388608},
              {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, CUDA_SUCCESS, CUDA_SUCCESS, 2},
              {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, CUDA_SUCCESS, CUDA_SUCCESS, 2048},
              {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, CUDA_SUCCESS, CUDA_SUCCESS, 64},
              {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, CUDA_SUCCESS, CUDA_SUCCESS, 0},
              {CU_LIMIT_SHMEM_SIZE, CUDA_SUCCESS, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
              {CU_LIMIT_CIG_ENABLED, CUDA_SUCCESS, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
              {CU_LIMIT_MAX - 1, CUDA_SUCCESS, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
              {CU_LIMIT_MAX, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 0}};
  for (const auto& row : rows) {
    size_t value = 0;
    EXPECT_EQ(row.get, cuCtxGetLimit(&value, row.limit)) << row.limit;
    EXPECT_EQ(row.value, value) << row.limit;
    EXPECT_EQ(row.set, cuCtxSetLimit(row.limit, row.value)) << row.limit;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(nullptr, 0));
  EXPECT_EQ((Rows{{VGPU_LIMIT_PRINTF_FIFO, 1048576}, {VGPU_LIMIT_MALLOC_HEAP, 8388608}}), ArgsOf(VGPU_OP_LIMIT_SET, 2));
  Wire::Get().Refuse(VGPU_OP_LIMIT_SET, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1));
  size_t value = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(8388608u, value) << "what the executor refused is not kept";
}

TEST_F(ShimApi, CallsWithoutAContextAreRefused) {
  std::thread([this] {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    int value = 0;
    unsigned flags = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    const CUresult results[] = {cuMemAlloc_v2(&address, 16),
                                cuMemFree_v2(16),
                                cuMemGetInfo_v2(&bytes, &bytes),
                                cuMemGetAddressRange_v2(&address, &bytes, 16),
                                cuMemsetD8_v2(16, 1, 1),
                                cuMemcpyHtoD_v2(16, &value, 4),
                                cuMemcpyDtoH_v2(&value, 16, 4),
                                cuMemcpyDtoD_v2(16, 32, 4),
                                cuMemcpy(16, 32, 4),
                                cuMemcpy2D_v2(nullptr),
                                cuMemcpy3D_v2(nullptr),
                                cuMemAllocAsync(&address, 16, nullptr),
                                cuMemFreeAsync(16, nullptr),
                                cuMemAllocManaged(&address, 16, CU_MEM_ATTACH_GLOBAL),
                                cuStreamCreate(&stream, 0),
                                cuStreamSynchronize(nullptr),
                                cuStreamQuery(nullptr),
                                cuStreamGetPriority(nullptr, &value),
                                cuEventCreate(&event, 0),
                                cuCtxSynchronize(),
                                cuCtxGetFlags(&flags),
                                cuCtxGetLimit(&bytes, 0),
                                cuCtxSetLimit(0, 1024),
                                cuCtxGetCacheConfig(&value),
                                cuCtxGetStreamPriorityRange(&value, &value),
                                cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)};
    for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, results[i]) << i;
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize_v2(context_)) << "a named one need not be current";
  }).join();
}

}  // namespace
