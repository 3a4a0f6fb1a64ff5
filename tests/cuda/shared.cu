// Memory that the host and kernels use at the same time: flags that either side waits for, atomic operations of both,
// letters to and fro, in pinned, mapped and managed memory and in __managed__ variables. A device may say that the host
// has to leave managed memory alone while kernels run (concurrentManagedAccess is 0), or that its atomic operations are
// none for the host (hostNativeAtomicSupported is 0): then that is left out.
// usage: shared [ROUNDS]
#include <cstdint>
#include <vector>

#include "check.h"

__managed__ unsigned variable_flag = 3;
__managed__ unsigned variable_answer;

namespace {

constexpr int kBlocks = 4, kThreads = 64, kAdds = 50;

__device__ unsigned look(const unsigned* at) { return *static_cast<const volatile unsigned*>(at); }

// Says that it runs, and ends when it is told to.
extern "C" __global__ void handshake(unsigned* running, const unsigned* may_end) {
  atomicExch_system(running, 1);
  while (look(may_end) == 0) {
  }
}

extern "C" __global__ void add_together(unsigned* sum, unsigned long long* wide, unsigned* running) {
  if (threadIdx.x == 0) atomicAdd_system(running, 1);
  for (int i = 0; i < kAdds; ++i) {
    atomicAdd_system(sum, 1);
    atomicAdd_system(wide, 1ull << 33);
  }
}

// Answers each letter with the next one.
extern "C" __global__ void post_office(unsigned* to_kernel, unsigned* to_host, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    while (look(to_kernel) != 2 * round - 1) {
    }
    __threadfence_system();
    atomicExch_system(to_host, 2 * round);
  }
}

extern "C" __global__ void copy_then_tell(const int* from, int* to, int count, unsigned* done, const unsigned* may_end) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i] + 1;
  __syncthreads();
  __threadfence_system();
  if (threadIdx.x != 0) return;
  atomicExch_system(done, 1);
  while (look(may_end) == 0) {
  }
}

extern "C" __global__ void answer_variable() {
  variable_answer = look(&variable_flag) + 100;
  __threadfence_system();
  while (look(&variable_flag) != 7) {
  }
}

int wrong = 0;

void expect(const char* what, const char* where, long long got, long long wanted) {
  if (got == wanted) return;
  if (wrong++ < 10) std::printf("%s in %s memory: %lld, expected %lld\n", what, where, got, wanted);
}

