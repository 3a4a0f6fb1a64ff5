// SPDX-License-Identifier: Apache-2.0
// Tensor maps for kernels of a card: only its driver knows their layout.
#pragma once

#include "gpu/cuda/card.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::driver {

// As TensorMapMaker::EncodeTensorMap. Addresses in maps are checked by nobody: a kernel that uses one reaches what its
// context reaches. Any thread.
[[nodiscard]] GpuResult<void> EncodeTensorMap(const Card& card, vgpu_tensor_map_request& request);

}  // namespace vgpud::driver
