// SPDX-License-Identifier: Apache-2.0
// A GPU whose tensor maps are made by its driver, not by the guest.
#pragma once

#include "gpu/gpu.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud {

class TensorMapMaker {
 public:
  virtual ~TensorMapMaker() = default;
  // Fills in request.map, which kernels of this GPU read; the numbers in `request` are a guest's. kInvalidValue.
  virtual GpuResult<void> EncodeTensorMap(vgpu_tensor_map_request& request) = 0;
};

}  // namespace vgpud
