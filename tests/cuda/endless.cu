// A kernel that never ends by itself: what a forced end of the time slice is for.
#include "check.h"

extern "C" __global__ void endless(const volatile int* flag) {
  while (*flag == 0) {
  }
}

int main() {
  int* flag;
  CUDA_CHECK(cudaMalloc(&flag, sizeof *flag));
  CUDA_CHECK(cudaMemset(flag, 0, sizeof *flag));
  endless<<<4, 64>>>(flag);
  CUDA_CHECK_LAUNCH();
  std::printf("endless: started\n");
  std::fflush(stdout);
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("endless: FAILED the kernel ended\n");
  return 1;
}
