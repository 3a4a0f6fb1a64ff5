// SPDX-License-Identifier: Apache-2.0
// The one table of CUDA driver calls of our programs: the backend, the programs of gpu-check and vgpu-launch. They load
// a libcuda at run time and are never linked with one, so that they are built where no driver is. Types and numbers are
// those of cuda.h, which need not be installed. Needs nothing but the C++ library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/generated/cuda_enums.h"

namespace vgpud::driver {

using Status = uint32_t;  // CUresult
using Device = int32_t;
using DevicePtr = uint64_t;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using TextureObject = uint64_t;  // and surfaces
using Array = struct ArrayTag*;
using MipmappedArray = struct MipmappedArrayTag*;
using LinkState = struct LinkStateTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

inline constexpr Status kOk = cuda_enum::CUDA_SUCCESS;
inline constexpr Status kNotReady = cuda_enum::CUDA_ERROR_NOT_READY;

// CUfunction_attribute.
enum class FunctionAttribute : int32_t {
  kMaxThreads = 0,
  kSharedBytes = 1,
  kConstBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kMaxDynamicShared = 8,
  kClusterMustBeSet = 10,
  kClusterWidth = 11,
  kClusterHeight = 12,
  kClusterDepth = 13,
  kNonPortableClusters = 14,
};
// CUjit_option.
enum class JitOption : int32_t { kMaxRegisters = 0, kErrorLog = 5, kErrorLogBytes = 6 };
// CUlimit.
enum class ContextLimit : int32_t { kHeapBytes = 2 };
// CUjitInputType.
enum class LinkInput : int32_t { kPtx = 1, kFatbin = 2 };
// CUstream_flags, CUevent_flags, CUctx_flags.
inline constexpr uint32_t kStreamNonBlocking = 1;
inline constexpr uint32_t kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr uint32_t kContextBlockingSync = 4;
// CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP.
inline constexpr uint32_t kHostAllocMapped = 1 | 2;
// CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP.
inline constexpr uint32_t kHostRegisterMapped = 1 | 2;
// For LaunchKernelEx: the pairs of `extra`.
inline constexpr uintptr_t kParamEnd = 0, kParamBuffer = 1, kParamBufferBytes = 2;

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  enum class Id : uint32_t { kCooperative = 2, kCluster = 4 };
  Id id;
  uint32_t pad = 0;
  union {
    int32_t cooperative;
    uint32_t cluster[3];
    unsigned char bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, bytes) == 8);
struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared;
  Stream stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};
static_assert(offsetof(LaunchConfig, stream) == 32 && sizeof(LaunchConfig) == 56);

// CUDA_ARRAY3D_DESCRIPTOR. One-dimensional arrays have height 0, flat ones depth 0; layers and faces count as depth.
struct ArrayShape {
  size_t width, height, depth;
  uint32_t format;
  uint32_t channels;
  uint32_t flags;
};
static_assert(sizeof(ArrayShape) == 40);
inline constexpr uint32_t kArrayLayered = 1, kArraySurface = 2, kArrayCube = 4;

// CUDA_MEMCPY3D. What a side of that kind does not have is ignored.
struct CopySide {
  enum class Kind : int32_t { kDevice = 2, kArray = 3 };
  size_t x_bytes, y, z;
  size_t level;
  Kind kind;
  const void* host;
  DevicePtr device;
  Array array;
  void* zero;
  size_t pitch;
  size_t rows;  // of a slice
};
struct Copy3d {
  CopySide from, to;
  size_t width_bytes, height, depth;
};
static_assert(sizeof(CopySide) == 88 && sizeof(Copy3d) == 200);

