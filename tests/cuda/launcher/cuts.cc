// SPDX-License-Identifier: Apache-2.0
// cuts KERNEL BLOCKS ROUNDS LAUNCHES: launches a kernel of tests/cuda/cuts.cu so often, each launch behind the one
// before, and prints a digest of what all of them together have left. The same arguments give the same digest.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cuda/launcher/programs.h"
#include "tests/cuda/launcher/session.h"
#include "tests/cuda/reference.h"

namespace {

constexpr unsigned kThreads = 64, kWide = 8;
constexpr unsigned long kMost = 1'000'000;
// The kernels whose blocks are kWide x kWide.
constexpr const char* kSquare[] = {"tiles", "transpose"};
// Launches that the program is ahead of the GPU by.
constexpr unsigned kAhead = 64;

bool IsSquare(const std::string& name) {
  for (const char* square : kSquare)
    if (name == square) return true;
  return false;
}

}  // namespace

int RunCuts(int argc, char** argv) {
  unsigned long numbers[3] = {};
  bool good = argc == 5;
  for (int i = 0; good && i < 3; ++i) {
    numbers[i] = std::strtoul(argv[i + 2], nullptr, 10);
    good = numbers[i] != 0 && numbers[i] <= kMost;
  }
  if (!good) {
    std::printf("cuts: FAILED usage: cuts KERNEL BLOCKS ROUNDS LAUNCHES, numbers from 1 to %lu\n", kMost);
    return 1;
  }
  const std::string name = argv[1];
  const auto blocks = static_cast<unsigned>(numbers[0]), rounds = static_cast<unsigned>(numbers[1]);
  Session session("cuts");
  const driver::Function kernel = session.Kernel(argv[1]);
  const DeviceArray<uint32_t> out(size_t{blocks} * kThreads);
  DRIVER_CHECK(MemsetD8(out.address(), 0, out.bytes()));
  const Shape shape = IsSquare(name) ? Shape{.grid_x = blocks, .block_x = kWide, .block_y = kWide}
                                     : Shape{.grid_x = blocks, .block_x = kThreads};
  for (unsigned launch = 0; launch < numbers[2]; ++launch) {
    Launch(kernel, shape, nullptr, out.address(), rounds, reference::Hash(launch));
    if (launch % kAhead == kAhead - 1) DRIVER_CHECK(CtxSynchronize());
  }
  const std::vector<uint32_t> words = out.Read();
  std::printf("cuts: PASSED %s blocks=%u rounds=%u launches=%lu digest=%016llx\n", argv[1], blocks, rounds, numbers[2],
              static_cast<unsigned long long>(reference::Fnv1a(words.data(), words.size() * sizeof(uint32_t))));
  return 0;
}
