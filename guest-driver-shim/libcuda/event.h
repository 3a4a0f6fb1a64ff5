// SPDX-License-Identifier: Apache-2.0
// Events: markers that the program names.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

CUresult StreamWaitsForEvent(const Current& current, uint32_t stream, CUevent event);

// CUDA_SUCCESS when all work submitted to the stream is done, CUDA_ERROR_NOT_READY otherwise. Does not wait for it.
CUresult QueryStream(const Current& current, uint32_t stream);

void DropEventsOf(CUcontext context);

}  // namespace vgpud::cuda
