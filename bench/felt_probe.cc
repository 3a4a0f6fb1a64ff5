// SPDX-License-Identifier: Apache-2.0
// A program that launches a kernel and waits for it, again and again, for bench/felt_bench.py.
//
// usage: felt_probe KERNEL_US THINK_US SECONDS [BURST]
//   Prints how many kernels it got done that need the GPU for KERNEL_US each: BURST (1) at a time, then a wait and so
//   much work of the host's (10000s: so much sleep). On the way "at NS COUNT", CLOCK_MONOTONIC and the count so far, of
//   each 10 ms at most, told each 250 ms: who reads it takes a processor.
//
// A kernel adds up the GPU's clock while it goes round. A round that took 20 us or more does not count: it was taken
// off the GPU, or the soft GPU's thread off its processor. So the length of a kernel is time on the GPU, however fast
// the host's processors run just then; on rented hosts that changes by half within a second.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/probe_kernel.h"

namespace vgpud::bench {
namespace {

constexpr char kSpin[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 length)
{
  .reg .u64 %length, %sum, %last, %now, %passed;
  .reg .pred %p;
  ld.param.u64 %length, [length];
  mov.u64 %sum, 0;
  mov.u64 %last, %globaltimer;
AGAIN:
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %last;
  mov.u64 %last, %now;
  setp.lt.u64 %p, %passed, 20000;
  @%p add.u64 %sum, %sum, %passed;
  setp.lt.u64 %p, %sum, %length;
  @%p bra AGAIN;
  ret;
}
)";

class Spinner {
 public:
  void Run(uint64_t ns, uint32_t burst = 1) {
    void* parameters[] = {&ns};
    for (uint32_t i = 1; i < burst; ++i) kernel_.Launch(parameters);
    kernel_.LaunchAndWait(parameters);
  }

 private:
  const ProbeKernel kernel_{kSpin, "spin"};
};

constexpr uint64_t kCountEveryNs = 10'000'000, kTellEveryNs = 250'000'000;

struct Habit {
  uint64_t kernel_ns;
  uint64_t think_ns;
  bool sleeps;
  uint64_t ns;
  uint32_t burst;
};

uint64_t Count(Spinner& spinner, const Habit& habit) {
  for (int i = 0; i < 20; ++i) spinner.Run(habit.kernel_ns);
  uint64_t now = MonotonicNs(), counted = now, told = now, done = 0;
  std::string counts;
  fmt::print("started\nat {} 0\n", now);
  std::fflush(stdout);
  for (const uint64_t end = now + habit.ns; now < end;) {
    spinner.Run(habit.kernel_ns, habit.burst);
    done += habit.burst;
    now = MonotonicNs();
    if (now - counted >= kCountEveryNs) {
      counts += fmt::format("at {} {}\n", now, done);
      counted = now;
    }
    if (now - told >= kTellEveryNs) {
      fmt::print("{}", std::exchange(counts, {}));
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
  if (argc != 4 && argc != 5) {
    fmt::print(stderr, "usage: felt_probe KERNEL_US THINK_US SECONDS [BURST]\n");
    return 2;
  }
  const auto at_least_1 = [](const char* text) { return static_cast<uint32_t>(std::max(1, std::atoi(text))); };
  vgpud::bench::Spinner spinner;
  fmt::print("{}\n", vgpud::bench::Count(spinner, {.kernel_ns = uint64_t{at_least_1(argv[1])} * 1000,
                                                   .think_ns = std::strtoull(argv[2], nullptr, 10) * 1000,
                                                   .sleeps = std::string_view(argv[2]).ends_with('s'),
                                                   .ns = static_cast<uint64_t>(std::atof(argv[3]) * 1e9),
                                                   .burst = argc == 5 ? at_least_1(argv[4]) : 1}));
  return 0;
}
