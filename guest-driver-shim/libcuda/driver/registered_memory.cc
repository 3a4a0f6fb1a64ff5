// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/registered_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "guest-driver-shim/libcuda/channel/page_swap.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;

struct Registered {
  Device* device = nullptr;
  Transport::Buffer buffer;
  uint64_t pages = 0;        // where its pages begin
  void* snapshot = nullptr;  // while the program forks
};
struct State {
  std::mutex mutex;
  std::map<uint64_t, Registered> all;  // by address
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// A child does not inherit buffers; what it finds in their place is what its parent had when it forked.
void BeforeFork() {
  State& state = TheState();
  state.mutex.lock();
  for (auto& [address, each] : state.all) {
    void* const at =
        mmap(nullptr, each.buffer.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    each.snapshot = at == MAP_FAILED ? nullptr : memcpy(at, each.buffer.address, each.buffer.bytes);
  }
}
void AfterFork() {
  State& state = TheState();
  for (auto& [address, each] : state.all) {
    if (each.snapshot != nullptr) munmap(each.snapshot, each.buffer.bytes);
    each.snapshot = nullptr;
  }
  state.mutex.unlock();
}
void InChild() {
  State& state = TheState();
  for (const auto& [address, each] : state.all)
    if (each.snapshot != nullptr)
      (void)mremap(each.snapshot, each.buffer.bytes, each.buffer.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(each.pages));
  state.mutex.unlock();
}

bool MapThere(void* registered) {
  const auto& each = *static_cast<const Registered*>(registered);
  return each.device->channel->transport().MapAgain(each.buffer, reinterpret_cast<void*>(each.pages));
}

CUdeviceptr DeviceAddress(const Registered& each, uint64_t address) {
  return reinterpret_cast<uint64_t>(each.buffer.address) + (address - each.pages);
}

}  // namespace

CUresult ShareRegistered(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out) {
  State& state = TheState();
  static const int kForks = pthread_atfork(BeforeFork, AfterFork, InChild);
  if (kForks != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(state.mutex);
  if (const auto it = state.all.find(address); it != state.all.end()) {
    *out = DeviceAddress(it->second, address);
    return CUDA_SUCCESS;
  }
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  Registered each{device, {}, address & ~(kPage - 1)};
  const uint64_t size = (address + bytes - each.pages + kPage - 1) & ~(kPage - 1);
  if (!IsOwnMemory(each.pages, size)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = AllocSharedBuffer(device, size, &each.buffer)) return error;
  // Its node is made before others wait.
  Registered& kept = state.all[address] = each;
  if (!ReplacePages(each.pages, size, each.buffer.address, MapThere, &each)) {
    state.all.erase(address);
    FreeShared(device, reinterpret_cast<uint64_t>(each.buffer.address));
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = DeviceAddress(kept, address);
  return CUDA_SUCCESS;
}

void UnshareRegistered(uint64_t address) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  const auto it = state.all.find(address);
  if (it == state.all.end()) return;
  const Registered each = it->second;
  const uint64_t there = BytesShown(each.pages, each.buffer.bytes, each.buffer.address);
  // The program may have given its memory back before, and have something else there now. Where it still has some of
  // it and that can't be put back, the buffer stays: it is what the program's memory is.
  if (there != 0 && (there != each.buffer.bytes || !RestorePages(each.pages, each.buffer.bytes, each.buffer.address)))
    return;
  state.all.erase(it);
  FreeShared(each.device, reinterpret_cast<uint64_t>(each.buffer.address));
}

}  // namespace vgpud::cuda
