// Speed of the soft GPU: thread-instructions per second of whole kernels, with the sizes of tests/cuda, and how long a
// stop takes.
// usage: ptx_bench <folder with vectoradd.ptx, matmul.ptx, reduction.ptx, collatz.ptx>  [benchmark flags]
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gpu/soft/grid.h"
#include "gpu/soft/soft_gpu.h"

namespace {

using vgpud::GpuGrid;
using vgpud::GpuVa;
using vgpud::soft::Grid;
using vgpud::soft::SoftGpu;

std::string folder;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "ptx_bench: %s\n", why.c_str());
  std::exit(1);
}

struct Machine {
  explicit Machine(const std::string& name) : gpu(256 << 20, vgpud::soft::BestIsa()) {
    std::ifstream file(folder + "/" + name + ".ptx");
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    auto loaded = gpu.Load(std::as_bytes(std::span(text.data(), text.size())));
    if (!loaded) Die(name + ": " + loaded.error().text);
    module = std::move(*loaded);
    function = module->Function(name);
    if (function == nullptr) Die("no kernel " + name);
  }
  // Filled with the float 1.0.
  uint64_t Alloc(uint64_t bytes) {
    auto va = gpu.Alloc(bytes);
    if (!va) Die(va.error().text);
    if (auto r = gpu.Fill(*va, 0x3f800000, 4, bytes / 4); !r) Die(r.error().text);
    return Raw(*va);
  }
  std::unique_ptr<GpuGrid> Launch(const vgpud::LaunchShape& shape, const std::vector<uint64_t>& words) {
    auto grid = gpu.Launch(*function, shape, std::as_bytes(std::span(words)), 49152);
    if (!grid) Die(grid.error().text);
    return std::move(*grid);
  }
  void Finish(GpuGrid& grid) {
    for (;;) {
      auto r = grid.Run({&word, 0}, UINT64_MAX);
      if (!r) Die(r.error().text);
      if (*r == GpuGrid::Progress::kDone) return;
    }
  }
  SoftGpu gpu;
  std::unique_ptr<vgpud::GpuModule> module;
  const vgpud::FunctionInfo* function = nullptr;
  std::atomic<uint32_t> word{0};
};

// Counts lanes that are active, in a run of its own. "full" is what it would be if every lane were.
void RunKernel(benchmark::State& state, Machine& m, const vgpud::LaunchShape& shape,
               const std::vector<uint64_t>& params) {
  const auto counted = m.Launch(shape, params);
  auto& counter = static_cast<Grid&>(*counted);
  counter.CountThreads();
  m.Finish(counter);
  uint64_t runs = 0;
  for (auto _ : state) {
    const auto grid = m.Launch(shape, params);
    m.Finish(*grid);
    if (grid->warp_instructions() != counted->warp_instructions()) Die("two runs, two counts of instructions");
    ++runs;
  }
  const auto warp = static_cast<double>(runs * counter.warp_instructions());
  const auto threads = static_cast<double>(runs * counter.thread_instructions());
  state.counters["thread_instr/s"] = benchmark::Counter(threads, benchmark::Counter::kIsRate);
  state.counters["per_warp_instr"] =
      benchmark::Counter(warp, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["active_lanes"] = threads / warp;
}

void VectorAdd(benchmark::State& state) {
  Machine m("vectoradd");
  constexpr uint32_t kCount = 300007;
  const uint64_t bytes = uint64_t{kCount} * 4;
  RunKernel(state, m, {{(kCount + 255) / 256, 1, 1}, {256, 1, 1}, 0},
            {m.Alloc(bytes), m.Alloc(bytes), m.Alloc(bytes), kCount});
}
BENCHMARK(VectorAdd)->Unit(benchmark::kMillisecond);

constexpr uint64_t kRows = 192;
constexpr uint64_t kColumns = 128;
constexpr uint64_t kDepth = 160;
vgpud::LaunchShape MatMulShape() { return {{kColumns / 16, kRows / 16, 1}, {16, 16, 1}, 0}; }
std::vector<uint64_t> MatMulParams(Machine& m) {
  return {m.Alloc(kRows * kDepth * 4), m.Alloc(kDepth * kColumns * 4), m.Alloc(kRows * kColumns * 4),
          kColumns | kDepth << 32};
}

void MatMul(benchmark::State& state) {
  Machine m("matmul");
  RunKernel(state, m, MatMulShape(), MatMulParams(m));
}
BENCHMARK(MatMul)->Unit(benchmark::kMillisecond);

void Reduction(benchmark::State& state) {
  Machine m("reduction");
  constexpr uint32_t kCount = 400003;
  const uint64_t bytes = uint64_t{kCount} * 4;
  RunKernel(state, m, {{24, 1, 1}, {256, 1, 1}, 0}, {m.Alloc(bytes), m.Alloc(bytes), kCount, m.Alloc(64)});
}
BENCHMARK(Reduction)->Unit(benchmark::kMillisecond);

void Collatz(benchmark::State& state) {
  Machine m("collatz");
  constexpr uint32_t kCount = 40001;
  RunKernel(state, m, {{(kCount + 127) / 128, 1, 1}, {128, 1, 1}, 0}, {m.Alloc(uint64_t{kCount} * 4), kCount});
}
BENCHMARK(Collatz)->Unit(benchmark::kMillisecond);

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
  Machine m("matmul");
  const auto params = MatMulParams(m);
  auto grid = m.Launch(MatMulShape(), params);
  StopLatency(state, [&](const std::atomic<uint32_t>& word, uint32_t expected) {
    for (;;) {
      auto r = grid->Run({&word, expected}, UINT64_MAX);
      if (!r) Die(r.error().text);
      if (*r == GpuGrid::Progress::kStopped) return;
      grid = m.Launch(MatMulShape(), params);
    }
  });
}
BENCHMARK(PreemptionLatency)->Iterations(5000)->UseRealTime();

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
  if (argc < 2) Die("usage: ptx_bench <folder of .ptx files> [benchmark flags]");
  folder = argv[1];
  argv[1] = argv[0];
  int rest = argc - 1;
  benchmark::Initialize(&rest, argv + 1);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
