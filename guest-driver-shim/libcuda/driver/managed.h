// SPDX-License-Identifier: Apache-2.0
// Managed memory: one address for the host and for kernels, as devices without concurrent managed access have it. The
// host has its own copy of the bytes at the device address; what changed is exchanged when work is submitted and when
// the host has waited for it.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

CUresult AllocManaged(const Current& current, CUdeviceptr* out, size_t bytes);
// The device address that the allocation at `address` began with, 0 if it is not managed; the host's side is gone.
CUdeviceptr ForgetManaged(Device* device, CUdeviceptr address);
void DropManagedOf(const Context* context);
// A __managed__ variable, whose memory is its module's: gives the host its side. ForgetManagedVariable when the module
// goes.
CUresult AdoptManagedVariable(Device* device, CUdeviceptr address, uint64_t bytes);
void ForgetManagedVariable(Device* device, CUdeviceptr address);
bool IsManaged(CUdeviceptr address);

// Before work is submitted: what the host has written goes to the device. Cheap when there is no managed memory.
CUresult PublishManaged(const Current& current);
// After the host has waited for work: what the device has written comes back. `all_is_done`: nothing else is running.
CUresult FetchManaged(const Current& current, bool all_is_done);

}  // namespace vgpud::cuda
