// SPDX-License-Identifier: Apache-2.0
// What is true of every virtual function.
#include <vector>

#include "guest-driver-shim/libnvidia-ml/library.h"

namespace {

using vgpud::nvml::Device;
using vgpud::nvml::Find;

template <class T>
nvmlReturn_t Constant(nvmlDevice_t handle, T* out, T value) {
  nvmlReturn_t error;
  if (Find(handle, out != nullptr, &error) == nullptr) return error;
  *out = value;
  return NVML_SUCCESS;
}

}  // namespace

NVML_API(nvmlDeviceGetBrand)(nvmlDevice_t handle, int* out) { return Constant<int>(handle, out, NVML_BRAND_UNKNOWN); }
NVML_API(nvmlDeviceGetArchitecture)(nvmlDevice_t handle, unsigned* out) {
  return Constant(handle, out, NVML_DEVICE_ARCH_UNKNOWN);
}
NVML_API(nvmlDeviceGetVirtualizationMode)(nvmlDevice_t handle, int* out) {
  return Constant<int>(handle, out, NVML_GPU_VIRTUALIZATION_MODE_VGPU);
}
// Any number of processes at once.
NVML_API(nvmlDeviceGetComputeMode)(nvmlDevice_t handle, int* out) {
  return Constant<int>(handle, out, NVML_COMPUTEMODE_DEFAULT);
}
NVML_API(nvmlDeviceGetDisplayMode)(nvmlDevice_t handle, int* out) {
  return Constant<int>(handle, out, NVML_FEATURE_DISABLED);
}
NVML_API(nvmlDeviceGetDisplayActive)(nvmlDevice_t handle, int* out) {
  return Constant<int>(handle, out, NVML_FEATURE_DISABLED);
}
NVML_API(nvmlDeviceIsMigDeviceHandle)(nvmlDevice_t handle, unsigned* out) { return Constant(handle, out, 0u); }
NVML_API(nvmlDeviceGetSupportedEventTypes)(nvmlDevice_t handle, unsigned long long* out) {
  return Constant(handle, out, 0ull);
}

// No way from one virtual function to another.
NVML_API(nvmlDeviceGetP2PStatus)(nvmlDevice_t one, nvmlDevice_t other, int which, int* out) {
  nvmlReturn_t error;
  if (Find(other, which >= 0 && which < NVML_P2P_CAPS_INDEX_UNKNOWN, &error) == nullptr) return error;
  return Constant<int>(one, out, one == other ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED);
}

// The call succeeds, each field says by itself that it is not known.
NVML_API(nvmlDeviceGetFieldValues)(nvmlDevice_t handle, int count, nvmlFieldValue_t* values) {
  nvmlReturn_t error;
  if (Find(handle, count > 0 && values != nullptr, &error) == nullptr) return error;
  for (int i = 0; i < count; ++i) values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