// CUDA_RESOURCE_DESC, and CUDA_TEXTURE_DESC. Of arrays there is the handle only.
struct TextureResource {
  enum class Kind : int32_t { kArray = 0, kMipmapped = 1, kLinear = 2, kPitch2d = 3 };
  Kind kind;
  union {
    DevicePtr address;
    Array array;
    MipmappedArray mipmapped;
  };
  uint32_t format;
  uint32_t channels;
  uint64_t width_or_bytes;
  uint64_t height;
  uint64_t pitch;
  unsigned char rest[88];
  uint32_t flags;
};
static_assert(sizeof(TextureResource) == 144 && offsetof(TextureResource, address) == 8 &&
              offsetof(TextureResource, flags) == 136);
struct TextureParams {
  int32_t address_mode[3];
  int32_t filter;
  uint32_t flags;
  uint32_t max_anisotropy;
  int32_t mipmap_filter;
  float mipmap_bias, mipmap_min, mipmap_max;
  float border[4];
  int32_t rest[12];
};
static_assert(sizeof(TextureParams) == 104);

using MemoryHandle = uint64_t;
// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc.
struct MemoryLocation {
  static constexpr int32_t kDevice = 1;
  int32_t type = kDevice;
  Device device = 0;
};
struct MemoryProperties {
  static constexpr int32_t kPinned = 1;
  int32_t type = kPinned;
  int32_t handle_types = 0;
  MemoryLocation location;
  void* security = nullptr;
  unsigned char flags[8] = {};
};
static_assert(sizeof(MemoryProperties) == 32 && offsetof(MemoryProperties, location) == 8);
struct MemoryAccess {
  static constexpr int32_t kReadWrite = 3;
  MemoryLocation location;
  int32_t flags = kReadWrite;
};
static_assert(sizeof(MemoryAccess) == 12);

// CUuuid.
struct DeviceUuid {
  unsigned char bytes[16];
};

// The programs that make driver calls. Each loads only the calls of its own rows.
enum Caller : unsigned { kBackend = 1, kGpuCheck = 2, kLauncher = 4 };

