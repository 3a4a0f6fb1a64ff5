// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API for the programs of gpu-check: a libcuda that is loaded when they run, GPU_CHECK_LIBRARY or
// libcuda.so.1. The first call that fails ends the program with a line "ERROR call=... name=... code=..." and status 3.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpucheck {

using Result = int;
using Device = int;
using Address = unsigned long long;
using Handle = void*;

struct LaunchAttribute {  // CUlaunchAttribute
  uint32_t id, pad;
  union {
    uint32_t cluster[3];
    unsigned char bytes[64];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3], dynamic_shared;
  Handle stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// Values of cuda.h.
inline constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kMostSharedOptin = 97;
inline constexpr int kStreamNonBlocking = 1, kEventBlockingSync = 1, kEventNoTiming = 2, kMapped = 1 | 2;
inline constexpr int kFunctionMaxDynamicShared = 8;
inline constexpr uint32_t kAttributeCluster = 4;
inline constexpr Result kNotReady = 600;

// X(name, symbol, parameters)
#define GPU_CHECK_CALLS(X)                                                                                  \
  X(Init, "cuInit", (unsigned))                                                                             \
  X(DriverGetVersion, "cuDriverGetVersion", (int*))                                                         \
  X(DeviceGet, "cuDeviceGet", (Device*, int))                                                               \
  X(DeviceGetName, "cuDeviceGetName", (char*, int, Device))                                                 \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, Device))                                        \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t*, Device))                                               \
  X(PrimaryRetain, "cuDevicePrimaryCtxRetain", (Handle*, Device))                                           \
  X(SetCurrent, "cuCtxSetCurrent", (Handle))                                                                \
  X(Synchronize, "cuCtxSynchronize", ())                                                                    \
  X(ModuleLoadData, "cuModuleLoadData", (Handle*, const void*))                                             \
  X(ModuleGetFunction, "cuModuleGetFunction", (Handle*, Handle, const char*))                               \
  X(FuncSetAttribute, "cuFuncSetAttribute", (Handle, int, int))                                             \
  X(MemAlloc, "cuMemAlloc_v2", (Address*, size_t))                                                          \
  X(MemFree, "cuMemFree_v2", (Address))                                                                     \
  X(MemHostAlloc, "cuMemHostAlloc", (void**, size_t, unsigned))                                             \
  X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (Address*, void*, unsigned))                   \
  X(CopyIn, "cuMemcpyHtoD_v2", (Address, const void*, size_t))                                              \
  X(CopyOut, "cuMemcpyDtoH_v2", (void*, Address, size_t))                                                   \
  X(CopyInAsync, "cuMemcpyHtoDAsync_v2", (Address, const void*, size_t, Handle))                            \
  X(CopyOutAsync, "cuMemcpyDtoHAsync_v2", (void*, Address, size_t, Handle))                                 \
  X(CopyWithinAsync, "cuMemcpyDtoDAsync_v2", (Address, Address, size_t, Handle))                            \
  X(Fill, "cuMemsetD8_v2", (Address, unsigned char, size_t))                                                \
  X(StreamCreate, "cuStreamCreate", (Handle*, unsigned))                                                    \
  X(StreamSynchronize, "cuStreamSynchronize", (Handle))                                                     \
  X(StreamQuery, "cuStreamQuery", (Handle))                                                                 \
  X(EventCreate, "cuEventCreate", (Handle*, unsigned))                                                      \
  X(EventRecord, "cuEventRecord", (Handle, Handle))                                                         \
  X(EventSynchronize, "cuEventSynchronize", (Handle))                                                       \
  X(LaunchKernel, "cuLaunchKernel",                                                                         \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**)) \
  X(LaunchKernelEx, "cuLaunchKernelEx", (const LaunchConfig*, Handle, void**, void**))                      \
  X(BeginCapture, "cuStreamBeginCapture_v2", (Handle, int))                                                 \
  X(EndCapture, "cuStreamEndCapture", (Handle, Handle*))                                                    \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags", (Handle*, Handle, unsigned long long))                 \
  X(GraphLaunch, "cuGraphLaunch", (Handle, Handle))                                                         \
  X(GetErrorName, "cuGetErrorName", (Result, const char**))

struct Api {
#define GPU_CHECK_MEMBER(name, symbol, parameters) Result(*name) parameters = nullptr;
  GPU_CHECK_CALLS(GPU_CHECK_MEMBER)
#undef GPU_CHECK_MEMBER
};

// The loaded library; the first call loads it.
const Api& Cuda();
// Ends the program unless `result` is 0.
void Check(Result result, const char* call);
#define CUDA(call) ::gpucheck::Check(::gpucheck::Cuda().call, #call)

// Device 0, its context current to this thread.
struct Gpu {
  Device device = 0;
  char name[128] = "";
  int capability = 0;
  int multiprocessors = 0;
  int most_shared = 0;
  size_t memory = 0;
};
Gpu OpenGpu();
Handle LoadKernel(const char* ptx, const char* name);
double Seconds();  // of a clock that only goes on

}  // namespace gpucheck
