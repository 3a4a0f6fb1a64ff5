// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/registered_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <utility>

#include "guest-driver-shim/libcuda/channel/mappings.h"
#include "guest-driver-shim/libcuda/channel/own_pages.h"
#include "guest-driver-shim/libcuda/channel/page_swap.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;

// Pages that a buffer has taken the place of, for all the memory in them that is registered.
struct Run {
  Device* device = nullptr;
  Transport::Buffer buffer;
  CUdeviceptr there = 0;  // where kernels have it
  uint64_t pages = 0;     // where they begin
  Treatment treatment;
  int users = 0;
  void* snapshot = nullptr;  // while the program forks
};
using Runs = std::map<uint64_t, Run, std::less<>, OwnPages<std::pair<const uint64_t, Run>>>;
// What a fork changes for as long as it lasts.
struct Fork {
  pid_t parent = 0;
  pthread_t thread{};
  struct sigaction faults {};  // the program's
  sigset_t signals{};
};
// In pages of its own: in a forked child the program's heap may be in memory that is still missing.
struct State {
  Mutex mutex{lock_rank::kRegistered};
  Runs runs GUARDED_BY(mutex);  // by their pages
  Fork fork GUARDED_BY(mutex);
};
State& TheState() {
  static auto* const state = new (OwnPages<State>().allocate(1)) State;
  return *state;
}

// Registered memory: the pages of its run, by address.
std::map<uint64_t, uint64_t>& Users([[maybe_unused]] State& state) REQUIRES(state.mutex) {
  static auto* const users = new std::map<uint64_t, uint64_t>;
  return *users;
}

// ---- Forked children ----
// A child does not inherit buffers; what it finds in their place is what its parent had when it forked. It is a copy,
// as kernels may go on writing. Until it is there the C library and handlers of others run in the child, and may use
// what else is in these pages: the first fault puts it there.

void TakeSnapshot(Run& run) {
  const uint64_t bytes = run.buffer.bytes;
  if (!run.treatment.is_for_children()) return;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  if (!run.treatment.is_empty_in_children()) memcpy(at, run.buffer.address, bytes);
  Treatment treatment = run.treatment;
  treatment.locked = false;  // no child inherits that
  Treat(reinterpret_cast<uint64_t>(at), bytes, treatment, true);
  run.snapshot = at;
}

void PutSnapshots(State& state) REQUIRES(state.mutex) {
  for (auto& [pages, each] : state.runs)
    if (void* const from = std::exchange(each.snapshot, nullptr))
      (void)mremap(from, each.buffer.bytes, each.buffer.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(pages));
}

void OnFault(int signal, siginfo_t* info, void* where) NO_THREAD_SAFETY_ANALYSIS {
  State& state = TheState();
  const struct sigaction& theirs = state.fork.faults;
  if (pthread_equal(pthread_self(), state.fork.thread) != 0 && getpid() != state.fork.parent) {
    PutSnapshots(state);
    sigaction(SIGSEGV, &theirs, nullptr);  // if it was not that it comes again
  } else if ((theirs.sa_flags & SA_SIGINFO) != 0) {
    theirs.sa_sigaction(signal, info, where);
  } else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) {
    theirs.sa_handler(signal);
  } else {
    sigaction(SIGSEGV, &theirs, nullptr);
    if (info->si_code <= 0) raise(signal);  // nothing was wrong in this thread
  }
}

void WatchFaults(Fork& fork) {
  fork.parent = getpid();
  fork.thread = pthread_self();
  sigaction(SIGSEGV, nullptr, &fork.faults);
  struct sigaction ours = fork.faults;
  ours.sa_flags |= SA_SIGINFO;
  ours.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  ours.sa_sigaction = OnFault;
  sigaction(SIGSEGV, &ours, nullptr);
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &fault, &fork.signals);
}

void UnwatchFaults(const Fork& fork) {
  struct sigaction now;
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == OnFault) sigaction(SIGSEGV, &fork.faults, nullptr);
  pthread_sigmask(SIG_SETMASK, &fork.signals, nullptr);
}

