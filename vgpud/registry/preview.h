// SPDX-License-Identifier: Apache-2.0
// What a change of settings would do.
#pragma once

#include "vgpud/model/api_error.h"
#include "vgpud/model/settings.h"
#include "vgpud/registry/served_gpus.h"

namespace vgpud::daemon {

// What is different when `after` takes the place of `before` on `gpu`, as `patch` wants, or why it may not.
inline ApiResult<Difference> Preview(const ServedGpus& gpus, const ServedGpu& gpu, const Settings& before,
                                     const Settings& after, const SettingsPatch& patch) {
  if (const auto ok = CheckChange(before, after, gpu.thread().switch_cost()); !ok)
    return ApiFail(ErrorKind::kConflict, ok.error().context, FieldToBlame(ok.error(), patch));
  Difference difference = Compare(before, after);
  if (!gpus.several()) return difference;
  for (auto* list : {&difference.changes, &difference.effects})
    for (Change& change : *list) change.gpu = gpu.name();
  return difference;
}

}  // namespace vgpud::daemon
