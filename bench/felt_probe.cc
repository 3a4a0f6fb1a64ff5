// SPDX-License-Identifier: Apache-2.0
// A program that launches a kernel and waits for it, again and again, for bench/felt_bench.py.
//
// usage: felt_probe calibrate                      prints how often a kernel goes round its loop in a microsecond
//        felt_probe LOOPS THINK_US SECONDS [BURST] prints how many kernels of LOOPS loops it got done: BURST (1) at a
//                                                  time, then a wait and so much work of the host's (10000s: so much
//                                                  sleep). On the way, each 50 ms at most: "at NS COUNT",
//                                                  CLOCK_MONOTONIC and the count so far
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bench/probe_kernel.h"

namespace vgpud::bench {
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
  void Run(uint32_t loops, uint32_t burst = 1) {
    void* parameters[] = {&loops};
    for (uint32_t i = 1; i < burst; ++i) kernel_.Launch(parameters);
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

constexpr uint64_t kTellEveryNs = 50'000'000;

struct Habit {
  uint32_t loops;
  uint64_t think_ns;
  bool sleeps;
  uint64_t ns;
  uint32_t burst;
};

uint64_t Count(Spinner& spinner, const Habit& habit) {
  for (int i = 0; i < 20; ++i) spinner.Run(habit.loops);
  uint64_t now = MonotonicNs(), told = now, done = 0;
  fmt::print("started\nat {} 0\n", now);
  std::fflush(stdout);
  for (const uint64_t end = now + habit.ns; now < end;) {
    spinner.Run(habit.loops, habit.burst);
    done += habit.burst;
    now = MonotonicNs();
    if (now - told >= kTellEveryNs) {
      fmt::print("at {} {}\n", now, done);
      std::fflush(stdout);
      told = now;
    }
    if (habit.sleeps) std::this_thread::sleep_for(Ns{habit.think_ns});
    for (const uint64_t until = now + habit.think_ns; now < until;) now = MonotonicNs();
  }
  return done;
}

}  // namespace
}  // namespace vgpud::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "calibrate") {
    vgpud::bench::Spinner spinner;
    fmt::print("{:.3f}\n", vgpud::bench::LoopsPerUs(spinner));
    return 0;
  }
  if (argc != 4 && argc != 5) {
    fmt::print(stderr, "usage: felt_probe calibrate | felt_probe LOOPS THINK_US SECONDS [BURST]\n");
    return 2;
  }
  const auto at_least_1 = [](const char* text) { return static_cast<uint32_t>(std::max(1, std::atoi(text))); };
  vgpud::bench::Spinner spinner;
  fmt::print("{}\n", vgpud::bench::Count(spinner, {.loops = at_least_1(argv[1]),
                                                   .think_ns = std::strtoull(argv[2], nullptr, 10) * 1000,
                                                   .sleeps = std::string_view(argv[2]).ends_with('s'),
                                                   .ns = static_cast<uint64_t>(std::atof(argv[3]) * 1e9),
                                                   .burst = argc == 5 ? at_least_1(argv[4]) : 1}));
  return 0;
}
