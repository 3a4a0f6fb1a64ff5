// SPDX-License-Identifier: Apache-2.0
// Which devices there are, and what never changes of one.
#include <cstdio>
#include <cstring>
#include <string>

#include "guest-driver-shim/libnvidia-ml/library.h"

namespace {

using vgpud::nvml::CopyText;
using vgpud::nvml::Device;
using vgpud::nvml::Find;
using vgpud::nvml::Library;
using vgpud::nvml::PciAddress;

nvmlReturn_t Count(unsigned* count) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Library::Get().devices().size());
  return NVML_SUCCESS;
}

// The first device that `matches`.
template <class Matches>
nvmlReturn_t Pick(bool arguments_ok, nvmlDevice_t* out, Matches matches) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  if (out == nullptr || !arguments_ok) return NVML_ERROR_INVALID_ARGUMENT;
  for (const auto& device : Library::Get().devices()) {
    if (!matches(*device)) continue;
    *out = Library::HandleOf(*device);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t ByIndex(unsigned index, nvmlDevice_t* out) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  const auto& devices = Library::Get().devices();
  if (out == nullptr || index >= devices.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *out = Library::HandleOf(*devices[index]);
  return NVML_SUCCESS;
}

// "0000:00:05.0" with a domain of 4 or 8 digits, or none; the function may be missing.
bool ParseAddress(const char* text, PciAddress* out) {
  char rest = '\0';
  if (sscanf(text, "%x:%x:%x%c", &out->domain, &out->bus, &out->device, &rest) >= 3) return rest == '\0' || rest == '.';
  out->domain = 0;
  rest = '\0';
  return sscanf(text, "%x:%x%c", &out->bus, &out->device, &rest) >= 2 && (rest == '\0' || rest == '.');
}

nvmlReturn_t ByPciBusId(const char* text, nvmlDevice_t* out) {
  PciAddress wanted;
  const bool ok = text != nullptr && ParseAddress(text, &wanted);
  return Pick(ok, out, [&](const Device& device) { return device.pci() == wanted; });
}

// The same in structs of all ages.
template <class Info>
void FillAddress(const Device& device, Info* info) {
  const PciAddress& pci = device.pci();
  info->domain = pci.domain;
  info->bus = pci.bus;
  info->device = pci.device;
  info->pciDeviceId = VGPU_PCI_DEVICE_ID << 16 | VGPU_PCI_VENDOR_ID;
  snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
}

nvmlReturn_t PciInfo(nvmlDevice_t handle, nvmlPciInfo_t* out) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, out != nullptr, &error);
  if (device == nullptr) return error;
  *out = {};
  FillAddress(*device, out);
  const PciAddress& pci = device->pci();
  snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0", pci.domain & 0xffff, pci.bus & 0xff,
           pci.device & 0xff);
  return NVML_SUCCESS;
}

}  // namespace

NVML_API(nvmlDeviceGetCount)(unsigned* count) { return Count(count); }
NVML_API(nvmlDeviceGetCount_v2)(unsigned* count) { return Count(count); }
NVML_API(nvmlDeviceGetHandleByIndex)(unsigned index, nvmlDevice_t* out) { return ByIndex(index, out); }
NVML_API(nvmlDeviceGetHandleByIndex_v2)(unsigned index, nvmlDevice_t* out) { return ByIndex(index, out); }
NVML_API(nvmlDeviceGetHandleByPciBusId)(const char* text, nvmlDevice_t* out) { return ByPciBusId(text, out); }
NVML_API(nvmlDeviceGetHandleByPciBusId_v2)(const char* text, nvmlDevice_t* out) { return ByPciBusId(text, out); }
NVML_API(nvmlDeviceGetHandleByUUID)(const char* uuid, nvmlDevice_t* out) {
  return Pick(uuid != nullptr, out, [&](const Device& device) { return device.uuid() == uuid; });
}

NVML_API(nvmlDeviceGetIndex)(nvmlDevice_t handle, unsigned* out) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, out != nullptr, &error);
  if (device == nullptr) return error;
  const auto& devices = Library::Get().devices();
  for (*out = 0; devices[*out].get() != device;) ++*out;
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetName)(nvmlDevice_t handle, char* to, unsigned room) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, to != nullptr, &error);
  if (device == nullptr) return error;
  return device->name().empty() ? NVML_ERROR_NOT_SUPPORTED : CopyText(device->name(), to, room);
}

NVML_API(nvmlDeviceGetUUID)(nvmlDevice_t handle, char* to, unsigned room) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, to != nullptr, &error);
  return device == nullptr ? error : CopyText(device->uuid(), to, room);
}

// N of /dev/vgpuN, which a virtual function without a VM does not have.
NVML_API(nvmlDeviceGetMinorNumber)(nvmlDevice_t handle, unsigned* out) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, out != nullptr, &error);
  if (device == nullptr) return error;
  if (!device->source().number) return NVML_ERROR_NOT_SUPPORTED;
  *out = *device->source().number;
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetPciInfo)(nvmlDevice_t handle, nvmlPciInfo_t* out) { return PciInfo(handle, out); }
NVML_API(nvmlDeviceGetPciInfo_v2)(nvmlDevice_t handle, nvmlPciInfo_t* out) { return PciInfo(handle, out); }
NVML_API(nvmlDeviceGetPciInfo_v3)(nvmlDevice_t handle, nvmlPciInfo_t* out) { return PciInfo(handle, out); }
NVML_API(nvmlDeviceGetPciInfoExt)(nvmlDevice_t handle, nvmlPciInfoExt_v1_t* out) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, out != nullptr, &error);
  if (device == nullptr) return error;
  if (out->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *out = {};
  out->version = nvmlPciInfoExt_v1;
  out->baseClass = VGPU_PCI_CLASS >> 16;
  out->subClass = VGPU_PCI_CLASS >> 8 & 0xff;
  FillAddress(*device, out);
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetCudaComputeCapability)(nvmlDevice_t handle, int* major, int* minor) {
  nvmlReturn_t error;
  const Device* const device = Find(handle, major != nullptr && minor != nullptr, &error);
  if (device == nullptr) return error;
  if (device->capability() == 0) return NVML_ERROR_NOT_SUPPORTED;
  *major = static_cast<int>(device->capability() / 10);
  *minor = static_cast<int>(device->capability() % 10);
  return NVML_SUCCESS;
}
