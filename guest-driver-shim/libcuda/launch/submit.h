// SPDX-License-Identifier: Apache-2.0
// How stream-ordered work gets to the executor: a stream that is being captured records it, managed memory is
// exchanged.
#pragma once

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

// Submits stream-ordered work: without waiting, unless CUDA_LAUNCH_BLOCKING=1. In a capturing stream it becomes a node
// that does not tell its parameters: work that has some goes to the capture before.
CUresult Enqueue(const Current& current, const Command& command, std::span<const std::byte> payload = {});

// Waits for all earlier work of that stream.
CUresult SyncStream(const Current& current, uint32_t number);

}  // namespace vgpud::cuda
