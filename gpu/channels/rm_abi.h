// SPDX-License-Identifier: Apache-2.0
// Numbers and layouts of the resource manager's ioctls that NVIDIA promises to nobody. All of them are facts of the
// open kernel modules (github.com/NVIDIA/open-gpu-kernel-modules, tag 580.142; 580.65.06 to 580.142 agree):
//   nvos.h                             RmControl (NVOS54), RmAlloc (NVOS64), RmFree (NVOS00); nv_escape.h: the escapes
//   ctrl/ctrl2080/ctrl2080fifo.h       DisableChannels        ctrl/ctrla06c.h   Preempt, Schedule, timeslices
//   ctrl/ctrl2080/ctrl2080gr.h         SwitchStatistics       nvstatuscodes.h   RmStatus
//   class/cla06c.h, clc86f.h and the like                     classes
//   kernel-open/nvidia-uvm/uvm_linux_ioctl.h, uvm_types.h     UvmInitialize
// tests/first_contact/compare.cc compares them with the headers that Debian has.
// No other file of vgpud has such a number. The build option rm_controls leaves their use out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpud::rm {

struct RmControl {
  uint32_t client, object, command, flags;
  uint64_t params;
  uint32_t params_bytes, status;
};
static_assert(sizeof(RmControl) == 32 && offsetof(RmControl, status) == 28);

// The 48 bytes form; that of 32 bytes has its status at 28 and no rights.
struct RmAlloc {
  uint32_t root, parent, object, kind;
  uint64_t params, rights;
  uint32_t params_bytes, flags, status, pad;
};
static_assert(sizeof(RmAlloc) == 48 && offsetof(RmAlloc, status) == 40);
inline constexpr size_t kShortAllocBytes = 32, kShortAllocStatus = 28;

struct RmFree {
  uint32_t root, parent, object, status;
};
static_assert(sizeof(RmFree) == 16);

constexpr unsigned long Escape(unsigned number, size_t bytes) {
  return 3ul << 30 | static_cast<unsigned long>(bytes) << 16 | 'F' << 8 | number;  // _IOWR
}
constexpr unsigned EscapeOf(unsigned long request) { return request & 0xff; }
constexpr bool IsEscape(unsigned long request) { return request >> 30 == 3 && (request >> 8 & 0xff) == 'F'; }
constexpr size_t BytesOf(unsigned long request) { return request >> 16 & 0x3fff; }
inline constexpr unsigned kFreeEscape = 0x29, kControlEscape = 0x2a, kAllocEscape = 0x2b;
inline constexpr unsigned long kControlRequest = Escape(kControlEscape, sizeof(RmControl));
inline constexpr unsigned long kAllocRequest = Escape(kAllocEscape, sizeof(RmAlloc));
inline constexpr unsigned long kShortAllocRequest = Escape(kAllocEscape, kShortAllocBytes);
inline constexpr unsigned long kFreeRequest = Escape(kFreeEscape, sizeof(RmFree));

enum class Command : uint32_t {
  kSchedule = 0xa06c0101,
  kSetTimeslice = 0xa06c0103,
  kGetTimeslice = 0xa06c0104,
  kPreempt = 0xa06c0105,
  kGroupInfo = 0xa06c0106,
  kDisableChannels = 0x2080110b,
  kSwitchStatistics = 0x20801215,
};

inline constexpr uint32_t kMostChannels = 64;  // of one DisableChannels
struct DisableChannels {
  uint8_t disable, pad0[3];
  uint32_t count;
  uint8_t only_scheduling, rewind, pad1[6];
  uint64_t event;  // 0; anything else is for the kernel only
  uint32_t clients[kMostChannels], channels[kMostChannels];
};
static_assert(sizeof(DisableChannels) == 536 && offsetof(DisableChannels, channels) == 280);

struct Preempt {
  uint8_t wait, manual_timeout, pad[2];
  uint32_t timeout_us;
};
static_assert(sizeof(Preempt) == 8);
inline constexpr uint32_t kMostPreemptUs = 1'000'000;

// bEnable, bSkipSubmit and, from 575 on, bSkipEnable.
inline constexpr size_t kScheduleBytes = 3, kOldScheduleBytes = 2;

struct SwitchStatistics {
  uint32_t group, flags, saves, restores, by_wait, by_block, by_instruction, graphics;
};
static_assert(sizeof(SwitchStatistics) == 32);

// What the resource manager says of a call: NV_ERR_BUSY_RETRY and so on.
enum class RmStatus : uint32_t {
  kOk = 0,
  kBusyRetry = 0x03,
  kGpuIsLost = 0x0f,
  kGpuInFullchipReset = 0x10,
  kGpuNotFullPower = 0x11,
  kGpuUuidNotFound = 0x12,
  kInUse = 0x17,
  kInsufficientResources = 0x1a,
  kInsufficientPermissions = 0x1b,
  kInvalidArgument = 0x1f,
  kInvalidChannel = 0x21,
  kInvalidClass = 0x22,
  kInvalidClient = 0x23,
  kInvalidCommand = 0x24,
  kInvalidLimit = 0x2e,
  kInvalidObject = 0x31,
  kInvalidObjectHandle = 0x33,
  kInvalidObjectParent = 0x36,
  kInvalidParamStruct = 0x3a,
  kInvalidPointer = 0x3d,
  kInvalidState = 0x40,
  kNoMemory = 0x51,
  kNotSupported = 0x56,
  kObjectNotFound = 0x57,
  kOperatingSystem = 0x59,
  kResetRequired = 0x62,
  kStateInUse = 0x63,
  kTimeout = 0x65,
  kTimeoutRetry = 0x66,
  kGeneric = 0xffff,
};

// nvidia-uvm.ko, whose requests are plain numbers: what a process asks for before all else.
inline constexpr unsigned long kUvmInitializeRequest = 0x30000001;
struct UvmInitialize {
  uint64_t flags;
  uint32_t status;
};
static_assert(sizeof(UvmInitialize) == 16 && offsetof(UvmInitialize, status) == 8);
// The GPU reaches no memory of the process that the process has not given it.
inline constexpr uint64_t kUvmDisableHmm = 1;

// Classes: a channel group, a subdevice; and by their low byte channels (xx6f) and compute objects (xxc0, from Volta
// on).
inline constexpr uint32_t kGroupClass = 0xa06c, kSubdeviceClass = 0x2080, kDeviceClass = 0x80, kClientClass = 0x41;
constexpr bool IsChannel(uint32_t kind) { return (kind & 0xff) == 0x6f && kind >= 0xa06f; }
constexpr bool IsCompute(uint32_t kind) { return (kind & 0xff) == 0xc0 && kind >= 0xc3c0; }
inline constexpr size_t kGroupEngineOffset = 12;  // in the parameters of a group's allocation

}  // namespace vgpud::rm
