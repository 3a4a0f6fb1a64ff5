// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API as this backend uses it: loaded at run time, never linked, so that vgpud runs where there is no
// driver. Types and numbers are those of cuda.h, which need not be installed. One row of driver_api.cc per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
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
// For Api::LaunchKernelEx: the pairs of `extra`.
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

// CUDA_ARRAY3D_DESCRIPTOR. `height` is 0 where there is none, `depth` too; layers and faces are its depth.
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

// The calls, as cuda.h declares them. Every pointer but the last three is set when Load has succeeded.
struct Api {
  Status (*Init)(uint32_t flags);
  Status (*DriverGetVersion)(int* version);
  Status (*DeviceGetCount)(int* count);
  Status (*DeviceGet)(Device* device, int ordinal);
  Status (*DeviceGetByPciBusId)(Device* device, const char* address);
  Status (*DeviceGetPciBusId)(char* address, int bytes, Device device);
  Status (*DeviceGetName)(char* name, int bytes, Device device);
  Status (*DeviceGetUuid)(DeviceUuid* uuid, Device device);
  Status (*DeviceGetAttribute)(int* value, int attribute, Device device);
  Status (*DeviceTotalMem)(size_t* bytes, Device device);
  Status (*PrimaryRetain)(Context* context, Device device);
  Status (*PrimaryReset)(Device device);
  Status (*PrimarySetFlags)(Device device, uint32_t flags);
  Status (*CtxSetCurrent)(Context context);
  Status (*CtxSynchronize)();
  Status (*CtxCreate)(Context* context, uint32_t flags, Device device);
  Status (*CtxDestroy)(Context context);
  Status (*CtxSetLimit)(ContextLimit limit, size_t value);
  Status (*CtxGetLimit)(size_t* value, ContextLimit limit);
  Status (*MemGetInfo)(size_t* free, size_t* total);
  Status (*MemAlloc)(DevicePtr* address, size_t bytes);
  Status (*MemFree)(DevicePtr address);
  Status (*MemHostAlloc)(void** memory, size_t bytes, uint32_t flags);
  Status (*MemHostGetDevicePointer)(DevicePtr* address, void* memory, uint32_t flags);
  Status (*MemFreeHost)(void* memory);
  Status (*MemHostRegister)(void* memory, size_t bytes, uint32_t flags);
  Status (*MemHostUnregister)(void* memory);
  Status (*MemAddressReserve)(DevicePtr* address, size_t bytes, size_t alignment, DevicePtr wish, unsigned long long);
  Status (*MemAddressFree)(DevicePtr address, size_t bytes);
  Status (*MemCreate)(MemoryHandle* memory, size_t bytes, const MemoryProperties* told, unsigned long long flags);
  Status (*MemRelease)(MemoryHandle memory);
  Status (*MemMap)(DevicePtr address, size_t bytes, size_t offset, MemoryHandle memory, unsigned long long flags);
  Status (*MemUnmap)(DevicePtr address, size_t bytes);
  Status (*MemSetAccess)(DevicePtr address, size_t bytes, const MemoryAccess* access, size_t count);
  Status (*MemGetGranularity)(size_t* bytes, const MemoryProperties* told, int32_t option);
  Status (*MemcpyHtoD)(DevicePtr to, const void* from, size_t bytes, Stream stream);
  Status (*MemcpyDtoH)(void* to, DevicePtr from, size_t bytes, Stream stream);
  Status (*MemcpyDtoD)(DevicePtr to, DevicePtr from, size_t bytes, Stream stream);
  Status (*MemsetD8)(DevicePtr to, uint8_t value, size_t count, Stream stream);
  Status (*MemsetD16)(DevicePtr to, uint16_t value, size_t count, Stream stream);
  Status (*MemsetD32)(DevicePtr to, uint32_t value, size_t count, Stream stream);
  Status (*StreamCreate)(Stream* stream, uint32_t flags);
  Status (*StreamDestroy)(Stream stream);
  Status (*StreamSynchronize)(Stream stream);
  Status (*EventCreate)(Event* event, uint32_t flags);
  Status (*EventDestroy)(Event event);
  Status (*EventRecord)(Event event, Stream stream);
  Status (*EventQuery)(Event event);
  Status (*EventSynchronize)(Event event);
  Status (*ModuleLoadDataEx)(Module* module, const void* image, uint32_t options, JitOption* names, void** values);
  Status (*ModuleUnload)(Module module);
  Status (*ModuleGetFunction)(Function* function, Module module, const char* name);
  Status (*ModuleGetFunctionCount)(uint32_t* count, Module module);
  Status (*ModuleEnumerateFunctions)(Function* functions, uint32_t room, Module module);
  Status (*ModuleGetGlobal)(DevicePtr* address, size_t* bytes, Module module, const char* name);
  Status (*LinkCreate)(uint32_t options, JitOption* names, void** values, LinkState* state);
  Status (*LinkAddData)(LinkState state, LinkInput type, void* data, size_t bytes, const char* name, uint32_t options,
                        JitOption* names, void** values);
  Status (*LinkComplete)(LinkState state, void** code, size_t* bytes);
  Status (*LinkDestroy)(LinkState state);
  Status (*FuncGetName)(const char** name, Function function);
  Status (*FuncGetParamInfo)(Function function, size_t index, size_t* offset, size_t* bytes);
  Status (*FuncGetAttribute)(int* value, FunctionAttribute attribute, Function function);
  Status (*FuncSetAttribute)(Function function, FunctionAttribute attribute, int value);
  Status (*OccupancyBlocks)(int* blocks, Function function, int threads, size_t dynamic_shared);
  Status (*LaunchKernelEx)(const LaunchConfig* config, Function function, void** params, void** extra);
  Status (*TexObjectCreate)(TextureObject* texture, const TextureResource* resource, const TextureParams* params,
                            const void* view);
  Status (*TexObjectDestroy)(TextureObject texture);
  Status (*SurfObjectCreate)(TextureObject* surface, const TextureResource* resource);
  Status (*SurfObjectDestroy)(TextureObject surface);
  Status (*Array3DCreate)(Array* array, const ArrayShape* shape);
  Status (*ArrayDestroy)(Array array);
  Status (*MipmappedArrayCreate)(MipmappedArray* array, const ArrayShape* shape, uint32_t levels);
  Status (*MipmappedArrayGetLevel)(Array* level, MipmappedArray array, uint32_t number);
  Status (*MipmappedArrayDestroy)(MipmappedArray array);
  Status (*Memcpy3D)(const Copy3d* copy, Stream stream);
  Status (*TensorMapEncodeTiled)(void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size,
                                 const uint64_t* stride, const uint32_t* box, const uint32_t* element_stride,
                                 int32_t interleave, int32_t swizzle, int32_t promotion, int32_t fill);
  Status (*TensorMapEncodeIm2col)(void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size,
                                  const uint64_t* stride, const int32_t* lower, const int32_t* upper, uint32_t channels,
                                  uint32_t pixels, const uint32_t* element_stride, int32_t interleave, int32_t swizzle,
                                  int32_t promotion, int32_t fill);
  Status (*TensorMapReplaceAddress)(void* map, void* address);
  Status (*GetErrorName)(Status error, const char** name);
  Status (*GetErrorString)(Status error, const char** text);

