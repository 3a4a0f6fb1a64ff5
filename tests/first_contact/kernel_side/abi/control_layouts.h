// SPDX-License-Identifier: Apache-2.0
// The controls of the resource manager that are answered with something, and what they take: as in rm_layouts.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpud::kernel_side {

// Pairs of an index and a value, the index set by whoever asks.
struct Info {
  uint32_t index, value;
};

struct BuildVersion {
  uint32_t string_bytes, pad;
  uint64_t driver, version, title;
  uint32_t changelist, official_changelist;
};
static_assert(sizeof(BuildVersion) == 40);

struct GpuIdInfo {
  uint32_t gpu_id, flags, device, subdevice;
  uint64_t name;
  uint32_t sli, board, gpu;
  int32_t numa;
};
static_assert(sizeof(GpuIdInfo) == 40);

struct GpuIdInfo2 {
  uint32_t gpu_id, flags, device, subdevice, sli, board, gpu;
  int32_t numa;
};
static_assert(sizeof(GpuIdInfo2) == 32);

struct AddressSpaceType {
  uint32_t object, flags, type;
};

struct ArchInfo {
  uint32_t architecture, implementation, revision;
  uint8_t subrevision;
};
static_assert(sizeof(ArchInfo) == 16);

struct GidInfo {
  uint32_t index, flags, bytes;
  uint8_t data[256];
};
static_assert(sizeof(GidInfo) == 268);

struct NameString {
  uint32_t flags;
  char name[64];
};

struct PciInfo {
  uint32_t device, subsystem, revision, extended_device;
};

// A list elsewhere, or behind its count.
struct InfoList {
  uint32_t count, pad;
  uint64_t at;
};

struct GpcMask {
  uint64_t route[2];
  uint32_t mask;
};
static_assert(offsetof(GpcMask, mask) == 16);

struct TpcMask {
  uint64_t route[2];
  uint32_t gpc, mask;
};
static_assert(offsetof(TpcMask, mask) == 20);

struct SmOrder {
  struct Sm {
    uint16_t gpc, local_tpc, local_sm, global_tpc, virtual_gpc, migratable_tpc;
  } sms[512];
  uint16_t sm_count, tpc_count;
};
static_assert(offsetof(SmOrder, sm_count) == 6144);

struct CopyCaps {
  uint32_t engine;
  uint8_t caps[2];
};

struct EngineClasses {
  uint32_t engine, count;
  uint64_t at;
};

struct ChannelNumbers {
  uint32_t count, pad;
  uint64_t handles, numbers;
};

struct ClassEngine {
  uint32_t object, class_engine, class_id, engine;
};

// What the processors of a card say of an error.
struct SmErrors {
  uint32_t channel, count;
  struct {
    uint32_t global, warp, pc, global_mask, warp_mask, pad;
    uint64_t address, pc64;
    uint32_t cga, cga_mask;
  } sms[100];
  uint32_t old_mmu_fault;
  uint8_t mmu_fault, pad[3];
  uint32_t fault, first;
};
static_assert(sizeof(SmErrors) == 4824 && offsetof(SmErrors, mmu_fault) == 4812);

enum Control0000 : uint32_t {
  kGetBuildVersion = 0x101,
  kGetAttachedIds = 0x201,
  kGetIdInfo = 0x202,
  kGetIdInfo2 = 0x205,
  kGetProbedIds = 0x214,
  kAttachIds = 0x215,
  kGetAddressSpaceType = 0xd01,
};
enum Control0080 : uint32_t {
  kGetSubdeviceCount = 0x800280,
  kGetClassList2 = 0x800292,
  kGetDeviceGrInfo = 0x801104,
  kGetDeviceGrInfo2 = 0x801110,
  kGetChannelNumbers = 0x80170d,
};
enum Control2080 : uint32_t {
  kGetGpuInfo2 = 0x20800102,
  kGetNameString = 0x20800110,
  kGetShortName = 0x20800111,
  kGetEngineClasses = 0x20800124,
  kGetGid = 0x2080014a,
  kGetEngines2 = 0x20800170,
  kGetGrInfo = 0x20801201,
  kGetSmOrder = 0x2080121b,
  kGetGpcMask = 0x2080122a,
  kGetTpcMask = 0x2080122b,
  kGetFbInfo = 0x20801301,
  kGetFbInfo2 = 0x20801303,
  kGetArchInfo = 0x20801701,
  kGetPciInfo = 0x20801801,
  kGetBusInfo = 0x20801802,
  kGetBusInfo2 = 0x20801823,
  kGetCopyCaps2 = 0x20802a03,
  kGetAllCopyCaps = 0x20802a0a,
};
enum Control83de : uint32_t { kReadSmErrors = 0x83de030c, kClearSmErrors = 0x83de0310 };
enum ControlChannel : uint32_t {
  kGetClassEngine = 0x906f0101,
  kResetChannel = 0x906f0102,
  kScheduleChannel = 0xa06f0103,
  kGetClassEngine2 = 0xc36f0101,
  kGetSubmitToken = 0xc36f0108,
};

}  // namespace vgpud::kernel_side
