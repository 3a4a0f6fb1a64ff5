// SPDX-License-Identifier: Apache-2.0
// Speed of the soft GPU: thread-instructions per second of whole kernels, with the sizes of tests/cuda, with one and
// two threads; how long a stop takes; at the end a table with PoCL's times beside ours.
//
//   ptx_bench FOLDER [--table-rounds=N] [benchmark flags]
//
// FOLDER holds vectoradd.ptx, matmul.ptx, reduction.ptx and collatz.ptx; N = 0: no table. Figures of a loaded host that
// mean something, as root and for a second only:
//
//   chrt -f 40 ptx_bench FOLDER --table-rounds=12 --benchmark_filter=none
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/kernel_table.h"
#include "bench/ptx_kernels.h"

namespace {

using vgpud::GpuGrid;
using vgpud::bench::Die;
using vgpud::bench::Machine;

std::string folder;

// Argument: threads. Rates are of wall time where there are several.
void RunKernel(benchmark::State& state, const char* kernel) {
  Machine m(folder, kernel, static_cast<uint32_t>(state.range(0)));
  const Machine::Count count = m.CountInstructions();
  for (auto _ : state) {
    const auto grid = m.Launch();
    m.Finish(*grid);
    if (grid->warp_instructions() != count.warp) Die("two runs, two counts of instructions");
  }
  const auto runs = static_cast<double>(state.iterations());
  const auto warp = runs * static_cast<double>(count.warp);
  const auto threads = runs * static_cast<double>(count.thread);
  state.counters["thread_instr/s"] = benchmark::Counter(threads, benchmark::Counter::kIsRate);
  state.counters["per_warp_instr"] =
      benchmark::Counter(warp, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["active_lanes"] = threads / warp;
}

void Register() {
  for (const char* kernel : {"vectoradd", "matmul", "reduction", "collatz"}) {
    const auto add = [&](int threads) {
      auto* b = benchmark::RegisterBenchmark(kernel, [kernel](benchmark::State& state) { RunKernel(state, kernel); })
                    ->Arg(threads)
                    ->ArgName("threads")
                    ->Unit(benchmark::kMillisecond);
      if (threads > 1) b->UseRealTime();
    };
    add(1);
    add(2);
  }
}

// Time from the change of a word by another thread, 100 us after `run` was entered, until `run` has returned because
// of it. The other thread spins on another core.
void StopLatency(benchmark::State& state, const std::function<void(const std::atomic<uint32_t>&, uint32_t)>& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  std::atomic<uint32_t> word{0};
  std::atomic<Clock::rep> changed_at{0};
  std::atomic<uint32_t> go{0};
  constexpr uint32_t kQuit = UINT32_MAX;
  std::thread stopper([&] {
    for (uint32_t round = 0;;) {
      const uint32_t next = go.load();
      if (next == kQuit) return;
      if (next == round) continue;
      round = next;
      const auto until = Clock::now() + std::chrono::microseconds(100);
      while (Clock::now() < until) {
      }
      changed_at = Clock::now().time_since_epoch().count();
      word.store(round);
    }
  });
  for (auto _ : state) {
    const uint32_t before = word.load();
    go = before + 1;
    run(word, before);
    const auto back = Clock::now().time_since_epoch().count();
    us.push_back(std::chrono::duration<double, std::micro>(Clock::duration(back - changed_at)).count());
  }
  go = kQuit;
  stopper.join();
  std::sort(us.begin(), us.end());
  state.counters["p50_us"] = us[us.size() / 2];
  state.counters["p99_us"] = us[us.size() * 99 / 100];
  state.counters["max_us"] = us.back();
}

void PreemptionLatency(benchmark::State& state) {
  Machine m(folder, "matmul", static_cast<uint32_t>(state.range(0)));
  auto grid = m.Launch();
  StopLatency(state, [&](const std::atomic<uint32_t>& word, uint32_t expected) {
    for (;;) {
      auto r = grid->Run({&word, expected}, UINT64_MAX);
      if (!r) Die(r.error().text);
      if (*r == GpuGrid::Progress::kStopped) return;
      grid = m.Launch();
    }
  });
}
BENCHMARK(PreemptionLatency)->ArgName("threads")->Arg(1)->Arg(2)->Iterations(5000)->UseRealTime();

// The same with a loop that does nothing but look at the word: what the host itself adds.
void BareFlagLatency(benchmark::State& state) {
  StopLatency(state, [](const std::atomic<uint32_t>& word, uint32_t expected) {
    while (word.load(std::memory_order_relaxed) == expected) {
    }
  });
}
BENCHMARK(BareFlagLatency)->Iterations(5000)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: ptx_bench <folder of .ptx files> [--table-rounds=N] [benchmark flags]");
  folder = argv[1];
  int table_rounds = 40;
  std::vector<char*> rest = {argv[0]};
  constexpr char kRounds[] = "--table-rounds=";
  for (int n = 2; n < argc; ++n) {
    if (std::strncmp(argv[n], kRounds, sizeof kRounds - 1) == 0) {
      table_rounds = std::atoi(argv[n] + sizeof kRounds - 1);
    } else {
      rest.push_back(argv[n]);
    }
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  Register();
  benchmark::RunSpecifiedBenchmarks();
  if (table_rounds > 0) vgpud::bench::PrintKernelTable(folder, table_rounds);
  return 0;
}
