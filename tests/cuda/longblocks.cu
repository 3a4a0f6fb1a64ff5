// Few blocks that run long: what they are in the middle of is in registers, in local and in shared memory.
// usage: longblocks [ROUNDS]   (default 20000)
// The result is compared bit for bit with the CPU.
#include <vector>

#include "check.h"
#include "reference.h"

extern "C" __global__ void longblocks(unsigned* out, unsigned rounds) {
  constexpr unsigned kThreads = reference::kLongThreads, kTurn = reference::kLongTurn;
  __shared__ unsigned told[kThreads];
  unsigned last[reference::kLongLast];
  const unsigned t = threadIdx.x, i = blockIdx.x * kThreads + t;
  for (unsigned& word : last) word = i;
  unsigned x = i + 1;
  for (unsigned round = 0; round < rounds; ++round) {
    x = x * 1664525u + 1013904223u;
    unsigned& word = last[x >> 29];
    word = x ^= word >> 3;
    if (round % kTurn != kTurn - 1) continue;
    told[t] = x;
    __syncthreads();
    x += told[(t + 1) % kThreads];
    __syncthreads();
  }
  out[i] = x;
}

int main(int argc, char** argv) {
  const unsigned rounds = reference::LongRounds(argc, argv);
  std::vector<unsigned> out(reference::kLongBlocks * reference::kLongThreads);
  unsigned* device_out;
  CUDA_CHECK(cudaMalloc(&device_out, out.size() * sizeof(unsigned)));
  longblocks<<<reference::kLongBlocks, reference::kLongThreads>>>(device_out, rounds);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(out.data(), device_out, out.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_out));
  return reference::ReportLongBlocks(out, rounds);
}
