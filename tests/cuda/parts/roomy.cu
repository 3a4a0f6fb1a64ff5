// Device memory that is large for the card: fills MIB of it with what only this program knows, computes on all of it
// again and again, and looks at every word in the end. Before it writes anything it looks whether somebody has left
// something there.
// usage: roomy MIB ROUNDS SEED [PAUSE_MS]     PAUSE_MS: between two rounds
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/cuda/check.h"

namespace {

constexpr int kBlocks = 8, kThreads = 128;

extern "C" __global__ void count_foreign(const uint32_t* words, size_t count, unsigned long long* foreign) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    if (words[i] != 0) atomicAdd(foreign, 1ull);
}

extern "C" __global__ void begin(uint32_t* words, size_t count, uint32_t seed) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    words[i] = static_cast<uint32_t>(i) ^ seed;
}

extern "C" __global__ void go_on(uint32_t* words, size_t count, uint32_t round) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    words[i] = words[i] * 1664525u + round;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t count = std::strtoull(argv[1], nullptr, 10) << 18;
  const unsigned rounds = std::strtoul(argv[2], nullptr, 10), seed = std::strtoul(argv[3], nullptr, 10);
  const unsigned pause_ms = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 0;
  uint32_t* words;
  unsigned long long* foreign;
  CUDA_CHECK(cudaMalloc(&words, count * sizeof *words));
  CUDA_CHECK(cudaMalloc(&foreign, sizeof *foreign));
  CUDA_CHECK(cudaMemset(foreign, 0, sizeof *foreign));
  count_foreign<<<kBlocks, kThreads>>>(words, count, foreign);
  CUDA_CHECK_LAUNCH();
  unsigned long long found = 0;
  CUDA_CHECK(cudaMemcpy(&found, foreign, sizeof found, cudaMemcpyDeviceToHost));
  begin<<<kBlocks, kThreads>>>(words, count, seed);
  CUDA_CHECK_LAUNCH();
  for (unsigned round = 1; round <= rounds; ++round) {
    go_on<<<kBlocks, kThreads>>>(words, count, round);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    std::printf("round %u\n", round);
    std::fflush(stdout);
    if (pause_ms != 0) usleep(pause_ms * 1000);
  }
  std::vector<uint32_t> copy(count);
  CUDA_CHECK(cudaMemcpy(copy.data(), words, count * sizeof *words, cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t wanted = static_cast<uint32_t>(i) ^ seed;
    for (unsigned round = 1; round <= rounds; ++round) wanted = wanted * 1664525u + round;
    wrong += copy[i] != wanted;
  }
  std::printf("roomy: %zu words wrong, %llu left by others: %s\n", wrong, found,
              wrong + found == 0 ? "PASSED" : "FAILED");
  return wrong + found == 0 ? 0 : 1;
}
