// SPDX-License-Identifier: Apache-2.0
// How stream-ordered work gets to the executor: a stream that is being captured records it, managed memory is
// exchanged.
#pragma once

#include "guest-driver-shim/libcuda/driver/streams.h"

namespace vgpud::cuda {

// Submits stream-ordered work: without waiting, unless CUDA_LAUNCH_BLOCKING=1.
CUresult Enqueue(const Current& current, const Command& command, std::span<const std::byte> payload = {});

// Waits for all earlier work of that stream.
CUresult SyncStream(const Current& current, uint32_t number);

// launch.cc: checks a launch and makes its entry; `stream` of it is the caller's.
CUresult MakeLaunch(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& kernel, Command* command,
                    std::vector<std::byte>* payload);
// fill.cc
CUresult FillRows(const Current& current, uint32_t stream, const CUDA_MEMSET_NODE_PARAMS_st& fill);

}  // namespace vgpud::cuda
