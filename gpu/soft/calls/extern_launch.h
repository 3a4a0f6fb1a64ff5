// SPDX-License-Identifier: Apache-2.0
// The device runtime's functions for launches by kernels (cuda_device_runtime_api.h; the second version, whose names
// start with __cudaCDP2): entries of the table of extern_functions.cc.
#pragma once

#include <span>

#include "gpu/soft/calls/extern_functions.h"

namespace vgpud::soft {

std::span<const ExternFunction> LaunchFunctions();

}  // namespace vgpud::soft
