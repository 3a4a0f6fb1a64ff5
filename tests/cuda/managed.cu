// Managed memory: host and kernels take turns at the same bytes, in one stream and in several, through copies, sets and
// hints, and a list that a kernel walks by the host's pointers; __managed__ variables; host memory that kernels reach.
// usage: managed [ROUNDS]
#include <cstdint>
#include <thread>
#include <vector>

#include "check.h"

__managed__ int counter = 5;
__managed__ double table[3000];  // no whole number of pages
__device__ int neighbour = 7;

namespace {

constexpr int kCount = 50000;

struct Node {
  Node* next;
  int value;
};

extern "C" __global__ void add(int* values, int count, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += what;
}

extern "C" __global__ void sum_list(const Node* node, int* sum) {
  int total = 0;
  for (; node != nullptr; node = node->next) total += node->value;
  *sum = total;
}

extern "C" __global__ void count_up() {
  atomicAdd(&counter, 1);
  atomicAdd(&neighbour, 1);
  table[threadIdx.x * 40] += 1.5;
}

int wrong = 0;

void expect(const char* what, long got, long wanted) {
  if (got == wanted) return;
  if (wrong++ < 10) std::printf("%s: %ld, expected %ld\n", what, got, wanted);
}

int* make(int count) {
  int* memory;
  CUDA_CHECK(cudaMallocManaged(&memory, count * sizeof(int)));
  return memory;
}

void turns(int rounds) {
  int* const values = make(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i;
  for (int round = 0; round < rounds; ++round) {
    add<<<(kCount + 255) / 256, 256>>>(values, kCount, 1);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    values[round] += 1000;
  }
  for (int i = 0; i < kCount; ++i) expect("turns", values[i], i + rounds + (i < rounds ? 1000 : 0));
  std::vector<int> copy(kCount);
  CUDA_CHECK(cudaMemcpy(copy.data(), values, kCount * sizeof(int), cudaMemcpyDefault));
  expect("copy", copy[0], rounds + 1000);
  CUDA_CHECK(cudaMemset(values, 0, kCount * sizeof(int)));
  CUDA_CHECK(cudaDeviceSynchronize());
  expect("set", values[kCount - 1], 0);
  cudaPointerAttributes attributes{};
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, values + 5));
  expect("type", attributes.type, cudaMemoryTypeManaged);
  expect("one address", attributes.hostPointer == attributes.devicePointer, 1);
  CUDA_CHECK(cudaFree(values));
}

// Two threads, a stream and an allocation each: a wait of one must not disturb the other's bytes.
void streams(int rounds) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([=] {
      cudaStream_t stream;
      CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      int* const values = make(kCount);
      CUDA_CHECK(cudaStreamAttachMemAsync(stream, values));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      for (int round = 0; round < rounds; ++round) {
        for (int i = round; i < kCount; i += 97) values[i] += t + 1;
        add<<<(kCount + 127) / 128, 128, 0, stream>>>(values, kCount, 1);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(cudaStreamSynchronize(stream));
      }
      for (int i = 0; i < kCount; ++i) {
        int wanted = rounds;
        for (int round = 0; round < rounds; ++round)
          if (i >= round && (i - round) % 97 == 0) wanted += t + 1;
        if (values[i] == wanted) continue;
        expect("streams", values[i], wanted);
        break;
      }
      CUDA_CHECK(cudaFree(values));
      CUDA_CHECK(cudaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void lists() {
  constexpr int kNodes = 100;
  Node* nodes;
  CUDA_CHECK(cudaMallocManaged(&nodes, kNodes * sizeof(Node)));
  for (int i = 0; i < kNodes; ++i) nodes[i] = {i + 1 < kNodes ? &nodes[i + 1] : nullptr, i};
  int* const sum = make(1);
  sum_list<<<1, 1>>>(nodes, sum);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  expect("list", *sum, kNodes * (kNodes - 1) / 2);
  CUDA_CHECK(cudaFree(nodes));
  CUDA_CHECK(cudaFree(sum));
}

void variables(int rounds) {
  counter += 10;
  table[40] = 2;
  for (int round = 1; round <= rounds; ++round) {
    count_up<<<1, 64>>>();
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    expect("variable", counter, 15 + 65 * round - 1);
    ++counter;
  }
  int plain = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&plain, neighbour, sizeof plain));
  expect("neighbour", plain, 7 + 64 * rounds);
  expect("table", static_cast<long>(2 * table[40]), 4 + 3 * rounds);
  expect("end of table", static_cast<long>(2 * table[63 * 40]), 3 * rounds);
}

void mapped_host_memory() {
  int* values;
  CUDA_CHECK(cudaHostAlloc(&values, kCount * sizeof(int), cudaHostAllocMapped));
  int* device;
  CUDA_CHECK(cudaHostGetDevicePointer(&device, values, 0));
  for (int i = 0; i < kCount; ++i) values[i] = i;
  add<<<(kCount + 255) / 256, 256>>>(device, kCount, 3);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) expect("mapped", values[i], i + 3);
  CUDA_CHECK(cudaFreeHost(values));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  turns(rounds);
  streams(rounds);
  lists();
  variables(rounds);
  mapped_host_memory();
  std::printf("managed: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
