// SPDX-License-Identifier: Apache-2.0
// Initialisation and device queries, answered from what the VF says of itself, and its executor when it is opened.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace {

using vgpud::cuda::Device;
using vgpud::cuda::Driver;

constexpr int kLastP2PAttribute = CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;

// The device, which may have no channel, or the error in *error.
Device* Find(CUdevice ordinal, bool arguments_ok, CUresult* error) {
  *error = Driver::Get().Ready();
  if (*error != CUDA_SUCCESS) return nullptr;
  Device* device = Driver::Get().device(ordinal);
  if (device == nullptr) *error = CUDA_ERROR_INVALID_DEVICE;
  if (!arguments_ok) *error = CUDA_ERROR_INVALID_VALUE;
  return *error == CUDA_SUCCESS ? device : nullptr;
}

// As Find, and opens the device's channel if the process has none yet.
Device* FindOpen(CUdevice ordinal, bool arguments_ok, CUresult* error) {
  Device* device = Find(ordinal, arguments_ok, error);
  if (device != nullptr) *error = Driver::Get().OpenDevice(ordinal, &device);
  return *error == CUDA_SUCCESS ? device : nullptr;
}

// One that can't even be asked has no name.
CUresult Uuid(CUuuid_st* uuid, CUdevice ordinal) {
  CUresult error;
  Device* device = Find(ordinal, uuid != nullptr, &error);
  if (device == nullptr) return error;
  memcpy(uuid->bytes, device->vf.uuid, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult TotalMemory(size_t* bytes, CUdevice ordinal) {
  CUresult error;
  Device* device = FindOpen(ordinal, bytes != nullptr, &error);
  if (device == nullptr) return error;
  *bytes = device->info.total_memory;
  return CUDA_SUCCESS;
}

}  // namespace

CU_API(cuInit)(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Driver::Get().Init();
}

CU_API(cuDriverGetVersion)(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = vgpud::cuda::DriverVersion();
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetCount)(int* count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Driver::Get().devices().size());
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGet)(CUdevice* out, int ordinal) {
  CUresult error;
  if (Find(ordinal, out != nullptr, &error) == nullptr) return error;
  *out = ordinal;
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetName)(char* name, int bytes, CUdevice ordinal) {
  CUresult error;
  Device* device = FindOpen(ordinal, name != nullptr && bytes > 0, &error);
  if (device == nullptr) return error;
  snprintf(name, static_cast<size_t>(bytes), "%s", device->name.c_str());
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetUuid)(CUuuid_st* uuid, CUdevice ordinal) { return Uuid(uuid, ordinal); }
CU_API(cuDeviceGetUuid_v2)(CUuuid_st* uuid, CUdevice ordinal) { return Uuid(uuid, ordinal); }

CU_API(cuDeviceTotalMem)(unsigned* bytes, CUdevice ordinal) {
  size_t wide = 0;
  if (const CUresult error = TotalMemory(bytes != nullptr ? &wide : nullptr, ordinal)) return error;
  *bytes = static_cast<unsigned>(std::min<size_t>(wide, 0xffffffffu));
  return CUDA_SUCCESS;
}
CU_API(cuDeviceTotalMem_v2)(size_t* bytes, CUdevice ordinal) { return TotalMemory(bytes, ordinal); }

CU_API(cuDeviceGetAttribute)(int* value, int attribute, CUdevice ordinal) {
  CUresult error;
  Device* device = FindOpen(ordinal, value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX, &error);
  if (device == nullptr) return error;
  *value = device->attribute(attribute);
  return CUDA_SUCCESS;
}

CU_API(cuDeviceComputeCapability)(int* major, int* minor, CUdevice ordinal) {
  CUresult error;
  Device* device = FindOpen(ordinal, major != nullptr && minor != nullptr, &error);
  if (device == nullptr) return error;
  *major = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetProperties)(CUdevprop_st* out, CUdevice ordinal) {
  CUresult error;
  Device* device = FindOpen(ordinal, out != nullptr, &error);
  if (device == nullptr) return error;
  *out = {};
  out->maxThreadsPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; ++i) {
    out->maxThreadsDim[i] = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    out->maxGridSize[i] = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  out->sharedMemPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  out->totalConstantMemory = device->attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  out->SIMDWidth = device->attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  out->memPitch = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  out->regsPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  out->clockRate = device->attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->textureAlign = device->attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetPCIBusId)(char* text, int bytes, CUdevice ordinal) {
  CUresult error;
  Device* device = Find(ordinal, text != nullptr && bytes > 0, &error);
  if (device == nullptr) return error;
  const int length = snprintf(text, static_cast<size_t>(bytes), "%04x:%02x:%02x.0",
                              static_cast<unsigned>(device->attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)),
                              static_cast<unsigned>(device->attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)),
                              static_cast<unsigned>(device->attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)));
  return length < bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CU_API(cuDeviceGetByPCIBusId)(CUdevice* out, const char* text) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& device : Driver::Get().devices()) {
    const vgpu_ioc_info& info = device->vf;
    if (device->way != nullptr && info.pci_domain == domain && info.pci_bus == bus && info.pci_device == slot) {
      *out = device->ordinal;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CU_API(cuDeviceCanAccessPeer)(int* can, CUdevice ordinal, CUdevice peer) {
  CUresult error;
  if (Find(ordinal, can != nullptr, &error) == nullptr || Find(peer, true, &error) == nullptr) return error;
  *can = 0;
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetP2PAttribute)(int* value, int attribute, CUdevice source, CUdevice target) {
  CUresult error;
  if (Find(source, value != nullptr, &error) == nullptr || Find(target, true, &error) == nullptr) return error;
  if (source == target) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK || attribute > kLastP2PAttribute)
    return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  return CUDA_SUCCESS;
}

CU_API(cuDeviceGetExecAffinitySupport)(int* supported, int, CUdevice ordinal) {
  CUresult error;
  if (Find(ordinal, supported != nullptr, &error) == nullptr) return error;
  *supported = 0;
  return CUDA_SUCCESS;
}

CU_API(cuModuleGetLoadingMode)(int* mode) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CU_API(cuProfilerInitialize)(const char*, const char*, int) { return CUDA_ERROR_PROFILER_DISABLED; }
CU_API(cuProfilerStart)() { return Driver::Get().Ready(); }
CU_API(cuProfilerStop)() { return Driver::Get().Ready(); }
