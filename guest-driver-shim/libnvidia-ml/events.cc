// SPDX-License-Identifier: Apache-2.0
// Sets of events. A virtual function has none to put into them (nvmlDeviceRegisterEvents is not supported), so that who
// waits for one waits until its time is over.
#include <chrono>
#include <set>
#include <thread>

#include "guest-driver-shim/libnvidia-ml/library.h"

// Nothing: its address is the handle.
struct nvmlEventSet_st {};

namespace {

using vgpud::Mutex;
using vgpud::MutexLock;

Mutex sets_mutex{vgpud::nvml::lock_rank::kSets};
std::set<nvmlEventSet_t> sets GUARDED_BY(sets_mutex);

bool IsSet(nvmlEventSet_t set) {
  MutexLock lock(sets_mutex);
  return sets.contains(set);
}

nvmlReturn_t Wait(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  if (const nvmlReturn_t error = vgpud::nvml::Library::Get().Ready()) return error;
  if (data == nullptr || !IsSet(set)) return NVML_ERROR_INVALID_ARGUMENT;
  std::this_thread::sleep_for(std::chrono::milliseconds{timeout_ms});
  return NVML_ERROR_TIMEOUT;
}

}  // namespace

NVML_API(nvmlEventSetCreate)(nvmlEventSet_t* out) {
  if (const nvmlReturn_t error = vgpud::nvml::Library::Get().Ready()) return error;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  MutexLock lock(sets_mutex);
  *out = *sets.insert(new nvmlEventSet_st).first;
  return NVML_SUCCESS;
}

NVML_API(nvmlEventSetFree)(nvmlEventSet_t set) {
  if (const nvmlReturn_t error = vgpud::nvml::Library::Get().Ready()) return error;
  MutexLock lock(sets_mutex);
  if (sets.erase(set) == 0) return NVML_ERROR_INVALID_ARGUMENT;
  delete set;
  return NVML_SUCCESS;
}

NVML_API(nvmlEventSetWait)(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  return Wait(set, data, timeout_ms);
}
NVML_API(nvmlEventSetWait_v2)(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  return Wait(set, data, timeout_ms);
}
