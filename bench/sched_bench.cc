// SPDX-License-Identifier: Apache-2.0
// What one scheduling decision costs: Choose + Ended of each policy, with 16, 128 and 1024 VFs, of which all, every
// fourth or every 16th are runnable. Target: at most 50 ns at 1024 VFs and at most 1.5 times the cost at 16. BM_Show is
// what a caller pays who shows all VFs at every turn boundary instead of those that changed.
#include <benchmark/benchmark.h>

#include <vector>

#include "sched/account/account.h"
#include "sched/registry.h"
#include "sched/trace.h"

namespace vgpud::bench {
namespace {

struct Setup {
  const char* name;
  const char* policy;
  bool groups = false;
  bool guarantees = false;
};
constexpr Setup kSetups[] = {
    {"strict", "strict"},
    {"relaxed", "relaxed"},
    {"strict_groups_classes", "strict", true},
    {"reserve_no_guarantees", "reserve"},
    {"reserve", "reserve", false, true},
};

std::vector<VfView> Vfs(uint32_t count, uint32_t one_in, const Setup& setup) {
  std::vector<VfView> vfs;
  for (uint32_t i = 0; i < count; ++i) {
    VfView vf{VfId{i}, 50 + i % 300, Ns{0}, i % one_in == 0};
    if (setup.groups) {
      vf.group = static_cast<uint8_t>(i / one_in % 8);
      vf.priority = static_cast<uint8_t>(i / one_in % 2);
    }
    if (setup.guarantees) {
      vf.guarantee = 800'000 / count * one_in;
      vf.limit = 900'000;
    }
    vfs.push_back(vf);
  }
  return vfs;
}

void BM_Decision(benchmark::State& state, const Setup& setup) {
  const auto vfs = Vfs(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)), setup);
  const auto policy = *MakePolicy(setup.policy, {});
  TimePoint now{Ns{1}};
  policy->Show(vfs, now);
  for (auto _ : state) {
    auto pick = policy->Choose(now);
    if (!pick) {
      now = policy->Wake();
      continue;
    }
    now += pick->slice + Ns{20'000};
    policy->Ended(*pick, pick->slice + Ns{20'000}, now);
    benchmark::DoNotOptimize(pick);
  }
}

void BM_Show(benchmark::State& state) {
  const auto vfs = Vfs(static_cast<uint32_t>(state.range(0)), 1, kSetups[0]);
  const auto policy = *MakePolicy("strict", {});
  for (auto _ : state) policy->Show(vfs, TimePoint{});
}
BENCHMARK(BM_Show)->Arg(16)->Arg(64)->Arg(1024);

// What recording one turn costs the scheduler thread.
void BM_TraceAppend(benchmark::State& state) {
  SliceTrace trace{65'536};
  SliceRecord record{.vf = VfId{3}, .reason = TurnEnd::kSliceEnd, .start = TimePoint{Ns{1}}, .end = TimePoint{Ns{2}}};
  for (auto _ : state) {
    record.start += Ns{1'000'000};
    record.end += Ns{1'000'000};
    trace.Append(record);
  }
}
BENCHMARK(BM_TraceAppend);

// What accounting one turn costs: a boundary, a turn, its end. With idle VFs it is also told what is borrowed.
void BM_AccountTurn(benchmark::State& state) {
  const auto vfs = Vfs(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)), kSetups[0]);
  const auto policy = *MakePolicy("strict", {});
  Account account;
  TimePoint now{Ns{1}};
  for (auto _ : state) {
    account.Observe(vfs, *policy, now);
    account.Use(GpuUse::kRun, VfId{0}, now);
    now += Ns{2'000'000};
    account.Use(GpuUse::kSwitch, VfId{0}, now);
    account.Ended({.vf = VfId{0}, .overrun = Ns{500}, .used_up = true, .forced = true});
  }
}
BENCHMARK(BM_AccountTurn)->ArgNames({"vfs", "one_in"})->ArgsProduct({{8, 64, 1024}, {1, 4}});

// A whole turn boundary as Switcher has it: account, what the policy is shown, its decision, and the turn's end.
// `changes`: every boundary finds another VF with or without work, so that shares are asked for each time.
void BM_Boundary(benchmark::State& state, const Setup& setup) {
  auto vfs = Vfs(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)), setup);
  const bool changes = state.range(2) != 0;
  const auto policy = *MakePolicy(setup.policy, {});
  Account account;
  TimePoint now{Ns{1}};
  for (auto _ : state) {
    if (changes) vfs.back().runnable = !vfs.back().runnable;
    account.Observe(vfs, *policy, now);
    const auto pick = policy->Next(vfs, now);
    if (!pick) {
      now = policy->Wake();
      continue;
    }
    account.Use(GpuUse::kRun, pick->vf, now);
    now += pick->slice + Ns{20'000};
    account.Use(GpuUse::kSwitch, pick->vf, now);
    policy->Ended(*pick, pick->slice + Ns{20'000}, now);
    account.Ended({.vf = pick->vf, .overrun = Ns{20'000}, .used_up = true, .forced = true});
  }
}

int RegisterAll() {
  for (const Setup* setup : {&kSetups[0], &kSetups[4]})
    benchmark::RegisterBenchmark((std::string("BM_Boundary/") + setup->name).c_str(),
                                 [setup](benchmark::State& state) { BM_Boundary(state, *setup); })
        ->ArgNames({"vfs", "one_in", "changes"})
        ->ArgsProduct({{16, 64, 1024}, {2}, {0, 1}});
  for (const Setup& setup : kSetups)
    benchmark::RegisterBenchmark((std::string("BM_Decision/") + setup.name).c_str(),
                                 [&setup](benchmark::State& state) { BM_Decision(state, setup); })
        ->ArgNames({"vfs", "one_in"})
        ->ArgsProduct({{16, 128, 1024}, {1, 4, 16}});
  return 0;
}
[[maybe_unused]] const int kRegistered = RegisterAll();

}  // namespace
}  // namespace vgpud::bench

BENCHMARK_MAIN();
