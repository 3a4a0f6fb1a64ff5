// SPDX-License-Identifier: Apache-2.0
// Instances of a GPU that is divided by MIG (NVIDIA's "Multi-Instance GPU" user guide, "CUDA Device Enumeration"): a
// process sees one of them, and as a device of its own.
#pragma once

#include <string>

#include "gpu/cuda/driver_api.h"

namespace vgpud::driver {

// "MIG-0a1b2c3d-..." rather than the address of a card.
bool IsMigName(const std::string& name);

// Before Api::Init: the one device that this process will have is the instance of that name.
void SeeOnlyMig(const std::string& name);

// The name of the instance that `device` is; empty: it is a whole card.
std::string MigNameOf(const Api& api, Device device);

// `device` is the instance `name`, whatever the case of its letters.
bool IsMig(const Api& api, Device device, const std::string& name);

}  // namespace vgpud::driver
