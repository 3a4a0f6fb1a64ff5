// Built with -lineinfo: its kernel writes behind its array, in the line that the checks expect to be named.
#include "tests/cuda/check.h"

__global__ void Overrun(char* data, int bytes) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > bytes) return;
  data[i] = 1;  // OVERRUN
}

int main() {
  constexpr int kBytes = 256;
  char* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, kBytes));
  Overrun<<<2, 256>>>(data, kBytes);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("PASS lineinfo\n");
  return 0;
}
