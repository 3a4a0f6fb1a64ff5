// SPDX-License-Identifier: Apache-2.0
// A program that sleeps and then launches one kernel, again and again, for bench/wake_bench.py: how long from the call
// that launches it to its first instruction.
//
// usage: wake_probe TIMES SLEEP_US   prints p50, p99 and the longest, in microseconds
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/probe_kernel.h"

namespace vgpud::bench {
namespace {

// %globaltimer is the host's wall clock on the soft GPU, which a program there can read too.
constexpr char kStamp[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry stamp(.param .u64 out)
{
  .reg .u64 %t, %a;
  mov.u64 %t, %globaltimer;
  ld.param.u64 %a, [out];
  st.global.u64 [%a], %t;
  ret;
}
)";

uint64_t WallNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

std::vector<double> Waits(int times, std::chrono::microseconds sleep) {
  const ProbeKernel kernel(kStamp, "stamp");
  uint64_t out = 0;
  kernel.Call("cuMemAlloc_v2", &out, sizeof(uint64_t));
  void* parameters[] = {&out};
  std::vector<double> waits;
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(sleep);
    const uint64_t launched = WallNs();
    kernel.LaunchAndWait(parameters);
    uint64_t first = 0;
    kernel.Call("cuMemcpyDtoH_v2", static_cast<void*>(&first), out, sizeof(first));
    waits.push_back(static_cast<double>(std::max(first, launched) - launched) / 1000);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

}  // namespace
}  // namespace vgpud::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: wake_probe TIMES SLEEP_US\n");
    return 2;
  }
  const int times = std::max(1, std::atoi(argv[1]));
  const auto waits = vgpud::bench::Waits(times, std::chrono::microseconds(std::max(0, std::atoi(argv[2]))));
  fmt::print("{:.0f} {:.0f} {:.0f}\n", waits[waits.size() / 2], waits[waits.size() * 99 / 100], waits.back());
  return 0;
}
