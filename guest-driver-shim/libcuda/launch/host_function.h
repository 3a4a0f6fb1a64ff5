// SPDX-License-Identifier: Apache-2.0
// Functions of the program that run in stream order: an event tells when the stream has come to one, a gate keeps the
// stream's later work back until it has returned.
#pragma once

#include <functional>

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

// Puts `function` into the stream. It is called once, on a thread of the driver, in the order of its stream, with
// CUDA_SUCCESS or with the error that has poisoned the context before the stream came to it. CUDA_ERROR_OUT_OF_MEMORY:
// the system has no thread for it. `takes_turn`: it is ours, and submits work (channel/turns.h).
CUresult EnqueueHostFunction(const Current& current, uint32_t stream, std::function<void(CUresult)> function,
                             bool takes_turn = false);
// The same as the work of a node: not called in a context that has failed.
NodeWork HostWork(const CUDA_HOST_NODE_PARAMS_st& host);

}  // namespace vgpud::cuda
