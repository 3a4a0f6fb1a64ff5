// SPDX-License-Identifier: Apache-2.0
// A program that launches a kernel and waits for it, again and again, for bench/felt_bench.py.
//
// usage: felt_probe calibrate             prints how often a kernel goes round its loop in a microsecond
//        felt_probe LOOPS THINK_US SECONDS   prints how many kernels of LOOPS loops it got done, each followed by so
//        much work
//                                            of the host's
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/probe_kernel.h"

namespace vgpud {
namespace {

constexpr char kSpin[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u32 loops)
{
  .reg .u32 %i, %n;
  .reg .pred %p;
  ld.param.u32 %n, [loops];
  mov.u32 %i, 0;
AGAIN:
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra AGAIN;
  ret;
}
)";

class Spinner {
 public:
  void Run(uint32_t loops) {
    void* parameters[] = {&loops};
    kernel_.LaunchAndWait(parameters);
  }

 private:
  const ProbeKernel kernel_{kSpin, "spin"};
};

// Two lengths, so that what a launch costs by itself falls out; the quickest of many, so that the host does.
double LoopsPerUs(Spinner& spinner) {
  constexpr uint32_t kShort = 20'000, kLong = 220'000;
  uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
  for (int i = 0; i < 60; ++i)
    for (const int which : {0, 1}) {
      const uint64_t start = MonotonicNs();
      spinner.Run(which == 0 ? kShort : kLong);
      best[which] = std::min(best[which], MonotonicNs() - start);
    }
  return double{kLong - kShort} * 1000 / static_cast<double>(best[1] - best[0]);
}

uint64_t Count(Spinner& spinner, uint32_t loops, uint64_t think_ns, uint64_t ns) {
  for (int i = 0; i < 20; ++i) spinner.Run(loops);
  const uint64_t end = MonotonicNs() + ns;
  uint64_t done = 0;
  while (MonotonicNs() < end) {
    spinner.Run(loops);
    ++done;
    const uint64_t until = MonotonicNs() + think_ns;
    while (MonotonicNs() < until) {
    }
  }
  return done;
}

}  // namespace
}  // namespace vgpud

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "calibrate") {
    vgpud::Spinner spinner;
    fmt::print("{:.3f}\n", vgpud::LoopsPerUs(spinner));
    return 0;
  }
  if (argc != 4) {
    fmt::print(stderr, "usage: felt_probe calibrate | felt_probe LOOPS THINK_US SECONDS\n");
    return 2;
  }
  vgpud::Spinner spinner;
  fmt::print("{}\n",
             vgpud::Count(spinner, static_cast<uint32_t>(std::max(1, std::atoi(argv[1]))),
                          std::strtoull(argv[2], nullptr, 10) * 1000, static_cast<uint64_t>(std::atof(argv[3]) * 1e9)));
  return 0;
}