// X(NAME, version, suffix, callers, parameters): the call cuNAME as cuda.h declares it. `version` says which form of
// it, by the toolkit that brought it (cudaTypedefs.h), as cuGetProcAddress wants it. cuNAMEsuffix is how a libcuda
// exports that form.
// clang-format takes "Device* device" as an argument of a macro for a product.
// clang-format off
#define VGPUD_DRIVER_CALLS(X)                                                                                         \
  X(Init, 2000, "", kBackend | kGpuCheck | kLauncher, (uint32_t flags))                                               \
  X(DriverGetVersion, 2020, "", kBackend | kGpuCheck, (int* version))                                                 \
  X(DeviceGetCount, 2000, "", kBackend, (int* count))                                                                 \
  X(DeviceGet, 2000, "", kBackend | kGpuCheck | kLauncher, (Device* device, int ordinal))                             \
  X(DeviceGetByPCIBusId, 4010, "", kBackend, (Device* device, const char* address))                                   \
  X(DeviceGetPCIBusId, 4010, "", kBackend, (char* address, int bytes, Device device))                                 \
  X(DeviceGetName, 2000, "", kBackend | kGpuCheck, (char* name, int bytes, Device device))                            \
  X(DeviceGetUuid, 11040, "_v2", kBackend, (DeviceUuid* uuid, Device device))                                         \
  X(DeviceGetAttribute, 2000, "", kBackend | kGpuCheck, (int* value, int attribute, Device device))                   \
  X(DeviceTotalMem, 3020, "_v2", kBackend | kGpuCheck, (size_t* bytes, Device device))                                \
  X(DevicePrimaryCtxRetain, 7000, "", kBackend | kGpuCheck | kLauncher, (Context* context, Device device))            \
  X(DevicePrimaryCtxReset, 11000, "_v2", kBackend, (Device device))                                                   \
  X(DevicePrimaryCtxSetFlags, 11000, "_v2", kBackend, (Device device, uint32_t flags))                                \
  X(CtxSetCurrent, 4000, "", kBackend | kGpuCheck | kLauncher, (Context context))                                     \
  X(CtxSynchronize, 2000, "", kBackend | kGpuCheck | kLauncher, ())                                                   \
  X(CtxCreate, 3020, "_v2", kBackend, (Context* context, uint32_t flags, Device device))                              \
  X(CtxDestroy, 4000, "_v2", kBackend, (Context context))                                                             \
  X(CtxSetLimit, 3010, "", kBackend, (ContextLimit limit, size_t value))                                              \
  X(CtxGetLimit, 3010, "", kBackend, (size_t* value, ContextLimit limit))                                             \
  X(MemGetInfo, 3020, "_v2", kBackend, (size_t* free, size_t* total))                                                 \
  X(MemAlloc, 3020, "_v2", kBackend | kGpuCheck | kLauncher, (DevicePtr* address, size_t bytes))                      \
  X(MemFree, 3020, "_v2", kBackend | kGpuCheck | kLauncher, (DevicePtr address))                                      \
  X(MemHostAlloc, 2020, "", kBackend | kGpuCheck, (void** memory, size_t bytes, uint32_t flags))                      \
  X(MemHostGetDevicePointer, 3020, "_v2", kBackend | kGpuCheck, (DevicePtr* address, void* memory, uint32_t flags))   \
  X(MemFreeHost, 2000, "", kBackend, (void* memory))                                                                  \
  X(MemHostRegister, 6050, "_v2", kBackend, (void* memory, size_t bytes, uint32_t flags))                             \
  X(MemHostUnregister, 4000, "", kBackend, (void* memory))                                                            \
  X(MemAddressReserve, 10020, "", kBackend,                                                                           \
    (DevicePtr* address, size_t bytes, size_t alignment, DevicePtr wish, unsigned long long))                         \
  X(MemAddressFree, 10020, "", kBackend, (DevicePtr address, size_t bytes))                                           \
  X(MemCreate, 10020, "", kBackend,                                                                                   \
    (MemoryHandle* memory, size_t bytes, const MemoryProperties* told, unsigned long long flags))                     \
  X(MemRelease, 10020, "", kBackend, (MemoryHandle memory))                                                           \
  X(MemMap, 10020, "", kBackend,                                                                                      \
    (DevicePtr address, size_t bytes, size_t offset, MemoryHandle memory, unsigned long long flags))                  \
  X(MemUnmap, 10020, "", kBackend, (DevicePtr address, size_t bytes))                                                 \
  X(MemSetAccess, 10020, "", kBackend, (DevicePtr address, size_t bytes, const MemoryAccess* access, size_t count))   \
  X(MemGetAllocationGranularity, 10020, "", kBackend, (size_t* bytes, const MemoryProperties* told, int32_t option))  \
  X(MemcpyHtoDAsync, 3020, "_v2", kBackend | kGpuCheck,                                                               \
    (DevicePtr to, const void* from, size_t bytes, Stream stream))                                                    \
  X(MemcpyDtoHAsync, 3020, "_v2", kBackend | kGpuCheck | kLauncher,                                                   \
    (void* to, DevicePtr from, size_t bytes, Stream stream))                                                          \
  X(MemcpyDtoDAsync, 3020, "_v2", kBackend | kGpuCheck, (DevicePtr to, DevicePtr from, size_t bytes, Stream stream))  \
  X(MemsetD8Async, 3020, "", kBackend, (DevicePtr to, uint8_t value, size_t count, Stream stream))                    \
  X(MemsetD16Async, 3020, "", kBackend, (DevicePtr to, uint16_t value, size_t count, Stream stream))                  \
  X(MemsetD32Async, 3020, "", kBackend, (DevicePtr to, uint32_t value, size_t count, Stream stream))                  \
  X(StreamCreate, 2000, "", kBackend | kGpuCheck | kLauncher, (Stream* stream, uint32_t flags))                       \
  X(StreamDestroy, 4000, "_v2", kBackend | kLauncher, (Stream stream))                                                \
  X(StreamSynchronize, 2000, "", kBackend | kGpuCheck | kLauncher, (Stream stream))                                   \
  X(EventCreate, 2000, "", kBackend | kGpuCheck | kLauncher, (Event* event, uint32_t flags))                          \
  X(EventDestroy, 4000, "_v2", kBackend | kLauncher, (Event event))                                                   \
  X(EventRecord, 2000, "", kBackend | kGpuCheck | kLauncher, (Event event, Stream stream))                            \
  X(EventQuery, 2000, "", kBackend, (Event event))                                                                    \
  X(EventSynchronize, 2000, "", kBackend | kGpuCheck | kLauncher, (Event event))                                      \
  X(ModuleLoadDataEx, 2010, "", kBackend,                                                                             \
    (Module* module, const void* image, uint32_t options, JitOption* names, void** values))                           \
  X(ModuleUnload, 2000, "", kBackend | kLauncher, (Module module))                                                    \
  X(ModuleGetFunction, 2000, "", kBackend | kGpuCheck | kLauncher,                                                    \
    (Function* function, Module module, const char* name))                                                            \
  X(ModuleGetFunctionCount, 12040, "", kBackend, (uint32_t* count, Module module))                                    \
  X(ModuleEnumerateFunctions, 12040, "", kBackend, (Function* functions, uint32_t room, Module module))               \
  X(ModuleGetGlobal, 3020, "_v2", kBackend, (DevicePtr* address, size_t* bytes, Module module, const char* name))     \
  X(LinkCreate, 6050, "_v2", kBackend, (uint32_t options, JitOption* names, void** values, LinkState* state))         \
  X(LinkAddData, 6050, "_v2", kBackend,                                                                               \
    (LinkState state, LinkInput type, void* data, size_t bytes, const char* name, uint32_t options, JitOption*        \
     names, void** values))                                                                                           \
  X(LinkComplete, 5050, "", kBackend, (LinkState state, void** code, size_t* bytes))                                  \
  X(LinkDestroy, 5050, "", kBackend, (LinkState state))                                                               \
  X(FuncGetName, 12030, "", kBackend, (const char** name, Function function))                                         \
  X(FuncGetParamInfo, 12040, "", kBackend, (Function function, size_t index, size_t* offset, size_t* bytes))          \
  X(FuncGetAttribute, 2020, "", kBackend, (int* value, FunctionAttribute attribute, Function function))               \
  X(FuncSetAttribute, 9000, "", kBackend | kGpuCheck, (Function function, FunctionAttribute attribute, int value))    \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, 6050, "", kBackend,                                                    \
    (int* blocks, Function function, int threads, size_t dynamic_shared))                                             \
  X(LaunchKernelEx, 11060, "", kBackend | kGpuCheck,                                                                  \
    (const LaunchConfig* config, Function function, void** params, void** extra))                                     \
  X(TexObjectCreate, 5000, "", kBackend,                                                                              \
    (TextureObject* texture, const TextureResource* resource, const TextureParams* params, const void* view))         \
  X(TexObjectDestroy, 5000, "", kBackend, (TextureObject texture))                                                    \
  X(SurfObjectCreate, 5000, "", kBackend, (TextureObject* surface, const TextureResource* resource))                  \
  X(SurfObjectDestroy, 5000, "", kBackend, (TextureObject surface))                                                   \
  X(Array3DCreate, 3020, "_v2", kBackend, (Array* array, const ArrayShape* shape))                                    \
  X(ArrayDestroy, 2000, "", kBackend, (Array array))                                                                  \
  X(MipmappedArrayCreate, 5000, "", kBackend, (MipmappedArray* array, const ArrayShape* shape, uint32_t levels))      \
  X(MipmappedArrayGetLevel, 5000, "", kBackend, (Array* level, MipmappedArray array, uint32_t number))                \
  X(MipmappedArrayDestroy, 5000, "", kBackend, (MipmappedArray array))                                                \
  X(Memcpy3DAsync, 3020, "_v2", kBackend, (const Copy3d* copy, Stream stream))                                        \
  X(TensorMapEncodeTiled, 12000, "", kBackend,                                                                        \
    (void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size, const uint64_t* stride, const       \
     uint32_t* box, const uint32_t* element_stride, int32_t interleave, int32_t swizzle, int32_t promotion, int32_t   \
     fill))                                                                                                           \
  X(TensorMapEncodeIm2col, 12000, "", kBackend,                                                                       \
    (void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size, const uint64_t* stride, const       \
     int32_t* lower, const int32_t* upper, uint32_t channels, uint32_t pixels, const uint32_t* element_stride,        \
     int32_t interleave, int32_t swizzle, int32_t promotion, int32_t fill))                                           \
  X(TensorMapReplaceAddress, 12000, "", kBackend, (void* map, void* address))                                         \
  X(GetErrorName, 6000, "", kBackend | kGpuCheck | kLauncher, (Status error, const char** name))                      \
  X(GetErrorString, 6000, "", kBackend | kLauncher, (Status error, const char** text))                                \
  X(DevicePrimaryCtxRelease, 11000, "_v2", kLauncher, (Device device))                                                \
  X(MemcpyHtoD, 3020, "_v2", kGpuCheck | kLauncher, (DevicePtr to, const void* from, size_t bytes))                   \
  X(MemcpyDtoH, 3020, "_v2", kGpuCheck | kLauncher, (void* to, DevicePtr from, size_t bytes))                         \
  X(MemsetD8, 3020, "_v2", kGpuCheck | kLauncher, (DevicePtr to, uint8_t value, size_t count))                        \
  X(StreamQuery, 2000, "", kGpuCheck, (Stream stream))                                                                \
  X(StreamBeginCapture, 10010, "_v2", kGpuCheck, (Stream stream, int32_t mode))                                       \
  X(StreamEndCapture, 10000, "", kGpuCheck, (Stream stream, Graph* graph))                                            \
  X(GraphInstantiateWithFlags, 11040, "", kGpuCheck, (GraphExec* made, Graph graph, unsigned long long flags))        \
  X(GraphLaunch, 10000, "", kGpuCheck, (GraphExec graph, Stream stream))                                              \
  X(ModuleLoadData, 2000, "", kGpuCheck | kLauncher, (Module* module, const void* image))                             \
  X(LaunchKernel, 4000, "", kGpuCheck | kLauncher,                                                                    \
    (Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,        \
     uint32_t block_z, uint32_t dynamic_shared, Stream stream, void** params, void** extra))
