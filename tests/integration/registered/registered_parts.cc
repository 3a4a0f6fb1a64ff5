// SPDX-License-Identifier: Apache-2.0
// Memory of the program's own that kernels reach (cuMemHostRegister), and what else the program does with such memory:
// it forks, locks it, has signal handlers that use it, reaches limits. One part for each process.
// usage: registered_parts PART      0: all is well, 1: not, with a sentence for each thing that is not
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace {

constexpr size_t kPage = 4096;
constexpr uid_t kNobody = 65534;
constexpr char kPtx[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 by){
.reg .b32 %r<3>; .reg .b64 %rd<2>;
ld.param.u64 %rd1,[to]; ld.param.u32 %r1,[by];
atom.sys.global.add.u32 %r2,[%rd1],%r1; ret;
}
)";

int wrong = 0;
void Expect(const char* what, long long got, long long wanted) {
  if (got == wanted) return;
  ++wrong;
  std::printf("%s: %lld, expected %lld\n", what, got, wanted);
}
void Must(const char* what, CUresult got) {
  if (got == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", what, static_cast<int>(got));
  std::exit(1);
}

CUcontext context;
CUfunction add;
void Begin() {
  CUmodule module;
  Must("cuInit", cuInit(0));
  Must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
  Must("cuCtxSetCurrent", cuCtxSetCurrent(context));
  Must("cuModuleLoadData", cuModuleLoadData(&module, kPtx));
  Must("cuModuleGetFunction", cuModuleGetFunction(&add, module, "add"));
}

// A kernel adds to what it has at this address.
void Add(CUdeviceptr to, unsigned by) {
  void* parameters[] = {&to, &by};
  Must("cuLaunchKernel", cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  Must("cuCtxSynchronize", cuCtxSynchronize());
}

// A mapping of their own: there is nothing beside them.
unsigned* Pages(size_t count) {
  void* const at = mmap(nullptr, (count + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const pages = static_cast<char*>(at) + kPage;
  if (at == MAP_FAILED || mprotect(pages, count * kPage, PROT_READ | PROT_WRITE) != 0) std::exit(1);
  return static_cast<unsigned*>(pages);
}

CUdeviceptr Register(void* memory, size_t bytes) {
  CUdeviceptr there = 0;
  Must("cuMemHostRegister", cuMemHostRegister_v2(memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  Must("cuMemHostGetDevicePointer", cuMemHostGetDevicePointer_v2(&there, memory, 0));
  return there;
}

// How the child ended: its status, or minus the signal.
int EndOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
int RunTrue() {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(99);
  }
  return EndOf(child);
}

// Of the mapping with this address: its first line and what its flags are.
struct Seen {
  std::string mapping, flags;
  long locked_kib = 0;
};
Seen Look(const void* address) {
  Seen seen;
  bool here = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin, end;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2 && line.find(' ') > line.find('-')) {
      const auto at = reinterpret_cast<unsigned long>(address);
      here = begin <= at && at < end;
      if (here) seen.mapping = line;
    }
    if (here && line.starts_with("VmFlags:")) seen.flags = line + " ";
    if (here) std::sscanf(line.c_str(), "Locked: %ld", &seen.locked_kib);
  }
  return seen;
}

// ---- the parts ----

// Registered memory lies where it lay, as what it was, for whoever looks: the kernel, children, debuggers, files.
void Pinned() {
  constexpr size_t kCount = 16;
  unsigned* const words = Pages(kCount);
  words[0] = 5;
  const Seen before = Look(words);
  const CUdeviceptr there = Register(words, kCount * kPage - 100);
  Add(there, 10);
  Expect("a kernel's addition", words[0], 15);
  Expect("the mapping is what it was", before.mapping == Look(words).mapping, 1);
  // Pages that something else has, too.
  unsigned* const across = words + kCount * kPage / 4 - 10;
  const CUdeviceptr second = Register(across, 40);
  *across = 1;
  Add(second, 2);
  Expect("in the same page", *across, 3);
  Must("cuMemHostUnregister", cuMemHostUnregister(across));
  Add(there, 1);
  Expect("the first goes on", words[0], 16);
  // Copies know both addresses.
  unsigned there_is[2] = {7, 8}, read = 0;
  Must("a copy to kernels' address", cuMemcpy(there + 4, reinterpret_cast<CUdeviceptr>(there_is), sizeof there_is));
  Expect("it is here", words[2], 8);
  words[2] = 9;
  Must("a copy from it", cuMemcpy(reinterpret_cast<CUdeviceptr>(&read), there + 8, sizeof read));
  Expect("what is here", read, 9);
  Must("a fill", cuMemsetD32_v2(there + 12, 11, 1));
  Expect("filled", words[3], 11);
  CUdeviceptr device = 0;
  Must("cuMemAlloc", cuMemAlloc_v2(&device, 8));
  Must("to the device", cuMemcpyHtoD_v2(device, words + 2, 8));
  Must("and back", cuMemcpyDtoH_v2(words + 20, device, 8));
  Expect("there and back", words[21], 11);
  // A child has a copy, and its parent's memory stays reached.
  const pid_t child = fork();
  if (child == 0) {
    const bool right = words[0] == 16;
    words[0] = 99;
    _exit(right ? 0 : 1);
  }
  Expect("the child", EndOf(child), 0);
  Add(there, 4);
  Expect("after the child", words[0], 20);
  iovec mine{&read, sizeof read}, other{words, sizeof read};
  Expect("process_vm_readv", process_vm_readv(getpid(), &mine, 1, &other, 1, 0), sizeof read);
  const int file = memfd_create("file", 0);
  Expect("a file's", pwrite(file, words, kPage, 0), kPage);
  Expect("bytes", pread(file, words + kPage / 4, kPage, 0), kPage);
  Expect("come here", words[kPage / 4], 20);
  Must("cuMemHostUnregister", cuMemHostUnregister(words));
  Expect("afterwards", words[0], 20);
  Expect("nobody has it any more", cuMemHostUnregister(words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

// What can't be pinned, and what is given back too early.
void Unpinned() {
  CUdeviceptr there = 0;
  void* const constant = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Must("read only", cuMemHostRegister_v2(constant, kPage, 0));
  Expect("kernels would write", cuMemHostGetDevicePointer_v2(&there, constant, 0), CUDA_ERROR_INVALID_VALUE);
  Must("read only", cuMemHostUnregister(constant));
  // A part of it is none of this process' any more.
  unsigned* const words = Pages(4);
  words[0] = 1;
  Register(words, 4 * kPage);
  munmap(words, 4 * kPage);
  void* const again = mmap(words, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  Must("given back", cuMemHostUnregister(again));
  Expect("something else is there", words[0], 0);
  // What kernels reach already, at this very address.
  CUdeviceptr managed = 0;
  Must("cuMemAllocManaged", cuMemAllocManaged(&managed, kPage, CU_MEM_ATTACH_GLOBAL));
  void* const memory = reinterpret_cast<void*>(managed);
  if (cuMemHostRegister_v2(memory, kPage, 0) == CUDA_SUCCESS) {
    Expect("a buffer", cuMemHostGetDevicePointer_v2(&there, memory, 0), CUDA_ERROR_INVALID_VALUE);
    Must("a buffer", cuMemHostUnregister(memory));
  }
  // A variable of the program, and its stack.
  static unsigned variable = 3;
  unsigned on_stack = 4;
  for (unsigned* each : {&variable, &on_stack}) {
    const unsigned was = *each;
    Add(Register(each, sizeof *each), 10);
    Expect("a variable", *each, was + 10);
    Must("a variable", cuMemHostUnregister(each));
  }
}

// More than a user may pin is refused, and what was pinned comes back.
void TooMuch() {
  constexpr size_t kBlock = 64 << 20;
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> blocks;
    CUresult status = CUDA_SUCCESS;
    while (status == CUDA_SUCCESS && blocks.size() < 64) {
      void* const block = Pages(kBlock / kPage);
      status = cuMemHostRegister_v2(block, kBlock, CU_MEMHOSTREGISTER_DEVICEMAP);
      if (status == CUDA_SUCCESS) blocks.push_back(block);
      if (status != CUDA_SUCCESS) munmap(block, kBlock);
    }
    Expect("in the end", status, CUDA_ERROR_OUT_OF_MEMORY);
    Expect("before that some are", blocks.empty(), 0);
    for (void* const block : blocks) {
      Must("cuMemHostUnregister", cuMemHostUnregister(block));
      munmap(block, kBlock);
    }
  }
}

// Children of a program with small blocks of its heap registered, in a thread's arena and in the first one.
void Children() {
  char* block = nullptr;
  CUdeviceptr there = 0;
  const auto make = [&] {
    Must("cuCtxSetCurrent", cuCtxSetCurrent(context));
    block = static_cast<char*>(malloc(1000));
    memset(block, 0x11, 1000);
    there = Register(block, 1000);
  };
  for (const bool in_thread : {true, false}) {
    if (in_thread)
      std::thread(make).join();
    else
      make();
    FILE* const file = fopen("/dev/null", "w");  // its lock is reset in children, wherever it lies
    Expect("a child that runs a program", RunTrue(), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool right = block[0] == 0x11 && block[999] == 0x11;
      memset(block, 0x22, 1000);
      free(malloc(500));
      fputs("x", file);
      _exit(right ? 0 : 1);
    }
    Expect("a child that looks", EndOf(child), 0);
    Expect("what its parent has", block[0], 0x11);
    auto* const word = reinterpret_cast<unsigned*>(block);
    Add(there, 1);
    Expect("kernels still reach it", *word, 0x11111112);
    // A fault of the child is its own.
    const pid_t faulty = fork();
    if (faulty == 0) {
      *static_cast<volatile int*>(nullptr) = 1;
      _exit(0);
    }
    Expect("a faulty child", EndOf(faulty), -SIGSEGV);
    fclose(file);
  }
}

volatile unsigned* signal_words;
std::atomic<unsigned> signals{0};

// A handler uses the memory all the time, also while it is registered and unregistered.
void Signals() {
  constexpr size_t kCount = 256;
  constexpr int kRounds = 30;
  unsigned* const words = Pages(kCount);
  signal_words = words;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) {
    const unsigned n = signals.fetch_add(1);
    const size_t at = n * (kPage / 4) % (kCount * kPage / 4);
    signal_words[at] = signal_words[at] + 1;
  };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < kRounds; ++i) {
    Register(words, kCount * kPage);
    Must("cuMemHostUnregister", cuMemHostUnregister(words));
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  unsigned sum = 0;
  for (size_t i = 0; i < kCount; ++i) sum += words[i * kPage / 4];
  Expect("what handlers have added", sum, signals.load());
}

// Where no thread can be made, calls say so. Not as root, who has as many as he wants.
void NoThreads() {
  unsigned* const words = Pages(4);
  words[0] = 5;
  const CUdeviceptr there = Register(words, 4 * kPage);
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) std::exit(1);
  const rlimit one{1, 1};
  setrlimit(RLIMIT_NPROC, &one);
  static std::atomic<int> ran{0};
  const auto function = [](void*) { ++ran; };
  Expect("cuLaunchHostFunc", cuLaunchHostFunc(nullptr, function, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  const CUresult status = cuMemHostUnregister(words);
  Expect("cuMemHostUnregister", status == CUDA_SUCCESS || status == CUDA_ERROR_OUT_OF_MEMORY, 1);
  Expect("its memory", words[0], 5);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    Add(there, 1);
    Expect("it is registered still", words[0], 6);
  }
  Expect("and the program's", RunTrue() >= 0, 1);
}

// Signals of the program go to its own threads.
void NoSignals() {
  static std::atomic<int> blocked{-1}, faults{-1};
  const auto function = [](void*) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    faults = sigismember(&set, SIGSEGV);
    blocked = sigismember(&set, SIGALRM) + sigismember(&set, SIGTERM) + sigismember(&set, SIGUSR1);
  };
  Must("cuLaunchHostFunc", cuLaunchHostFunc(nullptr, function, nullptr));
  Must("cuCtxSynchronize", cuCtxSynchronize());
  Expect("signals that a host function does not get", blocked.load(), 3);
  Expect("its own faults are handled", faults.load(), 0);
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  Expect("the caller's", sigismember(&set, SIGALRM), 0);
}

// What the program has said of its memory holds while it is registered, and afterwards.
void Advice() {
  constexpr size_t kCount = 64;
  unsigned* const words = Pages(kCount);
  memset(words, 3, kCount * kPage);
  Expect("mlock", mlock(words, kCount * kPage), 0);
  Expect("MADV_DONTDUMP", madvise(words, kCount * kPage, MADV_DONTDUMP), 0);
  Expect("MADV_WIPEONFORK", madvise(words, kCount * kPage, MADV_WIPEONFORK), 0);
  const auto keeps = [&](const char* when, bool own) {
    const Seen seen = Look(words);
    std::printf("%s: %s, %ld KiB locked\n", when, seen.flags.c_str(), seen.locked_kib);
    for (const char* flag : {" lo ", " dd "}) Expect(flag, seen.flags.find(flag) != std::string::npos, 1);
    const pid_t child = fork();
    if (child == 0) _exit(words[0] == 0 && words[kCount * kPage / 4 - 1] == 0 ? 0 : 1);
    Expect("a child finds it empty", EndOf(child), 0);
    if (!own) return;  // of shared pages the kernel counts a share
    Expect(" wf ", seen.flags.find(" wf ") != std::string::npos, 1);
    Expect("locked KiB", seen.locked_kib, kCount * kPage / 1024);
  };
  keeps("before", true);
  const CUdeviceptr there = Register(words, kCount * kPage);
  keeps("registered", false);
  Add(there, 1);
  Must("cuMemHostUnregister", cuMemHostUnregister(words));
  keeps("after", true);
  Expect("its bytes", words[0], 0x03030304);
}

// A program may end its first thread and go on: what is told of the process by that thread's entry is empty then.
void FirstThreadEnded() {
  std::thread([] {
    char state = 0;
    while (state != 'Z') {
      std::string words;
      std::getline(std::ifstream("/proc/self/stat"), words);
      state = words[words.rfind(')') + 2];
    }
    Must("cuCtxSetCurrent", cuCtxSetCurrent(context));
    constexpr size_t kCount = 8;
    unsigned* const words = Pages(kCount);
    memset(words, 0, kCount * kPage);
    Add(Register(words, kCount * kPage), 5);
    Expect("memory of the program's own", words[0], 5);
    Must("cuMemHostUnregister", cuMemHostUnregister(words));
    std::printf("first_thread_ended: %s\n", wrong == 0 ? "PASSED" : "FAILED");
    std::exit(wrong == 0 ? 0 : 1);
  }).detach();
  pthread_exit(nullptr);
}

// The tools with which programs are built look at each access, and have most addresses for themselves.
void UnderSanitizer() {
  constexpr size_t kBytes = 5000;
  auto* const words = static_cast<unsigned*>(calloc(kBytes, 1));
  Add(Register(words, kBytes), 3);
  Expect("a block of the heap", words[0], 3);
  Must("cuMemHostUnregister", cuMemHostUnregister(words));
  words[kBytes / 4 - 1] = words[0] + 1;
  void* pinned = nullptr;
  Must("cuMemHostAlloc", cuMemHostAlloc(&pinned, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* const numbers = static_cast<unsigned*>(pinned);
  memset(numbers, 0, kBytes);
  CUdeviceptr there = 0, device = 0;
  Must("cuMemHostGetDevicePointer", cuMemHostGetDevicePointer_v2(&there, numbers + 1, 0));
  Add(there, 7);
  Expect("pinned memory", numbers[1], 7);
  Must("cuMemAlloc", cuMemAlloc_v2(&device, kBytes));
  Must("a copy to the device", cuMemcpyHtoD_v2(device, numbers, kBytes));
  Must("a copy within memory", cuMemcpy(reinterpret_cast<CUdeviceptr>(numbers), there, sizeof *numbers));
  Expect("copied", numbers[0], 7);
  Must("a copy from the device", cuMemcpyDtoH_v2(numbers, device, kBytes));
  Expect("copied back", numbers[0], 0);
  Must("cuMemFreeHost", cuMemFreeHost(pinned));
  CUdeviceptr managed = 0;
  const CUresult answer = cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL);
  Expect("managed memory, or a refusal", answer == CUDA_SUCCESS || answer == CUDA_ERROR_NOT_SUPPORTED, 1);
  std::atomic<int> calls{0};
  const auto count = [](void* to) { ++*static_cast<std::atomic<int>*>(to); };
  Must("cuLaunchHostFunc", cuLaunchHostFunc(nullptr, count, &calls));
  Must("cuCtxSynchronize", cuCtxSynchronize());
  Expect("host functions", calls.load(), 1);
  free(words);
}

constexpr struct {
  const char* name;
  void (*run)();
} kParts[] = {{"pinned", Pinned},
              {"unpinned", Unpinned},
              {"too_much", TooMuch},
              {"children", Children},
              {"signals", Signals},
              {"no_threads", NoThreads},
              {"no_signals", NoSignals},
              {"advice", Advice},
              {"under_sanitizer", UnderSanitizer},
              {"first_thread_ended", FirstThreadEnded}};

}  // namespace

int main(int count, char** words) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const auto& part : kParts) {
    if (count != 2 || strcmp(words[1], part.name) != 0) continue;
    Begin();
    part.run();
    std::printf("%s: %s\n", part.name, wrong == 0 ? "PASSED" : "FAILED");
    return wrong == 0 ? 0 : 1;
  }
  std::printf("usage: registered_parts PART\n");
  return 2;
}
