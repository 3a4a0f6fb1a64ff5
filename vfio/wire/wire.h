// SPDX-License-Identifier: Apache-2.0
// The vfio-user protocol as it stands on the wire (version 0.x; checked against QEMU 11.1): little-endian structs
// behind a 16-byte header on a SOCK_STREAM Unix socket. Values only; what is allowed is decided in vfio_server.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpud::vfio::wire {

enum class Command : uint16_t {
  kVersion = 1,
  kDmaMap = 2,
  kDmaUnmap = 3,
  kDeviceGetInfo = 4,
  kDeviceGetRegionInfo = 5,
  kDeviceGetIrqInfo = 7,
  kDeviceSetIrqs = 8,
  kRegionRead = 9,
  kRegionWrite = 10,
  kDeviceReset = 13,
};

inline constexpr uint32_t kTypeMask = 0xf;  // of flags
inline constexpr uint32_t kTypeCommand = 0;
inline constexpr uint32_t kTypeReply = 1;
inline constexpr uint32_t kNoReply = 0x10;
inline constexpr uint32_t kError = 0x20;

struct Header {
  uint16_t id = 0;
  uint16_t command = 0;
  uint32_t bytes = 0;  // whole message
  uint32_t flags = 0;
  uint32_t error = 0;  // errno, in replies with kError
};
static_assert(sizeof(Header) == 16);

struct Version {
  uint16_t major = 0;
  uint16_t minor = 0;
};  // JSON text with its NUL behind it

inline constexpr uint32_t kDmaRead = 1;
inline constexpr uint32_t kDmaWrite = 2;
struct DmaMap {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;  // in the file
  uint64_t iova = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(DmaMap) == 32);

inline constexpr uint32_t kUnmapAll = 2;
struct DmaUnmap {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint64_t iova = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(DmaUnmap) == 24);

inline constexpr uint32_t kDeviceReset = 1;
inline constexpr uint32_t kDevicePci = 2;
struct DeviceInfo {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint32_t regions = 0;
  uint32_t irqs = 0;
};

enum Region : uint32_t { kBar0 = 0, kConfig = 7, kRegions = 9 };
inline constexpr uint32_t kRegionReadable = 1;
inline constexpr uint32_t kRegionWritable = 2;
struct RegionInfo {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint32_t index = 0;
  uint32_t cap_offset = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};
static_assert(sizeof(RegionInfo) == 32);

enum Irq : uint32_t { kIntx = 0, kMsi = 1, kMsix = 2, kErr = 3, kReq = 4, kIrqs = 5 };
inline constexpr uint32_t kIrqEventFd = 1;
inline constexpr uint32_t kIrqMaskable = 2;
inline constexpr uint32_t kIrqAutoMasked = 4;
struct IrqInfo {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint32_t index = 0;
  uint32_t count = 0;
};

inline constexpr uint32_t kIrqDataNone = 1;
inline constexpr uint32_t kIrqDataBool = 2;
inline constexpr uint32_t kIrqDataEventFd = 4;
inline constexpr uint32_t kIrqMask = 8;
inline constexpr uint32_t kIrqUnmask = 16;
inline constexpr uint32_t kIrqTrigger = 32;
struct SetIrqs {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint32_t index = 0;
  uint32_t start = 0;
  uint32_t count = 0;
};
static_assert(sizeof(SetIrqs) == 20);

struct RegionAccess {
  uint64_t offset = 0;
  uint32_t region = 0;
  uint32_t bytes = 0;
};  // the data behind it
static_assert(sizeof(RegionAccess) == 16);

inline constexpr size_t kMaxFds = 16;               // in one message, told to the client
inline constexpr uint32_t kMaxTransfer = 64 << 10;  // bytes of one region access, told to the client
inline constexpr uint32_t kMaxBytes = sizeof(Header) + sizeof(RegionAccess) + kMaxTransfer;

}  // namespace vgpud::vfio::wire
