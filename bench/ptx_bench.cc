// Speed of the soft GPU: thread-instructions per second of whole kernels, and how long a stop takes.
// usage: ptx_bench <folder with vectoradd.ptx, matmul.ptx, reduction.ptx, collatz.ptx>  [benchmark flags]
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gpu.h"

namespace {

using vgpud::Gpu;
using vgpud::GpuGrid;
using vgpud::GpuVa;

std::string folder;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "ptx_bench: %s\n", why.c_str());
  std::exit(1);
}

struct Machine {
  explicit Machine(const std::string& name) : gpu(vgpud::MakeSoftGpu(256 << 20)) {
    std::ifstream file(folder + "/" + name + ".ptx");
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    auto loaded = gpu->Load(std::as_bytes(std::span(text.data(), text.size())));
    if (!loaded) Die(name + ": " + loaded.error().text);
    module = std::move(*loaded);
    function = module->Function(name);
    if (function == nullptr) Die("no kernel " + name);
  }
  uint64_t Alloc(uint64_t bytes) {
    auto va = gpu->Alloc(bytes);
    if (!va) Die(va.error().text);
    if (auto r = gpu->Fill(*va, 0x3f800000, 4, bytes / 4); !r) Die(r.error().text);
    return Raw(*va);
  }
  std::unique_ptr<GpuGrid> Launch(const vgpud::LaunchShape& shape, const std::vector<uint64_t>& words) {
    auto grid = gpu->Launch(*function, shape, std::as_bytes(std::span(words)), 49152);
    if (!grid) Die(grid.error().text);
    return std::move(*grid);
  }
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<vgpud::GpuModule> module;
  const vgpud::FunctionInfo* function = nullptr;
  std::atomic<uint32_t> word{0};
};

// Full warps: a warp instruction counts for 32 thread-instructions; in collatz about half of them are idle.
void RunKernel(benchmark::State& state, Machine& m, const vgpud::LaunchShape& shape,
               const std::vector<uint64_t>& params) {
  uint64_t instructions = 0;
  for (auto _ : state) {
    const auto grid = m.Launch(shape, params);
    for (;;) {
      auto r = grid->Run({&m.word, 0}, UINT64_MAX);
      if (!r) Die(r.error().text);
      if (*r == GpuGrid::Progress::kDone) break;
    }
    instructions += grid->warp_instructions();
  }
  state.counters["thread_instr/s"] =
      benchmark::Counter(static_cast<double>(instructions) * 32, benchmark::Counter::kIsRate);
  state.counters["per_warp_instr"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void VectorAdd(benchmark::State& state) {
  Machine m("vectoradd");
  constexpr uint32_t kCount = 1 << 20;
  RunKernel(state, m, {{kCount / 256, 1, 1}, {256, 1, 1}, 0},
            {m.Alloc(kCount * 4), m.Alloc(kCount * 4), m.Alloc(kCount * 4), kCount});
}
BENCHMARK(VectorAdd)->Unit(benchmark::kMillisecond);

constexpr uint64_t kSide = 256;
vgpud::LaunchShape MatMulShape() { return {{kSide / 16, kSide / 16, 1}, {16, 16, 1}, 0}; }
std::vector<uint64_t> MatMulParams(Machine& m) {
  const uint64_t bytes = kSide * kSide * 4;
  return {m.Alloc(bytes), m.Alloc(bytes), m.Alloc(bytes), kSide | kSide << 32};
}

void MatMul(benchmark::State& state) {
  Machine m("matmul");
  RunKernel(state, m, MatMulShape(), MatMulParams(m));
}
BENCHMARK(MatMul)->Unit(benchmark::kMillisecond);

void Reduction(benchmark::State& state) {
  Machine m("reduction");
  constexpr uint32_t kCount = 1 << 20;
  std::vector<uint64_t> params;
  for (const auto& p : m.function->params) params.push_back(p.bytes == 8 ? m.Alloc(kCount * 4) : kCount);
  RunKernel(state, m, {{kCount / 256, 1, 1}, {256, 1, 1}, 0}, params);
}
BENCHMARK(Reduction)->Unit(benchmark::kMillisecond);

void Collatz(benchmark::State& state) {
  Machine m("collatz");
  constexpr uint32_t kCount = 1 << 16;
  std::vector<uint64_t> params;
  for (const auto& p : m.function->params) params.push_back(p.bytes == 8 ? m.Alloc(kCount * 8) : kCount);
  RunKernel(state, m, {{kCount / 256, 1, 1}, {256, 1, 1}, 0}, params);
}
BENCHMARK(Collatz)->Unit(benchmark::kMillisecond);

// Time from the change of the stop word by another thread until Run has returned.
void PreemptionLatency(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  Machine m("matmul");
  const auto params = MatMulParams(m);
  std::vector<double> us;
  std::atomic<Clock::rep> changed_at{0};
  std::atomic<bool> quit{false};
  std::atomic<uint32_t> go{0};
  std::thread stopper([&] {
    for (uint32_t round = 0; !quit;) {
      if (go.load() == round) {
        std::this_thread::yield();
        continue;
      }
      round = go.load();
      const auto until = Clock::now() + std::chrono::microseconds(100);
      while (Clock::now() < until) {
      }
      changed_at = Clock::now().time_since_epoch().count();
      m.word.store(round);
    }
  });
  auto grid = m.Launch(MatMulShape(), params);
  for (auto _ : state) {
    const uint32_t before = m.word.load();
    go = before + 1;
    for (;;) {
      auto r = grid->Run({&m.word, before}, UINT64_MAX);
      const auto back = Clock::now().time_since_epoch().count();
      if (!r) Die(r.error().text);
      if (*r == GpuGrid::Progress::kStopped) {
        us.push_back(std::chrono::duration<double, std::micro>(Clock::duration(back - changed_at)).count());
        break;
      }
      grid = m.Launch(MatMulShape(), params);
    }
  }
  quit = true;
  stopper.join();
  std::sort(us.begin(), us.end());
  state.counters["p50_us"] = us[us.size() / 2];
  state.counters["p99_us"] = us[us.size() * 99 / 100];
  state.counters["max_us"] = us.back();
}
BENCHMARK(PreemptionLatency)->Iterations(2000)->UseRealTime();

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
