// SPDX-License-Identifier: Apache-2.0
// cuLaunchKernelEx: a kernel, and the events that its launch records.
#include <cstring>
#include <vector>

#include "guest-driver-shim/libcuda/api/event.h"
#include "guest-driver-shim/libcuda/launch/launch.h"

namespace {

using namespace vgpud::cuda;

CUresult ReadAttributes(const CUlaunchConfig_st& config, LaunchAttributes* out) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    AttributeValue value;
    memcpy(value.data(), config.attrs[i].value, value.size());
    if (const CUresult error = CheckAttribute(AttributeOf::kLaunch, config.attrs[i].id, value)) return error;
    (*out)[config.attrs[i].id] = value;
  }
  return CUDA_SUCCESS;
}

// CUlaunchAttributeValue: programmaticEvent, and launchCompletionEvent, which begins as it does.
struct EventOfLaunch {
  CUevent event;
  int flags;
};

// Takes the events that the launch records out of `attributes`.
CUresult TakeEvents(LaunchAttributes* attributes, std::vector<CUevent>* events) {
  for (const int id : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}) {
    const auto found = attributes->find(id);
    if (found == attributes->end()) continue;
    EventOfLaunch told;
    memcpy(&told, found->second.data(), sizeof told);
    attributes->erase(found);
    const Current current = CurrentContext();
    if (current.error != CUDA_SUCCESS) return current.error;
    if (told.flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = CheckEventOfLaunch(current, told.event)) return error;
    events->push_back(told.event);
  }
  return CUDA_SUCCESS;
}

CUresult LaunchConfigured(DefaultStream mode, const CUlaunchConfig_st* config, CUfunction function, void** parameters,
                          void** extra) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  LaunchAttributes attributes;
  if (const CUresult error = ReadAttributes(*config, &attributes)) return error;
  std::vector<CUevent> events;
  if (const CUresult error = TakeEvents(&attributes, &events)) return error;
  CUresult result = LaunchWith(mode, *config, function, parameters, extra, attributes);
  for (const CUevent event : events)
    if (result == CUDA_SUCCESS) result = RecordEvent(mode, event, config->hStream);
  return result;
}

}  // namespace

CU_TWINS(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, LaunchConfigured,
         (const CUlaunchConfig_st* config, CUfunction f, void** parameters, void** extra),
         (config, f, parameters, extra))
