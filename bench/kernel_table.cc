// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

#include "base/clock.h"
#include "bench/pocl_kernels.h"
#include "bench/ptx_kernels.h"

namespace vgpud::bench {
namespace {

uint64_t ProcessCpuNs() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// The best of what was measured.
struct Best {
  double wall_ms = INFINITY;
  double cpu_ms = INFINITY;  // of the whole process
  void Measure(const std::function<void()>& work) {
    const uint64_t cpu = ProcessCpuNs();
    const uint64_t wall = MonotonicNs();
    work();
    wall_ms = std::min(wall_ms, static_cast<double>(MonotonicNs() - wall) / 1e6);
    cpu_ms = std::min(cpu_ms, static_cast<double>(ProcessCpuNs() - cpu) / 1e6);
  }
};

struct Row {
  const char* kernel;
  size_t output_words;
  bool floats;  // compared with a tolerance: the order of sums differs
};
constexpr Row kRowsOfTable[] = {{"vectoradd", kVectorCount, true},
                                {"matmul", kRows* kColumns, true},
                                {"reduction", 0, false},  // adds to what is there: each run has another result
                                {"collatz", kCollatzCount, false}};

void Compare(const Row& row, const std::vector<uint32_t>& ours, const std::vector<uint32_t>& theirs) {
  for (size_t n = 0; n < row.output_words; ++n) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, &ours[n], 4);
    std::memcpy(&b, &theirs[n], 4);
    if (row.floats ? std::abs(a - b) > 1e-3f * std::abs(a) : ours[n] != theirs[n])
      Die(std::string(row.kernel) + ": the soft GPU and PoCL differ at " + std::to_string(n));
  }
}

}  // namespace

void PrintKernelTable(const std::string& folder, int rounds) {
  std::string why;
  const auto pocl = PoclKernels::Make(why);
  double load[1] = {};
  ::getloadavg(load, 1);
  std::printf(
      "\nBest of %d rounds, the three in turns; load of this host %.1f. 1 thread: computing time; 2 threads: wall\n"
      "time, against that of 1 thread. PoCL: computing time, 1 thread (%s).\n",
      rounds, load[0], pocl ? pocl->Name().c_str() : why.c_str());
  std::printf("%-10s %10s %10s %8s %10s %10s %14s\n", "kernel", "1 thread", "2 threads", "ratio", "ours", "PoCL",
              "PoCL / ours");
  std::printf("%-10s %10s %10s %8s %10s %10s\n", "", "G th.i./s", "G th.i./s", "", "ms", "ms");
  for (const Row& row : kRowsOfTable) {
    Machine one(folder, row.kernel, 1);
    Machine two(folder, row.kernel, 2);
    const Machine::Count count = one.CountInstructions();
    Best ours, both, theirs;
    const auto run = [](Machine& m) { m.Finish(*m.Launch()); };
    for (int round = 0; round < rounds; ++round) {
      ours.Measure([&] { run(one); });
      both.Measure([&] { run(two); });
      if (pocl) theirs.Measure([&] { pocl->Run(row.kernel); });
    }
    if (pocl && row.output_words != 0) {
      Compare(row, one.Output(row.output_words), pocl->Output(row.kernel, row.output_words));
      Compare(row, two.Output(row.output_words), pocl->Output(row.kernel, row.output_words));
    }
    const double g = static_cast<double>(count.thread) / 1e6;
    std::printf("%-10s %10.2f %10.2f %7.2fx %10.3f ", row.kernel, g / ours.cpu_ms, g / both.wall_ms,
                ours.wall_ms / both.wall_ms, ours.cpu_ms);
    if (pocl) {
      std::printf("%10.3f %13.2fx\n", theirs.cpu_ms, theirs.cpu_ms / ours.cpu_ms);
    } else {
      std::printf("%10s %14s\n", "-", "-");
    }
  }
}

}  // namespace vgpud::bench