  // nullptr before CUDA 12.8.
  Status (*TensorMapEncodeIm2colWide)(void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size,
                                      const uint64_t* stride, int32_t lower, int32_t upper, uint32_t channels,
                                      uint32_t pixels, const uint32_t* element_stride, int32_t interleave, int32_t mode,
                                      int32_t swizzle, int32_t promotion, int32_t fill);
  // The card's, where DeviceGetUuid is that of a MIG instance of it (cuDeviceGetUuid before CUDA 11.4). nullptr: the
  // driver has it no more.
  Status (*DeviceGetCardUuid)(DeviceUuid* uuid, Device device);
  // Of our own libcuda, nested (docs/cuda-backend.md): what file memory shows that MemHostRegister will be asked for.
  // nullptr: it is another driver.
  Status (*DescribeHostMemory)(void* memory, size_t bytes, int fd, uint64_t offset);

  // "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected".
  std::string Describe(Status status) const;
};

// The oldest driver that has them all, as cuDriverGetVersion counts: 12.4.
inline constexpr int kOldestDriver = 12040;

// Loads `library` (a path, or a name that the loader finds; empty: libcuda.so.1) and every row. Process-wide and for
// good: a driver has threads. Call it before the jail, which opens no files. An error says what is missing and what to
// install.
[[nodiscard]] Result<Api> LoadApi(const std::string& library);

}  // namespace vgpud::driver
