// Streams that wait for words in memory and write them: cuStreamWaitValue32, cuStreamWriteValue64 and their like, with
// words that the host, a kernel or another stream changes, in device, pinned and managed memory, also in graphs. Where
// the host has to leave managed memory alone while kernels run (concurrentManagedAccess is 0), pinned memory is used.
// usage: streamvalues [ROUNDS]
#include <cuda.h>

#include <cstdint>
#include <cstdlib>

#include "driver_call.h"

namespace {

// Takes what it finds in `from`, so that it shows whether it ran too early.
extern "C" __global__ void take(const unsigned* from, unsigned* to) { *to = *static_cast<const volatile unsigned*>(from); }

// Says that it runs, then sets `word` when it is told to.
extern "C" __global__ void set_when_told(unsigned* running, const unsigned* told, unsigned* word, unsigned value) {
  atomicExch_system(running, 1);
  while (*static_cast<const volatile unsigned*>(told) == 0) {
  }
  atomicExch_system(word, value);
}

using Call32 = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);
using Call64 = CUresult(CUstream, CUdeviceptr, cuuint64_t, unsigned);
using Batch = CUresult(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
Call32 *wait32, *write32;
Call64 *wait64, *write64;
Batch* batch;

bool concurrent;  // managed memory may be used by the host at any time
unsigned* make_words() {
  unsigned* words;
  if (concurrent) {
    CUDA_CHECK(cudaMallocManaged(&words, 4096));
  } else {
    CUDA_CHECK(cudaMallocHost(&words, 4096));
  }
  return words;
}
void free_words(unsigned* words) { CUDA_CHECK(concurrent ? cudaFree(words) : cudaFreeHost(words)); }

CUdeviceptr at(const void* word) { return reinterpret_cast<CUdeviceptr>(word); }
void write_now(unsigned* word, unsigned value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

// The stream goes on when the host has written what it waits for, and not before.
void host_lets_go() {
  unsigned* words;
  CUDA_CHECK(cudaMallocHost(&words, 4096));
  unsigned* const seen = &words[512];
  const struct {
    unsigned condition, waits_for, not_yet, enough;
  } rows[] = {{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6},
              {CU_STREAM_WAIT_VALUE_GEQ, 5, 0xfffffffe, 5},  // -2 is less
              {CU_STREAM_WAIT_VALUE_EQ, 7, 8, 7},
              {CU_STREAM_WAIT_VALUE_AND, 6, 9, 2},
              {CU_STREAM_WAIT_VALUE_NOR, 0xffff0000, 0xffff, 0xfff0}};
  for (const auto& row : rows) {
    write_now(&words[0], row.not_yet);
    *seen = 0;
    expect("wait", wait32(nullptr, at(&words[0]), row.waits_for, row.condition), CUDA_SUCCESS);
    take<<<1, 1>>>(&words[0], seen);
    CUDA_CHECK_LAUNCH();
    expect("a stream that waits", cudaStreamQuery(nullptr), cudaErrorNotReady);
    write_now(&words[0], row.enough);
    CUDA_CHECK(cudaDeviceSynchronize());
    expect("behind the wait", *seen, row.enough);
  }
  CUDA_CHECK(cudaFreeHost(words));
}

// 64 bits, in memory that only the device has: another stream writes it.
void streams_hand_over(unsigned rounds) {
  unsigned long long* word;
  unsigned* const results = make_words();
  CUDA_CHECK(cudaMalloc(&word, sizeof *word));
  CUDA_CHECK(cudaMemset(word, 0, sizeof *word));
  cudaStream_t first, second;
  CUDA_CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  constexpr unsigned long long kHigh = 1ull << 40;
  for (unsigned round = 1; round <= rounds; ++round) {
    expect("wait", wait64(first, at(word), kHigh + 2 * round - 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    expect("write", write64(first, at(word), kHigh + 2 * round, 0), CUDA_SUCCESS);
    expect("write", write64(second, at(word), kHigh + 2 * round - 1, 0), CUDA_SUCCESS);
    expect("wait", wait64(second, at(word), kHigh + 2 * round, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  }
  CUDA_CHECK(cudaStreamSynchronize(second));
  CUDA_CHECK(cudaStreamSynchronize(first));
  unsigned long long last;
  CUDA_CHECK(cudaMemcpy(&last, word, sizeof last, cudaMemcpyDefault));
  expect("the last value", static_cast<long long>(last), static_cast<long long>(kHigh + 2 * rounds));

  // A kernel that runs in one stream lets the other one go.
  results[0] = results[1] = results[2] = 0;
  expect("wait", wait32(first, at(&results[2]), 17, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  take<<<1, 1, 0, first>>>(&results[2], &results[3]);
  set_when_told<<<1, 1, 0, second>>>(&results[0], &results[1], &results[2], 17);
  CUDA_CHECK_LAUNCH();
  while (__atomic_load_n(&results[0], __ATOMIC_ACQUIRE) == 0) {
  }
  expect("a stream that waits", cudaStreamQuery(first), cudaErrorNotReady);
  write_now(&results[1], 1);
  CUDA_CHECK(cudaStreamSynchronize(first));
  CUDA_CHECK(cudaStreamSynchronize(second));
  expect("behind a kernel's word", results[3], 17);
  CUDA_CHECK(cudaStreamDestroy(first));
  CUDA_CHECK(cudaStreamDestroy(second));
  free_words(results);
  CUDA_CHECK(cudaFree(word));
}

// Several at once, alone and as a node of a graph that runs twice.
void at_once() {
  unsigned* const words = make_words();
  CUstreamBatchMemOpParams all[3] = {};
  all[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, at(&words[0]), {11}, 0, 0};
  all[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, at(&words[1]), {1}, CU_STREAM_WAIT_VALUE_GEQ, 0};
  all[2].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_64, at(&words[2]), {}, 0, 0};
  all[2].writeValue.value64 = 0x100000002;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto passes = [&](const char* what) {
    while (__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) != 11) {
    }
    expect(what, __atomic_load_n(&words[2], __ATOMIC_ACQUIRE), 0);
    write_now(&words[1], 1);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    expect(what, words[2] + words[3], 3);
    for (int i = 0; i < 4; ++i) words[i] = 0;
  };
  for (int i = 0; i < 4; ++i) words[i] = 0;
  expect("batch", batch(stream, 3, all, 0), CUDA_SUCCESS);
  passes("a batch");

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  expect("captured batch", batch(stream, 3, all, 0), CUDA_SUCCESS);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  expect("nothing ran", words[0], 0);
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    passes("a batch in a graph");
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
  free_words(words);
}

void refused() {
  unsigned* word;
  CUDA_CHECK(cudaMalloc(&word, 64));
  expect("odd address", wait32(nullptr, at(word) + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  expect("odd address", write64(nullptr, at(word) + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
  expect("no address", write32(nullptr, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  expect("no condition", wait32(nullptr, at(word), 0, 4), CUDA_ERROR_INVALID_VALUE);
  expect("remote writes", wait32(nullptr, at(word), 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
  CUstreamBatchMemOpParams none = {};
  expect("no operation", batch(nullptr, 1, &none, 0), CUDA_ERROR_INVALID_VALUE);
  expect("no operations", batch(nullptr, 0, &none, 0), CUDA_ERROR_INVALID_VALUE);
  CUDA_CHECK(cudaFree(word));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  int possible = 0, shared = 0, both = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrHostRegisterSupported, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&both, cudaDevAttrConcurrentManagedAccess, 0));
  concurrent = both != 0;
  constexpr auto kPossible = static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  CUDA_CHECK(cudaDeviceGetAttribute(&possible, kPossible, 0));
  if ((shared == 0 && !concurrent) || possible == 0) {
    std::printf("streamvalues: SKIPPED, this device has no stream memory operations on shared memory\n");
    return 0;
  }
  wait32 = driver<Call32>("cuStreamWaitValue32");
  write32 = driver<Call32>("cuStreamWriteValue32");
  wait64 = driver<Call64>("cuStreamWaitValue64");
  write64 = driver<Call64>("cuStreamWriteValue64");
  batch = driver<Batch>("cuStreamBatchMemOp");
  host_lets_go();
  streams_hand_over(rounds);
  at_once();
  refused();
  std::printf("streamvalues: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
