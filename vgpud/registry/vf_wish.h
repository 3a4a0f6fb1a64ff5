// SPDX-License-Identifier: Apache-2.0
// A new VF as a client asks for it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "vgpud/host/shares.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/profiles.h"
#include "vgpud/model/vf_spec.h"

namespace vgpud::daemon {

// What its profile means depends on the GPU.
struct VfWish {
  VfSpec spec;  // as it would be on the first GPU
  std::function<ApiResult<VfSpec>(const Profiles&)> on;
  // Of one that waits: why it may not be made any more.
  std::function<std::optional<ApiError>()> why_not = [] { return std::optional<ApiError>(); };
  // Who asks for it: has its place while it waits.
  Sharer whose = {};
  std::string by = {};  // who asks for it, for the chronicle
};

}  // namespace vgpud::daemon
