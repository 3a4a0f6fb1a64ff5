// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstring>

namespace vgpud::driver {
namespace {

constexpr const char* kUsualLibrary = "libcuda.so.1";
constexpr uint64_t kNoFlags = 0;

// cuGetProcAddress_v2; `found` tells why there is nothing (CUdriverProcAddressQueryResult).
using GetProcAddress = Status (*)(const char* name, void** function, int version, uint64_t flags, int* found);

// `version`: the form of the call that is meant, by the toolkit that brought it (cudaTypedefs.h).
struct Row {
  const char* name;
  int version;
  size_t place;
};
#define VGPUD_DRIVER_CALL(name, version, member) \
  { name, version, offsetof(Api, member) }
constexpr Row kRows[] = {
    VGPUD_DRIVER_CALL("cuInit", 2000, Init),
    VGPUD_DRIVER_CALL("cuDriverGetVersion", 2020, DriverGetVersion),
    VGPUD_DRIVER_CALL("cuDeviceGetCount", 2000, DeviceGetCount),
    VGPUD_DRIVER_CALL("cuDeviceGet", 2000, DeviceGet),
    VGPUD_DRIVER_CALL("cuDeviceGetByPCIBusId", 4010, DeviceGetByPciBusId),
    VGPUD_DRIVER_CALL("cuDeviceGetPCIBusId", 4010, DeviceGetPciBusId),
    VGPUD_DRIVER_CALL("cuDeviceGetName", 2000, DeviceGetName),
    VGPUD_DRIVER_CALL("cuDeviceGetUuid", 11040, DeviceGetUuid),
    VGPUD_DRIVER_CALL("cuDeviceGetAttribute", 2000, DeviceGetAttribute),
    VGPUD_DRIVER_CALL("cuDeviceTotalMem", 3020, DeviceTotalMem),
    VGPUD_DRIVER_CALL("cuDevicePrimaryCtxRetain", 7000, PrimaryRetain),
    VGPUD_DRIVER_CALL("cuDevicePrimaryCtxReset", 11000, PrimaryReset),
    VGPUD_DRIVER_CALL("cuDevicePrimaryCtxSetFlags", 11000, PrimarySetFlags),
    VGPUD_DRIVER_CALL("cuCtxSetCurrent", 4000, CtxSetCurrent),
    VGPUD_DRIVER_CALL("cuCtxSynchronize", 2000, CtxSynchronize),
    VGPUD_DRIVER_CALL("cuCtxCreate", 3020, CtxCreate),
    VGPUD_DRIVER_CALL("cuCtxDestroy", 4000, CtxDestroy),
    VGPUD_DRIVER_CALL("cuCtxSetLimit", 3010, CtxSetLimit),
    VGPUD_DRIVER_CALL("cuCtxGetLimit", 3010, CtxGetLimit),
    VGPUD_DRIVER_CALL("cuMemGetInfo", 3020, MemGetInfo),
    VGPUD_DRIVER_CALL("cuMemAlloc", 3020, MemAlloc),
    VGPUD_DRIVER_CALL("cuMemFree", 3020, MemFree),
    VGPUD_DRIVER_CALL("cuMemHostAlloc", 2020, MemHostAlloc),
    VGPUD_DRIVER_CALL("cuMemHostGetDevicePointer", 3020, MemHostGetDevicePointer),
    VGPUD_DRIVER_CALL("cuMemFreeHost", 2000, MemFreeHost),
    VGPUD_DRIVER_CALL("cuMemHostRegister", 6050, MemHostRegister),
    VGPUD_DRIVER_CALL("cuMemHostUnregister", 4000, MemHostUnregister),
    VGPUD_DRIVER_CALL("cuMemAddressReserve", 10020, MemAddressReserve),
    VGPUD_DRIVER_CALL("cuMemAddressFree", 10020, MemAddressFree),
    VGPUD_DRIVER_CALL("cuMemCreate", 10020, MemCreate),
    VGPUD_DRIVER_CALL("cuMemRelease", 10020, MemRelease),
    VGPUD_DRIVER_CALL("cuMemMap", 10020, MemMap),
    VGPUD_DRIVER_CALL("cuMemUnmap", 10020, MemUnmap),
    VGPUD_DRIVER_CALL("cuMemSetAccess", 10020, MemSetAccess),
    VGPUD_DRIVER_CALL("cuMemGetAllocationGranularity", 10020, MemGetGranularity),
    VGPUD_DRIVER_CALL("cuMemcpyHtoDAsync", 3020, MemcpyHtoD),
    VGPUD_DRIVER_CALL("cuMemcpyDtoHAsync", 3020, MemcpyDtoH),
    VGPUD_DRIVER_CALL("cuMemcpyDtoDAsync", 3020, MemcpyDtoD),
    VGPUD_DRIVER_CALL("cuMemsetD8Async", 3020, MemsetD8),
    VGPUD_DRIVER_CALL("cuMemsetD16Async", 3020, MemsetD16),
    VGPUD_DRIVER_CALL("cuMemsetD32Async", 3020, MemsetD32),
    VGPUD_DRIVER_CALL("cuStreamCreate", 2000, StreamCreate),
    VGPUD_DRIVER_CALL("cuStreamDestroy", 4000, StreamDestroy),
    VGPUD_DRIVER_CALL("cuStreamSynchronize", 2000, StreamSynchronize),
    VGPUD_DRIVER_CALL("cuEventCreate", 2000, EventCreate),
    VGPUD_DRIVER_CALL("cuEventDestroy", 4000, EventDestroy),
    VGPUD_DRIVER_CALL("cuEventRecord", 2000, EventRecord),
    VGPUD_DRIVER_CALL("cuEventQuery", 2000, EventQuery),
    VGPUD_DRIVER_CALL("cuEventSynchronize", 2000, EventSynchronize),
    VGPUD_DRIVER_CALL("cuModuleLoadDataEx", 2010, ModuleLoadDataEx),
    VGPUD_DRIVER_CALL("cuModuleUnload", 2000, ModuleUnload),
    VGPUD_DRIVER_CALL("cuModuleGetFunction", 2000, ModuleGetFunction),
    VGPUD_DRIVER_CALL("cuModuleGetFunctionCount", 12040, ModuleGetFunctionCount),
    VGPUD_DRIVER_CALL("cuModuleEnumerateFunctions", 12040, ModuleEnumerateFunctions),
    VGPUD_DRIVER_CALL("cuModuleGetGlobal", 3020, ModuleGetGlobal),
    VGPUD_DRIVER_CALL("cuLinkCreate", 6050, LinkCreate),
    VGPUD_DRIVER_CALL("cuLinkAddData", 6050, LinkAddData),
    VGPUD_DRIVER_CALL("cuLinkComplete", 5050, LinkComplete),
    VGPUD_DRIVER_CALL("cuLinkDestroy", 5050, LinkDestroy),
    VGPUD_DRIVER_CALL("cuFuncGetName", 12030, FuncGetName),
    VGPUD_DRIVER_CALL("cuFuncGetParamInfo", 12040, FuncGetParamInfo),
    VGPUD_DRIVER_CALL("cuFuncGetAttribute", 2020, FuncGetAttribute),
    VGPUD_DRIVER_CALL("cuFuncSetAttribute", 9000, FuncSetAttribute),
    VGPUD_DRIVER_CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, OccupancyBlocks),
    VGPUD_DRIVER_CALL("cuLaunchKernelEx", 11060, LaunchKernelEx),
    VGPUD_DRIVER_CALL("cuTexObjectCreate", 5000, TexObjectCreate),
    VGPUD_DRIVER_CALL("cuTexObjectDestroy", 5000, TexObjectDestroy),
    VGPUD_DRIVER_CALL("cuSurfObjectCreate", 5000, SurfObjectCreate),
    VGPUD_DRIVER_CALL("cuSurfObjectDestroy", 5000, SurfObjectDestroy),
    VGPUD_DRIVER_CALL("cuArray3DCreate", 3020, Array3DCreate),
    VGPUD_DRIVER_CALL("cuArrayDestroy", 2000, ArrayDestroy),
    VGPUD_DRIVER_CALL("cuMipmappedArrayCreate", 5000, MipmappedArrayCreate),
    VGPUD_DRIVER_CALL("cuMipmappedArrayGetLevel", 5000, MipmappedArrayGetLevel),
    VGPUD_DRIVER_CALL("cuMipmappedArrayDestroy", 5000, MipmappedArrayDestroy),
    VGPUD_DRIVER_CALL("cuMemcpy3DAsync", 3020, Memcpy3D),
    VGPUD_DRIVER_CALL("cuTensorMapEncodeTiled", 12000, TensorMapEncodeTiled),
    VGPUD_DRIVER_CALL("cuTensorMapEncodeIm2col", 12000, TensorMapEncodeIm2col),
    VGPUD_DRIVER_CALL("cuTensorMapReplaceAddress", 12000, TensorMapReplaceAddress),
    VGPUD_DRIVER_CALL("cuGetErrorName", 6000, GetErrorName),
    VGPUD_DRIVER_CALL("cuGetErrorString", 6000, GetErrorString),
};
#undef VGPUD_DRIVER_CALL
static_assert(std::size(kRows) * sizeof(void*) == offsetof(Api, TensorMapEncodeIm2colWide), "one row for each call");

std::string VersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

std::string Api::Describe(Status status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(status, &name) != kOk || name == nullptr) name = "unknown error";
  if (GetErrorString(status, &text) != kOk || text == nullptr) return fmt::format("{} ({})", name, status);
  return fmt::format("{} ({}): {}", name, status, text);
}

