// SPDX-License-Identifier: Apache-2.0
// Events: markers that the program names.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

// `external`: in a capture, the wait is a node for whatever records the event when the graph runs.
CUresult StreamWaitsForEvent(const Current& current, uint32_t stream, CUevent event, bool external);
// May a launch record it (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and its like)?
CUresult CheckEventOfLaunch(const Current& current, CUevent event);
// cuEventRecord.
CUresult RecordEvent(DefaultStream mode, CUevent event, CUstream stream);
// What a node does that records the event, or waits for it.
CUresult EventWork(const Current& current, CUevent event, bool records, NodeWork* out);

// CUDA_SUCCESS when all work submitted to the stream is done, CUDA_ERROR_NOT_READY otherwise. Does not wait for it.
CUresult QueryStream(const Current& current, uint32_t stream);

void DropEventsOf(CUcontext context);

}  // namespace vgpud::cuda