unsigned read_now(const unsigned* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void write_now(unsigned* at, unsigned value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
void wait_for(const unsigned* at, unsigned value) {
  while (read_now(at) != value) {
  }
}

struct Kind {
  const char* name;
  void* (*make)(size_t bytes);
  void (*free)(void* memory);
};
template <unsigned kFlags>
void* make_pinned(size_t bytes) {
  void* memory;
  CUDA_CHECK(cudaHostAlloc(&memory, bytes, kFlags));
  void* device;
  CUDA_CHECK(cudaHostGetDevicePointer(&device, memory, 0));
  expect("one address", "pinned", device == memory, 1);
  return memory;
}
void* make_host(size_t bytes) {
  void* memory;
  CUDA_CHECK(cudaMallocHost(&memory, bytes));
  return memory;
}
void* make_managed(size_t bytes) {
  void* memory;
  CUDA_CHECK(cudaMallocManaged(&memory, bytes));
  return memory;
}
void free_host(void* memory) { CUDA_CHECK(cudaFreeHost(memory)); }
void free_managed(void* memory) { CUDA_CHECK(cudaFree(memory)); }

constexpr Kind kKinds[] = {
    {"pinned", make_pinned<cudaHostAllocDefault>, free_host},
    {"portable", make_pinned<cudaHostAllocPortable>, free_host},
    {"mapped", make_pinned<cudaHostAllocMapped>, free_host},
    {"write-combined", make_pinned<cudaHostAllocWriteCombined>, free_host},
    {"host", make_host, free_host},
    {"managed", make_managed, free_managed},
};

void flags(const Kind& kind) {
  auto* const words = static_cast<unsigned*>(kind.make(2 * sizeof(unsigned)));
  write_now(&words[0], 0);
  write_now(&words[1], 0);
  handshake<<<1, 1>>>(&words[0], &words[1]);
  CUDA_CHECK_LAUNCH();
  wait_for(&words[0], 1);
  expect("a running kernel", kind.name, cudaStreamQuery(nullptr), cudaErrorNotReady);
  write_now(&words[1], 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  kind.free(words);
}

void atomics(const Kind& kind) {
  struct Sums {
    unsigned sum, running;
    unsigned long long wide;
  };
  auto* const sums = static_cast<Sums*>(kind.make(sizeof(Sums)));
  *sums = {};
  add_together<<<kBlocks, kThreads>>>(&sums->sum, &sums->wide, &sums->running);
  CUDA_CHECK_LAUNCH();
  while (read_now(&sums->running) == 0) {
  }
  constexpr int kMine = 5000;
  for (int i = 0; i < kMine; ++i) {
    __atomic_fetch_add(&sums->sum, 1u, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&sums->wide, 1ull, __ATOMIC_SEQ_CST);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  constexpr long long kTheirs = kBlocks * kThreads * kAdds;
  expect("sum", kind.name, sums->sum, kMine + kTheirs);
  expect("wide sum", kind.name, static_cast<long long>(sums->wide), kMine + (kTheirs << 33));
  kind.free(sums);
}

void letters(const Kind& kind, unsigned rounds) {
  auto* const boxes = static_cast<unsigned*>(kind.make(4096));
  unsigned* const to_kernel = &boxes[0];
  unsigned* const to_host = &boxes[512];
  write_now(to_kernel, 0);
  write_now(to_host, 0);
  post_office<<<1, 1>>>(to_kernel, to_host, rounds);
  CUDA_CHECK_LAUNCH();
  for (unsigned round = 1; round <= rounds; ++round) {
    write_now(to_kernel, 2 * round - 1);
    wait_for(to_host, 2 * round);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  kind.free(boxes);
}

// While a kernel runs the host reads what it has written, and writes to what it does not use; copies and sets go by.
void at_the_same_time(const Kind& kind) {
  constexpr int kCount = 300'001;  // no whole number of pages
  auto* const from = static_cast<int*>(kind.make(kCount * sizeof(int)));
  auto* const to = static_cast<int*>(kind.make(kCount * sizeof(int)));
  auto* const words = static_cast<unsigned*>(kind.make(2 * sizeof(unsigned)));
  for (int i = 0; i < kCount; ++i) from[i] = i;
  words[0] = words[1] = 0;
  copy_then_tell<<<1, 128>>>(from, to, kCount, &words[0], &words[1]);
  CUDA_CHECK_LAUNCH();
  wait_for(&words[0], 1);
  for (int i = 0; i < kCount; ++i) {
    if (to[i] == i + 1) continue;
    expect("copied by a running kernel", kind.name, to[i], i + 1);
    break;
  }
  from[5] = 1005;
  std::vector<int> copy(kCount);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMemcpyAsync(copy.data(), from, kCount * sizeof(int), cudaMemcpyDefault, stream));
  CUDA_CHECK(cudaMemsetAsync(to, 0x11, kCount * sizeof(int), stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
  expect("copy beside a kernel", kind.name, copy[5] + copy[kCount - 1], 1005 + kCount - 1);
  expect("set beside a kernel", kind.name, to[kCount - 1], 0x11111111);
  write_now(&words[1], 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  kind.free(words);
  kind.free(to);
  kind.free(from);
}

void variables() {
  expect("first value", "variable's", variable_flag, 3);
  write_now(&variable_flag, 5);
  answer_variable<<<1, 1>>>();
  CUDA_CHECK_LAUNCH();
  wait_for(&variable_answer, 105);
  write_now(&variable_flag, 7);
  CUDA_CHECK(cudaDeviceSynchronize());
}

// Many small pieces, freed in another order; each has its own bytes.
void pieces() {
  constexpr int kPieces = 700;
  std::vector<unsigned*> all;
  for (int i = 0; i < kPieces; ++i) {
    all.push_back(static_cast<unsigned*>(make_managed(16 + i * 24)));
    expect("fresh memory", "managed", all[i][2 + i * 6], 0);
    for (int word = 0; word < 4 + i * 6; ++word) all[i][word] = i;
  }
  for (int i = 0; i < kPieces; i += 2) free_managed(all[i]);
  for (int i = 0; i < kPieces; i += 2) all[i] = static_cast<unsigned*>(make_managed(100));
  for (int i = 1; i < kPieces; i += 2) expect("neighbour", "managed", all[i][3 + i * 6], i);
  for (unsigned* piece : all) free_managed(piece);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  const bool concurrent = properties.concurrentManagedAccess != 0;
  if (!concurrent && properties.hostRegisterSupported == 0) {
    std::printf("shared: SKIPPED, this device does not share memory\n");
    return 0;
  }
  if (concurrent) expect("native atomic operations", "any", properties.hostNativeAtomicSupported, 1);
  expect("access", "pageable", properties.pageableMemoryAccess, 0);
  for (const Kind& kind : kKinds) {
    if (kind.make == make_managed && !concurrent) continue;
    flags(kind);
    if (properties.hostNativeAtomicSupported != 0) atomics(kind);
    letters(kind, rounds);
    at_the_same_time(kind);
  }
  if (concurrent) variables();
  pieces();
  std::printf("shared: managed memory %s, atomic operations %s\n", concurrent ? "too" : "in turns",
              properties.hostNativeAtomicSupported != 0 ? "too" : "of kernels only");
  std::printf("shared: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
