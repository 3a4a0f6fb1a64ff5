// SPDX-License-Identifier: Apache-2.0
// What the module of unified memory is asked with. Facts of the open kernel modules
// (kernel-open/nvidia-uvm/uvm_ioctl.h, uvm_linux_ioctl.h, uvm_types.h, tags 535.261.03, 550.163.01, 555.58.02). Its
// requests are plain numbers: the length is that of the structure. compare_kernel_side.cc compares them with the
// headers that Debian has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vgpud::kernel_side {

enum UvmRequest : uint32_t {
  kUvmCreateRangeGroup = 23,
  kUvmDestroyRangeGroup = 24,
  kUvmRegisterVaSpace = 25,
  kUvmUnregisterVaSpace = 26,
  kUvmRegisterChannel = 27,
  kUvmUnregisterChannel = 28,
  kUvmEnablePeers = 29,
  kUvmDisablePeers = 30,
  kUvmSetRangeGroup = 31,
  kUvmMapExternal = 33,
  kUvmFree = 34,
  kUvmRegisterGpu = 37,
  kUvmUnregisterGpu = 38,
  kUvmPageableAccess = 39,
  kUvmMapDynamicParallelism = 65,
  kUvmUnmapExternal = 66,
  kUvmAllocSemaphorePool = 68,
  kUvmCleanUp = 69,
  kUvmPageableAccessOnGpu = 70,
  kUvmValidateRange = 72,
  kUvmCreateExternalRange = 73,
  kUvmMapSparse = 74,
  kUvmMmInitialize = 75,
  kUvmInitializeSpace = 0x30000001,
  kUvmDeinitialize = 0x30000002,
};

using Uuid = std::array<uint8_t, 16>;

struct UvmRegisterVaSpace {
  Uuid card;
  int32_t control_fd;
  uint32_t client, va_space, status;
};
static_assert(sizeof(UvmRegisterVaSpace) == 32);

struct UvmRange {
  uint64_t base, bytes;
};

// In front of what a mapping looks like for each card, 36 bytes each; behind that the rest, of which:
struct UvmMapExternal {
  uint64_t base, bytes, offset;
};
struct UvmMapExternalEnd {
  uint64_t cards;
  int32_t control_fd;
  uint32_t client, memory, status;
};
static_assert(sizeof(UvmMapExternalEnd) == 24);
inline constexpr size_t kUvmAttributesBytes = 36;
// How many cards there is room for.
constexpr size_t UvmMostCards(int driver_major) { return driver_major < 550 ? 32 : 256; }

}  // namespace vgpud::kernel_side
