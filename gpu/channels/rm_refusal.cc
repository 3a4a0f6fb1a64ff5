// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/rm_refusal.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "gpu/channels/rm_abi.h"

namespace vgpud::rm {
namespace {

// What they mean for the controls that are used here.
constexpr struct {
  RmStatus status;
  const char* name;
  const char* words;
  Then then;
} kStatuses[] = {
    {RmStatus::kBusyRetry, "BUSY_RETRY", "the driver was busy", Then::kRetry},
    {RmStatus::kGpuIsLost, "GPU_IS_LOST",
     "the GPU has fallen off its bus; see the kernel log for Xid 79, 119, 120 or 154", Then::kLost},
    {RmStatus::kGpuInFullchipReset, "GPU_IN_FULLCHIP_RESET", "the GPU is being reset", Then::kLost},
    {RmStatus::kGpuNotFullPower, "GPU_NOT_FULL_POWER", "the GPU is asleep", Then::kRetry},
    {RmStatus::kGpuUuidNotFound, "GPU_UUID_NOT_FOUND", "the GPU is not there any more", Then::kLost},
    {RmStatus::kInUse, "IN_USE", "somebody else has it", Then::kRetry},
    {RmStatus::kInsufficientResources, "INSUFFICIENT_RESOURCES", "the driver has no memory for it", Then::kRetry},
    {RmStatus::kInsufficientPermissions, "INSUFFICIENT_PERMISSIONS",
     "this control is for the kernel, for root or for CAP_SYS_NICE, or an event was asked for", Then::kOtherWay},
    {RmStatus::kInvalidArgument, "INVALID_ARGUMENT",
     "the parameters have another size in this driver (2 bytes up to 570, 3 from 575 on for scheduling), a timeout "
     "above "
     "one second, or more than 64 channels",
     Then::kOtherWay},
    {RmStatus::kInvalidChannel, "INVALID_CHANNEL", "the channel is gone", Then::kLook},
    {RmStatus::kInvalidClass, "INVALID_CLASS", "this driver does not know the class", Then::kOtherWay},
    {RmStatus::kInvalidClient, "INVALID_CLIENT",
     "the handle belongs to another open file, or its owner is gone; the file of the executor itself is needed",
     Then::kLook},
    {RmStatus::kInvalidCommand, "INVALID_COMMAND", "this driver does not know the control", Then::kOtherWay},
    {RmStatus::kInvalidLimit, "INVALID_LIMIT", "a value is out of range", Then::kOtherWay},
    {RmStatus::kInvalidObject, "INVALID_OBJECT", "the handle is of an object that does not take this control",
     Then::kLook},
    {RmStatus::kInvalidObjectHandle, "INVALID_OBJECT_HANDLE", "there is no object of that handle any more",
     Then::kLook},
    {RmStatus::kInvalidObjectParent, "INVALID_OBJECT_PARENT", "the object is not below the one that was named",
     Then::kLook},
    {RmStatus::kInvalidParamStruct, "INVALID_PARAM_STRUCT", "the parameters have another layout in this driver",
     Then::kOtherWay},
    {RmStatus::kInvalidPointer, "INVALID_POINTER", "the parameters can't be read", Then::kOtherWay},
    {RmStatus::kInvalidState, "INVALID_STATE",
     "the channel is not bound yet, or the driver is taking it down after an error", Then::kLook},
    {RmStatus::kNoMemory, "NO_MEMORY", "the driver has no memory for it", Then::kRetry},
    {RmStatus::kNotSupported, "NOT_SUPPORTED", "this driver, or the firmware of this GPU, does not do it",
     Then::kOtherWay},
    {RmStatus::kObjectNotFound, "OBJECT_NOT_FOUND", "there is no object of that handle any more", Then::kLook},
    {RmStatus::kOperatingSystem, "OPERATING_SYSTEM", "the kernel refused it; see the kernel log", Then::kOtherWay},
    {RmStatus::kResetRequired, "RESET_REQUIRED", "the GPU has to be reset; see the kernel log for Xid 119, 120 or 154",
     Then::kLost},
    {RmStatus::kStateInUse, "STATE_IN_USE", "somebody else is changing it", Then::kRetry},
    {RmStatus::kTimeout, "TIMEOUT",
     "the work did not leave the GPU in time: it waits for a page, it may not be stopped in the middle, or it hangs",
     Then::kKill},
    {RmStatus::kTimeoutRetry, "TIMEOUT_RETRY", "the work has not left the GPU yet", Then::kRetry},
    {RmStatus::kGeneric, "GENERIC", "the driver does not say why; see the kernel log", Then::kOtherWay},
};
// What a status is preset to: the call came back without writing one.
constexpr uint32_t kNotWritten = 0xffffffff;

constexpr struct {
  int error;
  const char* words;
  Then then;
} kErrors[] = {
    {EINVAL, "the request has another size in this driver, the file is not its control device, or the GPU is lost",
     Then::kOtherWay},
    {EIO, "the driver has no device behind this file", Then::kLost},
    {ENODEV, "the driver has no device behind this file", Then::kLost},
    {EFAULT, "the parameters can't be read", Then::kOtherWay},
    {ENOMEM, "the kernel has no memory for it", Then::kRetry},
    {EINTR, "a signal came in between", Then::kRetry},
    {EPERM, "this process may not use the file", Then::kOtherWay},
    {EACCES, "this process may not use the file", Then::kOtherWay},
    {ENOTTY, "this is no file of NVIDIA's driver", Then::kOtherWay},
    {EBADF, "the executor has closed the file", Then::kLook},
};

}  // namespace

Then WhatThen(const Answer& answer) {
  if (answer.ok()) return Then::kNothing;
  if (answer.error != 0) {
    for (const auto& row : kErrors)
      if (row.error == answer.error) return row.then;
    return Then::kOtherWay;
  }
  for (const auto& row : kStatuses)
    if (static_cast<uint32_t>(row.status) == answer.status) return row.then;
  return Then::kOtherWay;
}

std::string Words(const Answer& answer) {
  if (answer.ok()) return "ok";
  if (answer.error != 0) {
    for (const auto& row : kErrors)
      if (row.error == answer.error) return fmt::format("ioctl: {}: {}", std::strerror(answer.error), row.words);
    return fmt::format("ioctl: {}", std::strerror(answer.error));
  }
  if (answer.status == kNotWritten) return "the driver came back without a status";
  for (const auto& row : kStatuses)
    if (static_cast<uint32_t>(row.status) == answer.status)
      return fmt::format("{} (0x{:x}): {}", row.name, answer.status, row.words);
  return fmt::format("status 0x{:x}, which is in no table of ours: nvstatuscodes.h of this driver has its name",
                     answer.status);
}

}  // namespace vgpud::rm
