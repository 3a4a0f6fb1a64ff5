// SPDX-License-Identifier: Apache-2.0
// What the resource manager is asked with, beside what gpu/channels/rm_abi.h has. Facts of the open kernel modules
// (github.com/NVIDIA/open-gpu-kernel-modules, tags 535.261.03, 550.163.01, 555.58.02, which agree where nothing else
// is said):
//   kernel-open/common/inc/nv-ioctl.h, nv-ioctl-numa.h, nv-ioctl-numbers.h     CardInfo, Version, OsEvent; the escapes
//   from 200 on nv_escape.h, nvos.h, nv-unix-nvos-params-wrappers.h       the other escapes and what they take
//   alloc/alloc_channel.h                                     ChannelParams
//   ctrl/ctrl0000/*.h, ctrl0080/*.h, ctrl2080/*.h, ctrlc36f.h, ctrl906f.h    the controls
// compare_kernel_side.cc compares those with the headers that Debian has; of the others it has none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/channels/rm_abi.h"

namespace vgpud::kernel_side {

enum Escape : uint32_t {
  kAllocMemory = 0x27,
  kFree = rm::kFreeEscape,
  kControl = rm::kControlEscape,
  kAlloc = rm::kAllocEscape,
  kDupObject = 0x34,
  kShare = 0x35,
  kVidHeapControl = 0x4a,
  kMapMemory = 0x4e,
  kUnmapMemory = 0x4f,
  kMapMemoryDma = 0x57,
  kUnmapMemoryDma = 0x58,
  kUpdateMapping = 0x5e,
  kCardInfo = 200,
  kRegisterFd = 201,
  kAllocOsEvent = 206,
  kFreeOsEvent = 207,
  kStatusCode = 209,
  kCheckVersion = 210,
  kTransfer = 211,
  kAttachGpus = 212,
  kSysParams = 214,
  kNumaInfo = 215,
  kWaitOpenComplete = 218,
};

struct CardInfo {
  uint8_t valid, pad0[3];
  uint32_t domain;
  uint8_t bus, slot, function, pad1;
  uint16_t vendor, device;
  uint32_t gpu_id;
  uint16_t interrupt_line, pad2;
  uint64_t registers_address, registers_bytes, memory_address, memory_bytes;
  uint32_t minor;
  uint8_t name[10], pad3[2];
};
static_assert(sizeof(CardInfo) == 72 && offsetof(CardInfo, gpu_id) == 16 && offsetof(CardInfo, minor) == 56);
inline constexpr size_t kMostCardInfos = 32;

struct Version {
  uint32_t command, reply;
  char text[64];
};
static_assert(sizeof(Version) == 72);
inline constexpr uint32_t kVersionRecognized = 1;

// kTransfer: another escape whose bytes are elsewhere.
struct Transfer {
  uint32_t escape, bytes;
  uint64_t at;
};

struct OsEvent {
  uint32_t client, device, fd, status;
};

struct StatusCode {
  uint32_t domain;
  uint8_t bus, slot, pad[2];
  uint32_t status;
};

struct NumaInfo {
  int32_t node, status;
};

struct WaitOpenComplete {
  int32_t error;
  uint32_t adapter_status;
};

// NVOS02, and behind it a descriptor.
struct AllocMemory {
  uint32_t root, parent, object, kind, flags, pad0;
  uint64_t address, limit;
  uint32_t status, pad1;
  int32_t fd;
  uint32_t pad2;
};
static_assert(sizeof(AllocMemory) == 56 && offsetof(AllocMemory, fd) == 48);

// NVOS33, and behind it the file through which it will be mapped.
struct MapMemory {
  uint32_t client, device, memory, pad0;
  uint64_t offset, bytes, address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t pad1;
};
static_assert(sizeof(MapMemory) == 56 && offsetof(MapMemory, fd) == 48);

struct UnmapMemory {  // NVOS34
  uint32_t client, device, memory, pad;
  uint64_t address;
  uint32_t status, flags;
};
static_assert(sizeof(UnmapMemory) == 32);

struct MapMemoryDma {  // NVOS46
  uint32_t client, device, dma, memory;
  uint64_t offset, bytes;
  uint32_t flags, pad0;
  uint64_t address;
  uint32_t status, pad1;
};
static_assert(sizeof(MapMemoryDma) == 56 && offsetof(MapMemoryDma, address) == 40);

struct UnmapMemoryDma {  // NVOS47; 535 has no bytes, and its status there
  uint32_t client, device, dma, memory, flags, pad;
  uint64_t address, bytes;
  uint32_t status;
};
static_assert(offsetof(UnmapMemoryDma, status) == 40);
inline constexpr size_t kOldUnmapStatus = 32;

struct DupObject {  // NVOS55
  uint32_t client, parent, object, from_client, from_object, flags, status;
};
static_assert(sizeof(DupObject) == 28);

struct UpdateMapping {  // NVOS56
  uint32_t client, device, memory, pad0;
  uint64_t old_address, new_address;
  uint32_t status, pad1;
};
static_assert(sizeof(UpdateMapping) == 40);

struct Share {  // NVOS57
  uint32_t client, object;
  uint8_t policy[12];
  uint32_t status;
};
static_assert(sizeof(Share) == 24);

// NVOS32, which 535 uses, with the form of its functions kAllocateSize and kFreeMemory.
struct VidHeap {
  uint32_t root, parent, function, va_space;
  int16_t heap;
  uint16_t pad0;
  uint32_t status;
  uint64_t total, free;
  uint32_t owner, memory, type, flags, attributes, format, compression, zcull, stride, width, height, pad1;
  uint64_t bytes, alignment, offset, limit, address, range_begin, range_end;
};
static_assert(offsetof(VidHeap, status) == 20 && offsetof(VidHeap, bytes) == 88);
inline constexpr size_t kVidHeapBytes = 184;
inline constexpr uint32_t kAllocateSize = 2, kFreeMemory = 3, kVirtualFlag = 0x80000;

// What objects are made with.
struct MemoryParams {
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attributes, attributes2, format, compression, zcull, pad0;
  uint64_t range_low, range_high, bytes, alignment, offset, limit, address;
  uint32_t tag_offset, va_space;
};
static_assert(offsetof(MemoryParams, bytes) == 64 && offsetof(MemoryParams, limit) == 88);

struct DescriptorMemoryParams {  // NV_OS_DESC_MEMORY_ALLOCATION_PARAMS
  uint32_t type, flags, attributes, attributes2;
  uint64_t descriptor, limit;
  uint32_t descriptor_type, tag;
};
static_assert(sizeof(DescriptorMemoryParams) == 40);

struct EventParams {  // NV0005
  uint32_t parent_client, source, kind, notify_index;
  uint64_t fd;
};
static_assert(sizeof(EventParams) == 24);

struct DeviceParams {  // NV0080
  uint32_t device, client_share, target_client, target_device, flags, pad0;
  uint64_t va_bytes, va_start, va_limit;
  uint32_t va_mode, pad1;
};
static_assert(sizeof(DeviceParams) == 56);

struct VaSpaceParams {
  uint32_t index, flags;
  uint64_t bytes, start, limit;
  uint32_t big_page, pad;
  uint64_t base;
};
static_assert(sizeof(VaSpaceParams) == 48);

struct ChannelGroupParams {
  uint32_t error, ecc_error, va_space, engine;
};

struct ContextShareParams {  // NV_CTXSHARE_ALLOCATION_PARAMETERS
  uint32_t va_space, flags, id;
};

struct ChannelParams {
  uint32_t error, buffer;
  uint64_t fifo;
  uint32_t entries, flags, context_share, va_space, userd_memory[8];
  uint64_t userd_offset[8];
  uint32_t engine;
};
static_assert(offsetof(ChannelParams, userd_offset) == 64 && offsetof(ChannelParams, engine) == 128);

}  // namespace vgpud::kernel_side
