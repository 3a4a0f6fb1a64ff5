// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/registered_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "guest-driver-shim/libcuda/channel/page_swap.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;

// Pages that a buffer has taken the place of, for all the memory in them that is registered.
struct Run {
  Device* device = nullptr;
  Transport::Buffer buffer;
  uint64_t pages = 0;  // where they begin
  int users = 0;
  void* snapshot = nullptr;  // while the program forks
};
struct State {
  Mutex mutex{lock_rank::kRegistered};
  std::map<uint64_t, Run> runs GUARDED_BY(mutex);        // by their pages
  std::map<uint64_t, uint64_t> users GUARDED_BY(mutex);  // registered memory: the pages of its run, by address
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// A child does not inherit buffers; what it finds in their place is what its parent had when it forked.
void BeforeFork() NO_THREAD_SAFETY_ANALYSIS {  // it is held over the fork
  State& state = TheState();
  state.mutex.lock();
  for (auto& [pages, each] : state.runs) {
    void* const at =
        mmap(nullptr, each.buffer.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    each.snapshot = at == MAP_FAILED ? nullptr : memcpy(at, each.buffer.address, each.buffer.bytes);
  }
}
void AfterFork() NO_THREAD_SAFETY_ANALYSIS {
  State& state = TheState();
  for (auto& [pages, each] : state.runs) {
    if (each.snapshot != nullptr) munmap(each.snapshot, each.buffer.bytes);
    each.snapshot = nullptr;
  }
  state.mutex.unlock();
}
void InChild() NO_THREAD_SAFETY_ANALYSIS {
  State& state = TheState();
  for (const auto& [pages, each] : state.runs)
    if (each.snapshot != nullptr)
      (void)mremap(each.snapshot, each.buffer.bytes, each.buffer.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(pages));
  state.mutex.unlock();
}

bool MapThere(void* run) {
  const auto& each = *static_cast<const Run*>(run);
  return each.device->channel->transport().MapAgain(each.buffer, reinterpret_cast<void*>(each.pages));
}

uint64_t AddressOf(const Run& run, uint64_t address) {
  return reinterpret_cast<uint64_t>(run.buffer.address) + (address - run.pages);
}

bool IsShownBy(const Run& run, uint64_t pages, uint64_t bytes) {
  return BytesShown(pages, bytes, reinterpret_cast<void*>(AddressOf(run, pages))) == bytes;
}

// The run that all of these pages are in already, for other memory in them.
Run* Joined(State& state, Device* device, uint64_t pages, uint64_t bytes) REQUIRES(state.mutex) {
  auto it = state.runs.upper_bound(pages);
  if (it == state.runs.begin()) return nullptr;
  Run& run = (--it)->second;
  const uint64_t offset = pages - run.pages;
  if (run.device != device || offset >= run.buffer.bytes || bytes > run.buffer.bytes - offset) return nullptr;
  return IsShownBy(run, pages, bytes) ? &run : nullptr;
}

// A buffer takes the place of these pages.
CUresult MakeRun(State& state, Device* device, uint64_t pages, uint64_t bytes, Run** out) REQUIRES(state.mutex) {
  Run run{device, {}, pages};
  if (!IsOwnMemory(pages, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = AllocSharedBuffer(device, bytes, &run.buffer)) return error;
  // Its node is made before others wait.
  *out = &(state.runs[pages] = run);
  if (ReplacePages(pages, bytes, run.buffer.address, MapThere, &run)) return CUDA_SUCCESS;
  state.runs.erase(pages);
  FreeShared(device, reinterpret_cast<uint64_t>(run.buffer.address));
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ShareRegistered(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out) {
  State& state = TheState();
  static const int kForks = pthread_atfork(BeforeFork, AfterFork, InChild);
  if (kForks != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  MutexLock lock(state.mutex);
  if (const auto it = state.users.find(address); it != state.users.end()) {
    *out = AddressOf(state.runs.at(it->second), address);
    return CUDA_SUCCESS;
  }
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t pages = address & ~(kPage - 1);
  const uint64_t size = (address + bytes - pages + kPage - 1) & ~(kPage - 1);
  Run* run = Joined(state, device, pages, size);
  if (run == nullptr)
    if (const CUresult error = MakeRun(state, device, pages, size, &run)) return error;
  ++run->users;
  state.users[address] = run->pages;
  *out = AddressOf(*run, address);
  return CUDA_SUCCESS;
}

void UnshareRegistered(uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto user = state.users.find(address);
  if (user == state.users.end()) return;
  Run& run = state.runs.at(user->second);
  state.users.erase(user);
  if (--run.users > 0) return;
  const uint64_t there = BytesShown(run.pages, run.buffer.bytes, run.buffer.address);
  // The program may have given its memory back before, and have something else there now. Where it still has some of
  // it and that can't be put back, the buffer stays: it is what the program's memory is.
  if (there != 0 && (there != run.buffer.bytes || !RestorePages(run.pages, run.buffer.bytes, run.buffer.address)))
    return;
  const Run gone = run;
  state.runs.erase(gone.pages);
  FreeShared(gone.device, reinterpret_cast<uint64_t>(gone.buffer.address));
}

}  // namespace vgpud::cuda
