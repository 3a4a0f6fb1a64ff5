// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver API that the launcher uses, declared by hand: a machine without a CUDA toolkit has no
// cuda.h. Values and signatures as NVIDIA documents them ("CUDA Driver API"); libcuda.so.1 is loaded when the program
// starts. Every call goes through Check(): the first failure ends the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace driver {

using Result = int;
using Device = int;
using Address = unsigned long long;
struct ContextHandle;
struct ModuleHandle;
struct FunctionHandle;
struct StreamHandle;
struct EventHandle;
using Context = ContextHandle*;
using Module = ModuleHandle*;
using Function = FunctionHandle*;
using Stream = StreamHandle*;
using Event = EventHandle*;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;

// X(member, exported symbol, parameters)
#define DRIVER_API(X)                                                                                         \
  X(Init, "cuInit", (unsigned))                                                                               \
  X(DeviceGet, "cuDeviceGet", (Device*, int))                                                                 \
  X(PrimaryContextRetain, "cuDevicePrimaryCtxRetain", (Context*, Device))                                     \
  X(PrimaryContextRelease, "cuDevicePrimaryCtxRelease_v2", (Device))                                          \
  X(SetCurrent, "cuCtxSetCurrent", (Context))                                                                 \
  X(Synchronize, "cuCtxSynchronize", ())                                                                      \
  X(ModuleLoadData, "cuModuleLoadData", (Module*, const void*))                                               \
  X(ModuleUnload, "cuModuleUnload", (Module))                                                                 \
  X(ModuleGetFunction, "cuModuleGetFunction", (Function*, Module, const char*))                               \
  X(MemAlloc, "cuMemAlloc_v2", (Address*, size_t))                                                            \
  X(MemFree, "cuMemFree_v2", (Address))                                                                       \
  X(CopyHostToDevice, "cuMemcpyHtoD_v2", (Address, const void*, size_t))                                      \
  X(CopyDeviceToHost, "cuMemcpyDtoH_v2", (void*, Address, size_t))                                            \
  X(CopyDeviceToHostAsync, "cuMemcpyDtoHAsync_v2", (void*, Address, size_t, Stream))                          \
  X(MemsetD8, "cuMemsetD8_v2", (Address, unsigned char, size_t))                                              \
  X(StreamCreate, "cuStreamCreate", (Stream*, unsigned))                                                      \
  X(StreamSynchronize, "cuStreamSynchronize", (Stream))                                                       \
  X(StreamDestroy, "cuStreamDestroy_v2", (Stream))                                                            \
  X(EventCreate, "cuEventCreate", (Event*, unsigned))                                                         \
  X(EventRecord, "cuEventRecord", (Event, Stream))                                                            \
  X(EventSynchronize, "cuEventSynchronize", (Event))                                                          \
  X(EventDestroy, "cuEventDestroy_v2", (Event))                                                               \
  X(LaunchKernel, "cuLaunchKernel",                                                                           \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**)) \
  X(GetErrorName, "cuGetErrorName", (Result, const char**))                                                   \
  X(GetErrorString, "cuGetErrorString", (Result, const char**))

struct Api {
#define DRIVER_API_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  DRIVER_API(DRIVER_API_MEMBER)
#undef DRIVER_API_MEMBER
};

// The loaded library. The first call loads it and ends the program with a message when that fails.
const Api& Cuda();
// Ends the program with the error's name and text unless `result` is 0.
void Check(Result result, const char* call);

#define DRIVER_CHECK(call) ::driver::Check(::driver::Cuda().call, #call)

}  // namespace driver