void BeforeFork() NO_THREAD_SAFETY_ANALYSIS {  // it is held over the fork
  State& state = TheState();
  state.mutex.lock();
  if (state.runs.empty()) return;
  for (auto& [pages, each] : state.runs) TakeSnapshot(each);
  WatchFaults(state.fork);
}
void AfterFork() NO_THREAD_SAFETY_ANALYSIS {
  State& state = TheState();
  if (!state.runs.empty()) UnwatchFaults(state.fork);
  for (auto& [pages, each] : state.runs)
    if (void* const snapshot = std::exchange(each.snapshot, nullptr)) munmap(snapshot, each.buffer.bytes);
  state.mutex.unlock();
}
void InChild() NO_THREAD_SAFETY_ANALYSIS {
  State& state = TheState();
  PutSnapshots(state);
  if (!state.runs.empty()) UnwatchFaults(state.fork);
  state.mutex.unlock();
}

// ---- Runs ----

bool MapThere(void* run) {
  const auto& each = *static_cast<const Run*>(run);
  return each.device->channel->transport().MapAgain(each.buffer, reinterpret_cast<void*>(each.pages));
}

uint64_t OfKernels(const Run& run, uint64_t address) { return run.there + (address - run.pages); }

bool IsShownBy(const Run& run, uint64_t pages, uint64_t bytes) {
  return BytesShown(pages, bytes, static_cast<std::byte*>(run.buffer.address) + (pages - run.pages)) == bytes;
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

void Forget(State& state, const Run& run) REQUIRES(state.mutex) {
  const Run gone = run;
  state.runs.erase(gone.pages);
  FreeShared(gone.device, gone.there);
}

// The program's own pages are there again. False: nothing has changed.
bool Restore(const Run& run) {
  if (!RestorePages(run.pages, run.buffer.bytes, run.buffer.address)) return false;
  Treat(run.pages, run.buffer.bytes, run.treatment, true);
  return true;
}

// A buffer takes the place of these pages.
CUresult MakeRun(State& state, Device* device, uint64_t pages, uint64_t bytes, Run** out) REQUIRES(state.mutex) {
  if (!IsOwnMemory(pages, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto treatment = TreatmentOf(pages, bytes);
  if (!treatment || !MayUse(treatment->key)) return CUDA_ERROR_INVALID_VALUE;
  Run run{device, {}, 0, pages, *treatment};
  if (const CUresult error = AllocApart(device, bytes, &run.buffer, &run.there)) return error;
  // Its node is made before others wait.
  *out = &(state.runs[pages] = run);
  if (!ReplacePages(pages, bytes, run.buffer.address, MapThere, &run)) {
    Forget(state, run);
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Where it may not be locked any more there is nothing to be had.
  if (Treat(pages, bytes, run.treatment, false) || !Restore(run)) return CUDA_SUCCESS;
  Forget(state, run);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

CUresult ShareRegistered(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out) {
  State& state = TheState();
  static const int kForks = pthread_atfork(BeforeFork, AfterFork, InChild);
  if (kForks != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  MutexLock lock(state.mutex);
  auto& users = Users(state);
  if (const auto it = users.find(address); it != users.end()) {
    *out = OfKernels(state.runs.at(it->second), address);
    return CUDA_SUCCESS;
  }
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t pages = address & ~(kPage - 1);
  const uint64_t size = (address + bytes - pages + kPage - 1) & ~(kPage - 1);
  Run* run = Joined(state, device, pages, size);
  if (run == nullptr)
    if (const CUresult error = MakeRun(state, device, pages, size, &run)) return error;
  ++run->users;
  users[address] = run->pages;
  *out = OfKernels(*run, address);
  return CUDA_SUCCESS;
}

CUresult UnshareRegistered(uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  auto& users = Users(state);
  const auto user = users.find(address);
  if (user == users.end()) return CUDA_SUCCESS;
  Run& run = state.runs.at(user->second);
  if (run.users == 1) {
    // The program may have given its memory back before, and have something else there now. Where it still has some of
    // it the buffer stays: it is what the program's memory is.
    const uint64_t there = BytesShown(run.pages, run.buffer.bytes, run.buffer.address);
    if (there == run.buffer.bytes && !Restore(run)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (there == 0 || there == run.buffer.bytes) {
      users.erase(user);
      Forget(state, run);
      return CUDA_SUCCESS;
    }
  }
  --run.users;
  users.erase(user);
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda
