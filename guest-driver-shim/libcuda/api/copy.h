// SPDX-License-Identifier: Apache-2.0
// Copies between any two places, and fills.
#pragma once

#include "guest-driver-shim/libcuda/launch/submit.h"

namespace vgpud::cuda {

// kWait: returns when the bytes have arrived. kLater: in stream order, as far as CUDA allows.
enum class Finish { kWait, kLater };

// Unified addressing: where a pointer leads is what its address says.
CUresult CopyAnywhere(const Place& place, CUdeviceptr to, CUdeviceptr from, uint64_t bytes, Finish finish);

// Rows and slices between host memory, device memory and arrays (copy_rows.cc). In a capturing stream they are one
// node.
CUresult Copy3D(const Place& place, const CUDA_MEMCPY3D_st& copy, Finish finish);
NodeWork CopyWork(const CUDA_MEMCPY3D_st& copy);

// Rows of equal elements (fill.cc). In a capturing stream they are one node.
CUresult FillRows(const Current& current, uint32_t stream, const CUDA_MEMSET_NODE_PARAMS_st& fill);
NodeWork FillWork(const CUDA_MEMSET_NODE_PARAMS_st& fill);

}  // namespace vgpud::cuda
