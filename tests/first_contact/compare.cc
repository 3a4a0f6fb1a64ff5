// SPDX-License-Identifier: Apache-2.0
// What gpu/channels and the jail take for granted of NVIDIA's kernel modules, against the modules' own headers. Never
// linked: numbers_test.py compiles it against each version of them that tests/first_contact/fetch has fetched.
#include <nv-ioctl-numbers.h>
#include <nvstatus.h>
#include <nvtypes.h>
#include <uvm_linux_ioctl.h>

#include "gpu/channels/rm_abi.h"

// clc86f.h and its neighbours have macros of the same names; a class is the last one that is defined in them.
#include <clc36f.h>
#include <clc46f.h>
#include <clc56f.h>
#include <clc86f.h>

namespace vgpud::rm {

#define SAME_STATUS(ours, theirs) static_assert(static_cast<uint32_t>(RmStatus::ours) == (theirs))
SAME_STATUS(kOk, NV_OK);
SAME_STATUS(kBusyRetry, NV_ERR_BUSY_RETRY);
SAME_STATUS(kGpuIsLost, NV_ERR_GPU_IS_LOST);
SAME_STATUS(kGpuInFullchipReset, NV_ERR_GPU_IN_FULLCHIP_RESET);
SAME_STATUS(kGpuNotFullPower, NV_ERR_GPU_NOT_FULL_POWER);
SAME_STATUS(kGpuUuidNotFound, NV_ERR_GPU_UUID_NOT_FOUND);
SAME_STATUS(kInUse, NV_ERR_IN_USE);
SAME_STATUS(kInsufficientResources, NV_ERR_INSUFFICIENT_RESOURCES);
SAME_STATUS(kInsufficientPermissions, NV_ERR_INSUFFICIENT_PERMISSIONS);
SAME_STATUS(kInvalidArgument, NV_ERR_INVALID_ARGUMENT);
SAME_STATUS(kInvalidChannel, NV_ERR_INVALID_CHANNEL);
SAME_STATUS(kInvalidClass, NV_ERR_INVALID_CLASS);
SAME_STATUS(kInvalidClient, NV_ERR_INVALID_CLIENT);
SAME_STATUS(kInvalidCommand, NV_ERR_INVALID_COMMAND);
SAME_STATUS(kInvalidLimit, NV_ERR_INVALID_LIMIT);
SAME_STATUS(kInvalidObject, NV_ERR_INVALID_OBJECT);
SAME_STATUS(kInvalidObjectHandle, NV_ERR_INVALID_OBJECT_HANDLE);
SAME_STATUS(kInvalidObjectParent, NV_ERR_INVALID_OBJECT_PARENT);
SAME_STATUS(kInvalidParamStruct, NV_ERR_INVALID_PARAM_STRUCT);
SAME_STATUS(kInvalidPointer, NV_ERR_INVALID_POINTER);
SAME_STATUS(kInvalidState, NV_ERR_INVALID_STATE);
SAME_STATUS(kNoMemory, NV_ERR_NO_MEMORY);
SAME_STATUS(kNotSupported, NV_ERR_NOT_SUPPORTED);
SAME_STATUS(kObjectNotFound, NV_ERR_OBJECT_NOT_FOUND);
SAME_STATUS(kOperatingSystem, NV_ERR_OPERATING_SYSTEM);
SAME_STATUS(kResetRequired, NV_ERR_RESET_REQUIRED);
SAME_STATUS(kStateInUse, NV_ERR_STATE_IN_USE);
SAME_STATUS(kTimeout, NV_ERR_TIMEOUT);
SAME_STATUS(kTimeoutRetry, NV_ERR_TIMEOUT_RETRY);
SAME_STATUS(kGeneric, NV_ERR_GENERIC);

static_assert(NV_IOCTL_MAGIC == 'F' && IsEscape(Escape(NV_IOCTL_BASE, 16)));

static_assert(kUvmInitializeRequest == UVM_INITIALIZE && kUvmDisableHmm == UVM_INIT_FLAGS_DISABLE_HMM);
static_assert(sizeof(UvmInitialize) == sizeof(UVM_INITIALIZE_PARAMS));
static_assert(offsetof(UvmInitialize, flags) == offsetof(UVM_INITIALIZE_PARAMS, flags));
static_assert(offsetof(UvmInitialize, status) == offsetof(UVM_INITIALIZE_PARAMS, rmStatus));

static_assert(IsChannel(VOLTA_CHANNEL_GPFIFO_A) && IsChannel(TURING_CHANNEL_GPFIFO_A));
static_assert(IsChannel(AMPERE_CHANNEL_GPFIFO_A) && IsChannel(HOPPER_CHANNEL_GPFIFO_A));

}  // namespace vgpud::rm
