// What one scheduling decision costs: Next + Ended of policy `strict`, with 16, 128 and 1024 VFs, all of them or every
// fourth runnable. Target: at most 50 ns at 1024 VFs, at most 1.5 times the cost at 16.
#include <benchmark/benchmark.h>

#include <vector>

#include "sched/strict.h"

namespace vgpud {
namespace {

void BM_StrictDecision(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  const auto every = static_cast<uint32_t>(state.range(1));
  StrictPolicy policy{Ns{2'000'000}};
  std::vector<VfView> vfs;
  for (uint32_t i = 0; i < count; ++i) vfs.push_back({VfId{i}, 50 + i % 300, Ns{0}, i % every == 0});
  TimePoint now{};
  for (auto _ : state) {
    auto pick = policy.Next(vfs, now);
    now += pick->slice + Ns{20'000};
    policy.Ended(*pick, pick->slice + Ns{20'000}, now);
    benchmark::DoNotOptimize(pick);
  }
}
BENCHMARK(BM_StrictDecision)->ArgNames({"vfs", "one_in"})->ArgsProduct({{16, 128, 1024}, {1, 4}});

}  // namespace
}  // namespace vgpud

BENCHMARK_MAIN();