Result<Api> LoadApi(const std::string& library) {
  const std::string name = library.empty() ? kUsualLibrary : library;
  void* const loaded = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    return Fail(std::errc::no_such_file_or_directory,
                fmt::format("no CUDA driver: {}; install NVIDIA's driver (its package has libcuda.so.1), or use the "
                            "built-in GPU: vgpud --gpu soft",
                            ::dlerror()));
  const auto get = reinterpret_cast<GetProcAddress>(::dlsym(loaded, "cuGetProcAddress_v2"));
  const auto version_of = reinterpret_cast<decltype(Api::DriverGetVersion)>(::dlsym(loaded, "cuDriverGetVersion"));
  int version = 0;
  if (version_of == nullptr || version_of(&version) != kOk)
    return Fail(std::errc::not_supported,
                fmt::format("{} is no CUDA driver: it does not tell its version (cuDriverGetVersion)", name));
  if (version < kOldestDriver || get == nullptr)
    return Fail(std::errc::not_supported,
                fmt::format("the CUDA driver {} is too old: it is of CUDA {}, vgpud needs {} or newer; install a newer "
                            "driver",
                            name, VersionText(version), VersionText(kOldestDriver)));
  Api api{};
  for (const Row& row : kRows) {
    void* function = nullptr;
    int found = 0;
    const Status status = get(row.name, &function, row.version, kNoFlags, &found);
    if (status != kOk || function == nullptr)
      return Fail(std::errc::not_supported,
                  fmt::format("the CUDA driver {} (CUDA {}) has no {} of version {}: its installation is damaged, "
                              "install it again",
                              name, VersionText(version), row.name, VersionText(row.version)));
    std::memcpy(reinterpret_cast<char*>(&api) + row.place, &function, sizeof function);
  }
  const auto optional = [&](const char* call, auto* place) {
    void* const function = ::dlsym(loaded, call);
    std::memcpy(place, &function, sizeof function);
  };
  optional("cuTensorMapEncodeIm2colWide", &api.TensorMapEncodeIm2colWide);
  optional("cuDeviceGetUuid", &api.DeviceGetCardUuid);
  optional("vgpuDescribeHostMemory", &api.DescribeHostMemory);
  return api;
}

}  // namespace vgpud::driver