// clang-format on

struct Calls {
#define VGPUD_DRIVER_MEMBER(name, version, suffix, callers, parameters) Status(*name) parameters = nullptr;
  VGPUD_DRIVER_CALLS(VGPUD_DRIVER_MEMBER)
#undef VGPUD_DRIVER_MEMBER
};

struct CallRow {
  const char* name;
  const char* symbol;
  int version;
  unsigned callers;
  size_t place;
};
inline constexpr CallRow kCallRows[] = {
#define VGPUD_DRIVER_ROW(name, version, suffix, callers, parameters) \
  {"cu" #name, "cu" #name suffix, version, callers, offsetof(Calls, name)},
    VGPUD_DRIVER_CALLS(VGPUD_DRIVER_ROW)
#undef VGPUD_DRIVER_ROW
};

// Sets the calls of `caller` in `calls`: `find(row)` returns the function of a row or nullptr. Returns
// the first row without a function, nullptr if all have one; the other calls stay nullptr.
template <class Find>
const CallRow* FindCalls(Caller caller, Calls& calls, Find find) {
  for (const CallRow& row : kCallRows) {
    if ((row.callers & caller) == 0) continue;
    void* const function = find(row);
    if (function == nullptr) return &row;
    std::memcpy(reinterpret_cast<char*>(&calls) + row.place, &function, sizeof function);
  }
  return nullptr;
}

}  // namespace vgpud::driver
