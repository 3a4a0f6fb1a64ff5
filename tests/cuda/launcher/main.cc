// SPDX-License-Identifier: Apache-2.0
// vgpu-launch PROGRAM [ARGS]: runs the checked-in PTX of the test programs through the CUDA driver API, for machines
// without a CUDA toolkit. Needs nothing but libcuda.so.1.
#include <cstdio>
#include <cstring>

#include "tests/cuda/launcher/programs.h"

namespace {

constexpr struct {
  const char* name;
  int (*run)(int argc, char** argv);
} kPrograms[] = {{"vectoradd", &RunVectorAdd},   {"matmul", &RunMatMul}, {"endless", &RunEndless},
                 {"longblocks", &RunLongBlocks}, {"meter", &RunMeter},   {"cuts", &RunCuts}};

}  // namespace

int main(int argc, char** argv) {
  for (const auto& program : kPrograms)
    if (argc >= 2 && std::strcmp(argv[1], program.name) == 0) return program.run(argc - 1, argv + 1);
  std::fprintf(stderr, "usage: vgpu-launch PROGRAM [ARGS]\nprograms:");
  for (const auto& program : kPrograms) std::fprintf(stderr, " %s", program.name);
  std::fprintf(stderr, "\n");
  return 2;
}
