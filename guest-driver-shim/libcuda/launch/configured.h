// SPDX-License-Identifier: Apache-2.0
// A launch that is told by a CUlaunchConfig.
#pragma once

#include "guest-driver-shim/libcuda/driver/streams.h"
#include "guest-driver-shim/libcuda/launch/launch_attributes.h"

namespace vgpud::cuda {

// cuLaunchKernelEx with `attributes`, which are checked, instead of the config's; in a capture it becomes a node.
CUresult LaunchWith(DefaultStream mode, const CUlaunchConfig_st& config, CUfunction function, void** parameters,
                    void** extra, const LaunchAttributes& attributes);

}  // namespace vgpud::cuda
