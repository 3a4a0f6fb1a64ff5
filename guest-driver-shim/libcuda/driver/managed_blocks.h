// SPDX-License-Identifier: Apache-2.0
// Managed memory: one address for the host and for kernels. Where the device shares memory (shared_memory.h) it is the
// same memory for both. Where it does not, the host has its own copy of the bytes at the device address, as with
// devices without concurrent managed access; what changed is exchanged when work is submitted and when the host has
// waited for it.
#pragma once

#include <optional>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

CUresult AllocManaged(const Current& current, CUdeviceptr* out, size_t bytes);
// Frees the allocation at `address` when all work is done; nullopt: it is not managed.
std::optional<CUresult> FreeManaged(const Current& current, CUdeviceptr address);
void DropManagedOf(const Context* context);
// A __managed__ variable, whose memory is its module's: gives the host its side, unless it is `shared` with the host
// already. ForgetManagedVariable when the module goes.
CUresult AdoptManagedVariable(Device* device, CUdeviceptr address, uint64_t bytes, bool shared);
void ForgetManagedVariable(Device* device, CUdeviceptr address);
// Does [address, address + bytes) lie in one of them?
bool IsManaged(CUdeviceptr address, uint64_t bytes = 1);

// Before work is submitted: what the host has written goes to the device. Cheap when there is no managed memory.
CUresult PublishManaged(const Current& current);
// After the host has waited for work: what the device has written comes back. `all_is_done`: nothing else is running.
CUresult FetchManaged(const Current& current, bool all_is_done);

}  // namespace vgpud::cuda
