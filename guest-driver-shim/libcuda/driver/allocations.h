// SPDX-License-Identifier: Apache-2.0
// What addresses mean: device allocations, pinned host memory, or the program's own memory.
#pragma once

#include <map>
#include <utility>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Host memory that the driver knows.
struct HostBlock {
  enum class Kind {
    kPinned,      // a buffer that the device reads and writes itself
    kShared,      // the same, and kernels reach it (shared_memory.h)
    kMapped,      // kernels reach it: it is managed memory that is exchanged
    kRegistered,  // memory of the program's own; copies treat it as any other
    kOfKernels,   // what kernels have of another block, at an address of their own
  };
  Device* device;
  Transport::Buffer buffer;  // of kPinned
  uint64_t bytes;            // asked for
  unsigned flags;
  Kind kind = Kind::kPinned;
  uint64_t other = 0;  // of its kOfKernels, if it has one; and the other way round
  uint64_t id = NewMemoryId();
};
// Do kernels reach it?
bool IsReached(const HostBlock& block);
// Where they have `address`, which is in this block and reached.
uint64_t OfKernels(const std::pair<const uint64_t, HostBlock>& block, uint64_t address);
Mutex& HostMutex();
// By address.
std::map<uint64_t, HostBlock>& HostBlocks() REQUIRES(HostMutex());

// The entry of an ordered map of ranges that contains [address, address + bytes).
template <class Map, class Bytes>
auto Containing(Map& map, uint64_t address, uint64_t bytes, Bytes size_of) {
  auto it = map.upper_bound(address);
  if (it == map.begin()) return map.end();
  --it;
  const uint64_t offset = address - it->first;
  const uint64_t size = size_of(it->second);
  return offset < size && bytes <= size - offset ? it : map.end();
}
inline uint64_t AllocationBytes(const Device::Allocation& a) { return a.bytes; }
inline uint64_t HostBytes(const HostBlock& b) { return b.kind == HostBlock::Kind::kPinned ? b.buffer.bytes : b.bytes; }

// Pinned host memory that contains [address, address + bytes); id 0 if there is none.
struct PinnedSpan {
  Device* device = nullptr;
  uint32_t buffer = 0;
  uint64_t offset = 0;
};
// `address` may be one that only kernels have.
PinnedSpan FindPinned(const void* address, uint64_t bytes);

// Translates an address that kernels use for host memory to the program's own address of it. Returns `address`
// unchanged for all other memory.
uint64_t OfHost(uint64_t address);

// Is it in pinned or registered host memory?
bool IsHostBlock(uint64_t address);

// Can the program itself read all of [address, address + bytes), not empty? Of a guest's pinned memory only we know:
// its kernel does not tell.
bool IsHostMemory(const void* address, uint64_t bytes);

// Allocates and notes device memory.
CUresult AllocDevice(const Current& current, CUdeviceptr* out, size_t bytes);

// A program frees what a graph allocated: an error when it has done so already. The device's mutex is held.
CUresult EndGraphAllocation(Device::Allocation& allocation);

// Is [address, address + bytes) inside one live allocation or module variable of the device, or all mapped there?
bool IsDeviceRange(Device* device, CUdeviceptr address, uint64_t bytes);

// The device in whose memory it is; nullptr: in that of none. That of the current context is asked first.
Device* DeviceOf(CUdeviceptr address);

// Did the program want copies and fills of this memory waited for (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)?
bool WantsSyncCopies(Device* device, CUdeviceptr address);

// A module variable became known (or, with its module, unknown).
void NoteGlobal(Device* device, CUdeviceptr address, uint64_t bytes);
void ForgetGlobal(Device* device, CUdeviceptr address);

// Frees what `context` (nullptr: anybody) still owns on the device, in the executor too.
void FreeAllOf(Device* device, Context* context);

}  // namespace vgpud::cuda
