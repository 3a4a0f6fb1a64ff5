// SPDX-License-Identifier: Apache-2.0
// Memory of the program's own that cudaHostRegister lets kernels use: it is the same memory for both while a kernel runs, and for
// everybody else who has it: neighbours in its pages, other threads, forked children.
// usage: registered
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kPage = 4096;

__device__ unsigned look(const unsigned* at) { return *static_cast<const volatile unsigned*>(at); }

// Adds to each word, tells that it has, and ends when it is told to.
extern "C" __global__ void add_then_tell(unsigned* words, int count, unsigned* done, const unsigned* may_end) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] += 1000;
  __syncthreads();
  __threadfence_system();
  if (threadIdx.x != 0) return;
  atomicExch_system(done, 1);
  while (look(may_end) == 0) {
  }
}

extern "C" __global__ void add_atomically(unsigned* sum, int times) {
  for (int i = 0; i < times; ++i) atomicAdd_system(sum, 1);
}

int wrong = 0;
void expect(const char* what, long long got, long long wanted) {
  if (got == wanted) return;
  if (wrong++ < 10) std::printf("%s: %lld, expected %lld\n", what, got, wanted);
}
unsigned read_now(const unsigned* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void write_now(unsigned* at, unsigned value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

unsigned* pages(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::exit(1);
  return static_cast<unsigned*>(at);
}
unsigned* of_kernels(unsigned* host) {
  void* device = nullptr;
  CUDA_CHECK(cudaHostGetDevicePointer(&device, host, 0));
  return static_cast<unsigned*>(device);
}

// `words` lie somewhere in pages that have other things, too.
void with_a_running_kernel(unsigned* words, int count, unsigned flags) {
  for (int i = 0; i < count; ++i) words[i] = i;
  unsigned *done = words + count - 2, *may_end = words + count - 1;
  *done = *may_end = 0;
  CUDA_CHECK(cudaHostRegister(words, count * sizeof(unsigned), flags));
  unsigned* const device = of_kernels(words);
  expect("the pointer in the middle", of_kernels(words + 5) - device, 5);
  add_then_tell<<<1, 64>>>(device, count - 2, device + count - 2, device + count - 1);
  CUDA_CHECK_LAUNCH();
  while (read_now(done) != 1) {
  }
  for (int i = 0; i < count - 2; ++i) expect("written by a running kernel", words[i], i + 1000);
  expect("a running kernel", cudaStreamQuery(nullptr), cudaErrorNotReady);
  write_now(may_end, 1);
  CUDA_CHECK(cudaDeviceSynchronize());

  // Copies know both addresses.
  unsigned* copy = nullptr;
  CUDA_CHECK(cudaMalloc(&copy, count * sizeof(unsigned)));
  CUDA_CHECK(cudaMemcpy(copy, words, count * sizeof(unsigned), cudaMemcpyDefault));
  words[7] = 1;
  CUDA_CHECK(cudaMemcpy(device, copy, count * sizeof(unsigned), cudaMemcpyDefault));
  expect("copied there", words[7], 1007);
  cudaPointerAttributes about;
  CUDA_CHECK(cudaPointerGetAttributes(&about, words + 3));
  expect("type", about.type, cudaMemoryTypeHost);
  expect("device pointer", static_cast<unsigned*>(about.devicePointer) - device, 3);
  CUDA_CHECK(cudaPointerGetAttributes(&about, device + 3));
  expect("host pointer", static_cast<unsigned*>(about.hostPointer) - words, 3);
  CUDA_CHECK(cudaFree(copy));
  CUDA_CHECK(cudaHostUnregister(words));
  for (int i = 0; i < count - 2; ++i) expect("after all", words[i], i + 1000);
  expect("unregistered", cudaHostUnregister(words), cudaErrorHostMemoryNotRegistered);
  (void)cudaGetLastError();
}

// Other threads write into the same pages all the time, and nothing of it is lost.
void neighbours() {
  constexpr int kTimes = 30, kAdds = 100;
  unsigned* const page = pages(2 * kPage);
  unsigned *sum = page + 64, *before = page, *after = page + 2 * kPage / sizeof(unsigned) - 1;
  std::atomic<bool> end{false};
  unsigned counted[2] = {0, 0};
  std::thread writers[2];
  for (int i = 0; i < 2; ++i)
    writers[i] = std::thread([&, i] {
      unsigned* const mine = i == 0 ? before : after;
      while (!end.load()) {
        write_now(mine, read_now(mine) + 1);
        ++counted[i];
      }
    });
  for (int i = 0; i < kTimes; ++i) {
    CUDA_CHECK(cudaHostRegister(sum, sizeof *sum, cudaHostRegisterMapped));
    add_atomically<<<1, 1>>>(of_kernels(sum), kAdds);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaHostUnregister(sum));
  }
  end = true;
  for (std::thread& writer : writers) writer.join();
  expect("the neighbour before", *before, counted[0]);
  expect("the neighbour behind", *after, counted[1]);
  expect("sum", *sum, kTimes * kAdds);
  munmap(page, 2 * kPage);
}

// Where kernels can't have it in one piece, or it is not the program's alone, they are told that they have not.
bool reached_or_refused(unsigned* memory, size_t bytes) {
  CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
  void* device = nullptr;
  const cudaError_t answer = cudaHostGetDevicePointer(&device, memory, 0);
  (void)cudaGetLastError();
  if (answer == cudaSuccess) {
    add_atomically<<<1, 1>>>(static_cast<unsigned*>(device), 10);
    CUDA_CHECK(cudaDeviceSynchronize());
  } else {
    expect("no device pointer", answer, cudaErrorInvalidValue);
  }
  CUDA_CHECK(cudaHostUnregister(memory));
  return answer == cudaSuccess;
}

// Registered memory that lies in pages of other registered memory: a small block behind another, as allocators hand them out.
void in_one_page() {
  unsigned* const page = pages(3 * kPage);
  unsigned *const first = page + 64, *const second = first + 20, *const across = page + kPage / sizeof(unsigned) - 8;
  for (const bool first_goes_first : {true, false}) {
    *first = *second = 5;
    page[0] = 7;
    CUDA_CHECK(cudaHostRegister(first, 20 * sizeof(unsigned), cudaHostRegisterMapped | cudaHostRegisterPortable));
    CUDA_CHECK(cudaHostRegister(second, 5 * sizeof(unsigned), cudaHostRegisterMapped | cudaHostRegisterPortable));
    add_atomically<<<1, 1>>>(of_kernels(first), 10);
    add_atomically<<<1, 1>>>(of_kernels(second), 20);
    CUDA_CHECK(cudaDeviceSynchronize());
    expect("the first", *first, 15);
    expect("the second", *second, 25);
    if (reached_or_refused(across, 16 * sizeof(unsigned))) expect("it is the same for both", *across, 10);
    *across = 0;
    unsigned *const goes = first_goes_first ? first : second, *const stays = first_goes_first ? second : first;
    CUDA_CHECK(cudaHostUnregister(goes));
    add_atomically<<<1, 1>>>(of_kernels(stays), 100);
    CUDA_CHECK(cudaDeviceSynchronize());
    expect("the one that stays", *stays, first_goes_first ? 125 : 115);
    CUDA_CHECK(cudaHostUnregister(stays));
    expect("after both", *first + *second + page[0], first_goes_first ? 15 + 125 + 7 : 115 + 25 + 7);
  }
  munmap(page, 3 * kPage);
}

// A child has what its parent had, and what it writes is its own.
void children() {
  unsigned* const page = pages(kPage);
  page[0] = 5;
  page[1] = 6;
  CUDA_CHECK(cudaHostRegister(page, sizeof(unsigned), cudaHostRegisterDefault));
  add_atomically<<<1, 1>>>(of_kernels(page), 10);
  CUDA_CHECK(cudaDeviceSynchronize());
  const pid_t child = fork();
  if (child == 0) {
    const bool right = page[0] == 15 && page[1] == 6;
    page[0] = page[1] = 99;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect("the child", status, 0);
  expect("what the parent has", page[0] * 100 + page[1], 1506);
  add_atomically<<<1, 1>>>(of_kernels(page), 1);
  CUDA_CHECK(cudaHostUnregister(page));
  expect("after the child", page[0], 16);
  munmap(page, kPage);
}

void what_is_not_its_own() {
  void* const common = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  unsigned on_stack[64] = {};
  for (unsigned* memory : {static_cast<unsigned*>(common), on_stack})
    if (reached_or_refused(memory, sizeof on_stack)) expect("it is the same for both", *memory, 10);
  munmap(common, kPage);
  // Given back before it is unregistered, and something else is there.
  unsigned* const page = pages(kPage);
  CUDA_CHECK(cudaHostRegister(page, kPage, cudaHostRegisterMapped));
  munmap(page, kPage);
  void* const again = mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  page[3] = 77;
  CUDA_CHECK(cudaHostUnregister(page));
  expect("something else", page[3], 77);
  munmap(again, kPage);
}

}  // namespace

int main() {
  int supported = 0, same_pointer = 1;
  CUDA_CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrHostRegisterSupported, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&same_pointer, cudaDevAttrCanUseHostPointerForRegisteredMem, 0));
  if (supported == 0) {
    std::printf("registered: SKIPPED, this device reaches no memory of the program's own\n");
    return 0;
  }
  expect("the host's pointer is for the host", same_pointer, 0);
  std::vector<unsigned> large(300'001), small(100);
  with_a_running_kernel(large.data() + 1, 300'000, cudaHostRegisterDefault);
  with_a_running_kernel(small.data() + 3, 50, cudaHostRegisterMapped | cudaHostRegisterPortable);
  unsigned* const whole = pages(4 * kPage);
  with_a_running_kernel(whole, 4 * kPage / sizeof(unsigned), cudaHostRegisterMapped);
  munmap(whole, 4 * kPage);
  neighbours();
  in_one_page();
  children();
  what_is_not_its_own();
  std::printf("registered: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
