// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/allocations.h"

#include <atomic>
#include <utility>
#include <vector>

#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

namespace vgpud::cuda {

std::map<uint64_t, HostBlock>& HostBlocks() {
  static auto* const blocks = new std::map<uint64_t, HostBlock>;
  return *blocks;
}

Mutex& HostMutex() {
  static auto* const mutex = new Mutex(lock_rank::kHostBlocks);
  return *mutex;
}

bool IsReached(const HostBlock& block) {
  return block.kind == HostBlock::Kind::kShared || block.kind == HostBlock::Kind::kMapped || block.other != 0;
}

uint64_t OfKernels(const std::pair<const uint64_t, HostBlock>& block, uint64_t address) {
  const bool apart = block.second.kind != HostBlock::Kind::kOfKernels && block.second.other != 0;
  return apart ? block.second.other + (address - block.first) : address;
}

uint64_t NewMemoryId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

CUresult AllocDevice(const Current& current, CUdeviceptr* out, size_t bytes) {
  Command command;
  command.op = VGPU_OP_MEM_ALLOC;
  command.args[0] = bytes;
  const Completion done = current.channel->Call(command);
  const CUdeviceptr address = done.value[0];
  if (done.status != CUDA_SUCCESS) {
    // The status may be an earlier posted operation's: then the memory was granted all the same.
    if (address != 0) {
      Command undo;
      undo.op = VGPU_OP_MEM_FREE;
      undo.args[0] = address;
      current.channel->Post(undo);
    }
    if (done.status != CUDA_ERROR_OUT_OF_MEMORY || !current.channel->FreeDeferred()) return done.status;
    return AllocDevice(current, out, bytes);
  }
  MutexLock lock(current.device->mutex);
  current.device->allocations[address] = {bytes, current.context.get(), nullptr};
  *out = address;
  return CUDA_SUCCESS;
}

CUresult EndGraphAllocation(Device::Allocation& allocation) {
  return std::exchange(allocation.ended, true) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

PinnedSpan FindPinned(const void* address, uint64_t bytes) {
  MutexLock lock(HostMutex());
  const auto it = Containing(HostBlocks(), reinterpret_cast<uint64_t>(address), bytes, HostBytes);
  if (it == HostBlocks().end()) return {};
  if (it->second.kind != HostBlock::Kind::kPinned && IsReached(it->second)) {
    const SharedSpan span = FindShared(OfKernels(*it, reinterpret_cast<uint64_t>(address)), bytes);
    return {span.device, span.buffer, span.offset};
  }
  if (it->second.kind != HostBlock::Kind::kPinned) return {};
  return {it->second.device, it->second.buffer.id, reinterpret_cast<uint64_t>(address) - it->first};
}

uint64_t OfHost(uint64_t address) {
  MutexLock lock(HostMutex());
  const auto it = Containing(HostBlocks(), address, 0, HostBytes);
  if (it == HostBlocks().end() || it->second.kind != HostBlock::Kind::kOfKernels) return address;
  return it->second.other + (address - it->first);
}

bool IsHostBlock(uint64_t address) {
  MutexLock lock(HostMutex());
  return Containing(HostBlocks(), address, 0, HostBytes) != HostBlocks().end();
}

bool IsHostMemory(const void* address, uint64_t bytes) {
  const auto first = reinterpret_cast<uint64_t>(address);
  {
    MutexLock lock(HostMutex());
    const auto it = Containing(HostBlocks(), first, bytes, HostBytes);
    if (it != HostBlocks().end() && (it->second.kind != HostBlock::Kind::kRegistered || IsReached(it->second)))
      return true;
  }
  return IsManaged(first, bytes) || IsMapped(address, bytes);
}

bool IsDeviceRange(Device* device, CUdeviceptr address, uint64_t bytes) {
  if (IsMappedOn(device, address, bytes)) return true;
  MutexLock lock(device->mutex);
  if (Containing(device->allocations, address, bytes, AllocationBytes) != device->allocations.end()) return true;
  return Containing(device->globals, address, bytes, [](uint64_t size) { return size; }) != device->globals.end();
}

Device* DeviceOf(CUdeviceptr address) {
  Device* const here = CurrentContext(false).device;
  if (here != nullptr && IsDeviceRange(here, address, 1)) return here;
  for (const auto& device : Driver::Get().devices())
    if (device.get() != here && device->open.load() && IsDeviceRange(device.get(), address, 1)) return device.get();
  return nullptr;
}

bool WantsSyncCopies(Device* device, CUdeviceptr address) {
  MutexLock lock(device->mutex);
  const auto it = Containing(device->allocations, address, 0, AllocationBytes);
  return it != device->allocations.end() && it->second.sync_copies;
}

void NoteGlobal(Device* device, CUdeviceptr address, uint64_t bytes) {
  MutexLock lock(device->mutex);
  device->globals[address] = bytes;
}

void ForgetGlobal(Device* device, CUdeviceptr address) {
  MutexLock lock(device->mutex);
  device->globals.erase(address);
}

void FreeAllOf(Device* device, Context* context) {
  std::vector<CUdeviceptr> addresses;
  {
    MutexLock lock(device->mutex);
    for (auto it = device->allocations.begin(); it != device->allocations.end();) {
      if (context == nullptr || it->second.context == context) {
        addresses.push_back(it->first);
        it = device->allocations.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const CUdeviceptr address : addresses) {
    Command command;
    command.op = VGPU_OP_MEM_FREE;
    command.args[0] = address;
    device->channel->Call(command);
  }
}

}  // namespace vgpud::cuda
