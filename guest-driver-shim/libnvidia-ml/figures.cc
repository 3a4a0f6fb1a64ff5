// SPDX-License-Identifier: Apache-2.0
// What changes: memory, how busy the virtual function is, and its processes. Of this virtual function alone; nothing
// here is about its neighbours.
#include <algorithm>
#include <map>
#include <vector>

#include "guest-driver-shim/libnvidia-ml/library.h"

namespace {

using vgpud::nvml::Device;
using vgpud::nvml::Find;
using vgpud::nvml::UseHistory;

// The device and its figures of now, or the error.
nvmlReturn_t Read(nvmlDevice_t handle, bool arguments_ok, vgpu_status* status, Device** device = nullptr) {
  nvmlReturn_t error;
  Device* const found = Find(handle, arguments_ok, &error);
  if (found == nullptr) return error;
  if (device != nullptr) *device = found;
  return found->Read(status);
}

template <class Memory>
void FillMemory(const vgpu_status& status, Memory* out) {
  out->total = status.vram_bytes;
  out->used = std::min(status.vram_used_bytes, status.vram_bytes);
  out->free = out->total - out->used;
}

template <class Info>
void FillInstance(Info&) {}
// Of a GPU that is not cut into instances.
void FillInstance(nvmlProcessInfo_v2_t& info) { info.gpuInstanceId = info.computeInstanceId = ~0u; }

// Those with a CUDA context. A process with several channels is one process.
template <class Info>
nvmlReturn_t Processes(nvmlDevice_t handle, unsigned* count, Info* out) {
  vgpu_status status;
  if (const nvmlReturn_t error = Read(handle, count != nullptr && (*count == 0 || out != nullptr), &status))
    return error;
  std::map<unsigned, uint64_t> bytes;
  for (const vgpu_status_channel& channel : status.channel) {
    if (channel.id == 0) break;
    if ((channel.flags & VGPU_STATUS_CONTEXT) == 0) continue;
    bytes[channel.pid] += channel.vram_bytes;
  }
  const bool fits = *count >= bytes.size();
  *count = static_cast<unsigned>(bytes.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (const auto& [pid, used] : bytes) {
    *out = {};
    out->pid = pid;
    out->usedGpuMemory = used;
    FillInstance(*out++);
  }
  return NVML_SUCCESS;
}

// A virtual function draws nothing, and nothing shares its context.
nvmlReturn_t NoProcesses(nvmlDevice_t handle, unsigned* count) {
  nvmlReturn_t error;
  if (Find(handle, count != nullptr, &error) == nullptr) return error;
  *count = 0;
  return NVML_SUCCESS;
}

// How busy each process was since `last_seen`, and when that was found out.
nvmlReturn_t Uses(nvmlDevice_t handle, bool arguments_ok, unsigned long long last_seen,
                  std::vector<UseHistory::Use>* uses, unsigned long long* now) {
  vgpu_status status;
  Device* device = nullptr;
  if (const nvmlReturn_t error = Read(handle, arguments_ok, &status, &device)) return error;
  *uses = device->UseSince(last_seen, now);
  return uses->empty() ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

}  // namespace

NVML_API(nvmlDeviceGetMemoryInfo)(nvmlDevice_t handle, nvmlMemory_t* out) {
  vgpu_status status;
  if (const nvmlReturn_t error = Read(handle, out != nullptr, &status)) return error;
  FillMemory(status, out);
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMemoryInfo_v2)(nvmlDevice_t handle, nvmlMemory_v2_t* out) {
  vgpu_status status;
  if (const nvmlReturn_t error = Read(handle, out != nullptr, &status)) return error;
  if (out->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  FillMemory(status, out);
  out->reserved = 0;
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetUtilizationRates)(nvmlDevice_t handle, nvmlUtilization_t* out) {
  vgpu_status status;
  if (const nvmlReturn_t error = Read(handle, out != nullptr, &status)) return error;
  *out = {.gpu = std::min(status.gpu_percent, 100u), .memory = 0};
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetComputeRunningProcesses)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v1_t* out) {
  return Processes(handle, count, out);
}
NVML_API(nvmlDeviceGetComputeRunningProcesses_v2)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t* out) {
  return Processes(handle, count, out);
}
NVML_API(nvmlDeviceGetComputeRunningProcesses_v3)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t* out) {
  return Processes(handle, count, out);
}

NVML_API(nvmlDeviceGetGraphicsRunningProcesses)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v1_t*) {
  return NoProcesses(handle, count);
}
NVML_API(nvmlDeviceGetGraphicsRunningProcesses_v2)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t*) {
  return NoProcesses(handle, count);
}
NVML_API(nvmlDeviceGetGraphicsRunningProcesses_v3)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t*) {
  return NoProcesses(handle, count);
}
NVML_API(nvmlDeviceGetMPSComputeRunningProcesses)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v1_t*) {
  return NoProcesses(handle, count);
}
NVML_API(nvmlDeviceGetMPSComputeRunningProcesses_v2)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t*) {
  return NoProcesses(handle, count);
}
NVML_API(nvmlDeviceGetMPSComputeRunningProcesses_v3)(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_v2_t*) {
  return NoProcesses(handle, count);
}

NVML_API(nvmlDeviceGetProcessUtilization)
(nvmlDevice_t handle, nvmlProcessUtilizationSample_t* out, unsigned* count, unsigned long long last_seen) {
  std::vector<UseHistory::Use> uses;
  unsigned long long now = 0;
  if (const nvmlReturn_t error = Uses(handle, count != nullptr, last_seen, &uses, &now)) {
    if (error == NVML_ERROR_NOT_FOUND) *count = 0;
    return error;
  }
  const bool fits = out != nullptr && *count >= uses.size();
  *count = static_cast<unsigned>(uses.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (const UseHistory::Use& use : uses) {
    *out = {};
    out->pid = use.pid;
    out->timeStamp = now;
    out++->smUtil = use.percent;
  }
  return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetProcessesUtilizationInfo)(nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t* out) {
  std::vector<UseHistory::Use> uses;
  unsigned long long now = 0;
  nvmlReturn_t error;
  if (Find(handle, out != nullptr, &error) == nullptr) return error;
  if (out->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  error = Uses(handle, true, out->lastSeenTimeStamp, &uses, &now);
  if (error == NVML_ERROR_NOT_FOUND) out->processSamplesCount = 0;
  if (error != NVML_SUCCESS) return error;
  const bool fits = out->procUtilArray != nullptr && out->processSamplesCount >= uses.size();
  out->processSamplesCount = static_cast<unsigned>(uses.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  nvmlProcessUtilizationInfo_v1_t* to = out->procUtilArray;
  for (const UseHistory::Use& use : uses) {
    *to = {};
    to->timeStamp = now;
    to->pid = use.pid;
    to++->smUtil = use.percent;
  }
  return NVML_SUCCESS;
}
