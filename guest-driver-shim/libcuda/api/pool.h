// SPDX-License-Identifier: Apache-2.0
// Memory pools: stream-ordered allocation on top of device memory. A freed block stays in its pool, and serves the next
// allocation that may have it, until a synchronisation finds more idle bytes than the pool's release threshold.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Gives memory of the device's pools back to the device: what is idle beyond each pool's threshold and no stream uses.
// Called after synchronisations; cheap when there is nothing to do.
void TrimPools(Device* device);

// The block of an allocation (`lease`: its Device::Allocation::pool) was freed with cuMemFree, after all work on the
// device: it may be used at once.
void ReturnToPool(std::shared_ptr<MemoryPool> lease, CUdeviceptr address, uint64_t bytes);

CUmemoryPool HandleOf(const MemoryPool& pool);

}  // namespace vgpud::cuda
