// SPDX-License-Identifier: Apache-2.0
// Fleets small enough to work out by hand, and small random ones against a player that has no short cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/sim/fleet/fleet_rig.h"
#include "tools/sim/fleet/synthetic.h"
#include "tools/sim/random.h"

namespace vgpud::tools::fleet {
namespace {

constexpr std::string_view kEngines[] = {"slurm", "kubernetes"};

TEST(FleetTest, EightDevelopersShareWhatOneHeld) {
  std::vector<FleetJob> jobs(8, Ask(0, 100, 1, 125));
  for (FleetJob& job : jobs) job.work = 100;
  for (const auto engine : kEngines) {
    const FleetOutcome whole = PlayRow(jobs, 100, Fleet(1, 1, 8), engine, "whole");
    EXPECT_DOUBLE_EQ(0.1, whole.used);
    EXPECT_DOUBLE_EQ(1, whole.held);
    EXPECT_DOUBLE_EQ(864, whole.jobs_per_day);
    EXPECT_EQ(300, whole.wait_p50);  // of 0, 100, ..., 700
    EXPECT_EQ(700, whole.wait_p95);
    EXPECT_EQ(700, whole.wait_max);
    EXPECT_EQ(350, whole.wait_mean);
    EXPECT_EQ(800, whole.last_end);
    const FleetOutcome pack = PlayRow(jobs, 100, Fleet(1, 1, 8), engine, "pack");
    EXPECT_DOUBLE_EQ(0.8, pack.used);
    EXPECT_DOUBLE_EQ(8 * 864, pack.jobs_per_day);
    EXPECT_EQ(0, pack.wait_max);
    EXPECT_EQ(100, pack.last_end);
  }
}

TEST(FleetTest, PackKeepsAGpuWholeAndSpreadDoesNot) {
  const std::vector<FleetJob> jobs = {Ask(0, 100, 1, 500), Ask(0, 100, 1, 500), Ask(0, 100, 1, 1000)};
  for (const auto engine : kEngines) {
    EXPECT_EQ(0, PlayRow(jobs, 100, Fleet(2, 1, 4), engine, "pack").wait_max);
    EXPECT_EQ(100, PlayRow(jobs, 100, Fleet(2, 1, 4), engine, "spread").wait_max);
  }
}

TEST(FleetTest, SlurmPacksInNodeOrderKubernetesByWhatIsTaken) {
  const std::vector<FleetJob> jobs = {Ask(0, 100, 1, 750), Ask(0, 1000, 1, 500), Ask(150, 1000, 1, 250),
                                      Ask(200, 10, 1, 1000)};
  // The third job goes beside the second in Kubernetes; in Slurm to the first host, which is empty by then.
  EXPECT_EQ(800, PlayRow(jobs, 1000, Fleet(2, 1, 4), "slurm", "pack").wait_max);
  EXPECT_EQ(0, PlayRow(jobs, 1000, Fleet(2, 1, 4), "kubernetes", "pack").wait_max);
}

TEST(FleetTest, SlurmSetsAHostAsideForTheFirstThatWaits) {
  const std::vector<FleetJob> jobs = {Ask(0, 100, 1, 1000), Ask(1, 10, 2, 1000), Ask(2, 50, 1, 1000),
                                      Ask(3, 200, 1, 1000)};
  // The third is done before the second's two GPUs are free and starts at once; the fourth would not be.
  const FleetOutcome slurm = PlayRow(jobs, 400, Fleet(2, 2, 1), "slurm", "pack");
  EXPECT_EQ(107, slurm.wait_max);  // the fourth; the second: 99
  EXPECT_EQ((0 + 99 + 0 + 107) / 4, slurm.wait_mean);
  const FleetOutcome kubernetes = PlayRow(jobs, 400, Fleet(2, 2, 1), "kubernetes", "pack");
  EXPECT_EQ(251, kubernetes.wait_max);  // the second; the fourth: 49
  EXPECT_EQ((0 + 251 + 0 + 49) / 4, kubernetes.wait_mean);
}

TEST(FleetTest, SlurmSetsAHostAsideAsSoonAsAJobWaits) {
  const std::vector<FleetJob> jobs = {Ask(0, 100, 1, 1000), Ask(1, 10, 2, 1000), Ask(2, 200, 1, 1000)};
  // There is room for the third, but it would keep the second from starting at 100.
  EXPECT_EQ(108, PlayRow(jobs, 400, Fleet(2, 2, 1), "slurm", "pack").wait_max);
  EXPECT_EQ(201, PlayRow(jobs, 400, Fleet(2, 2, 1), "kubernetes", "pack").wait_max);  // the second
}

TEST(FleetTest, NobodyHoldsMoreThanTheQuota) {
  FleetRules rules = Fleet(1, 1, 4);
  rules.quota = 0.5;
  std::vector<FleetJob> jobs(3, Ask(0, 100, 1, 250, 0));
  jobs.push_back(Ask(1, 100, 1, 250, 1));
  jobs.push_back(Ask(2, 100, 1, 750, 1));
  for (const auto engine : kEngines) {
    const FleetOutcome o = PlayRow(jobs, 200, rules, engine, "quota");
    EXPECT_EQ(100, o.wait_max);  // the third of red
    EXPECT_EQ(25, o.wait_mean);
    EXPECT_EQ(1u, o.refused);
    ASSERT_EQ(1u, o.why.size());
    EXPECT_EQ("job of blue: asks for 3 VFs, the quota of a tenant is 2", o.why[0]);
  }
}

TEST(FleetTest, TrainingsStartAtNightOnly) {
  for (const auto engine : kEngines) {
    const auto wait = [&](const FleetJob& job, FleetRules rules) {
      return PlayRow({job}, 10 * kDay, rules, engine, "night").wait_max;
    };
    FleetRules rules = Fleet(1, 1, 1);
    EXPECT_EQ(8 * kHour, wait(Training(12 * kHour, 60), rules));
    EXPECT_EQ(0, wait(Training(kDay + 20 * kHour, 60), rules));
    EXPECT_EQ(0, wait(Training(8 * kHour - 1, 60), rules));
    EXPECT_EQ(12 * kHour, wait(Training(8 * kHour, 60), rules));
    EXPECT_EQ(0, wait(Ask(12 * kHour, 60, 1, 1000), rules));
    rules.night_from = 1 * kHour;
    rules.night_to = 5 * kHour;
    EXPECT_EQ(20 * kHour, wait(Training(5 * kHour, 60), rules));
  }
}

TEST(FleetTest, ATrainingThatMissedTheNightWaitsForTheNext) {
  // The second finds no room all night; the GPU is free from 09:00, but it may start at 20:00 only.
  const std::vector<FleetJob> jobs = {Training(0, 9 * kHour), Training(1 * kHour, 60)};
  for (const auto engine : kEngines)
    EXPECT_EQ(19 * kHour, PlayRow(jobs, 2 * kDay, Fleet(1, 1, 1), engine, "night").wait_max);
}

TEST(FleetTest, WhatNeverFitsIsRefusedInWords) {
  for (const FleetPolicy& row : kFleetPolicies) {
    const FleetOutcome o = PlayRow({Ask(0, 5, 16, 1000), Ask(0, 5, 1, 125)}, 5, Fleet(20, 8, 8), row.engine, row.name);
    EXPECT_EQ(1u, o.refused);
    EXPECT_EQ(1u, o.jobs);
    ASSERT_EQ(1u, o.why.size());
    EXPECT_EQ("job of red: asks for 16 GPUs of one host, the largest has 8", o.why[0]);
  }
}

TEST(FleetTest, FiguresAreOfTheTimeLookedAt) {
  FleetRules rules = Fleet(2, 2, 4);
  rules.from = 50;
  const FleetOutcome o = PlayRow({Ask(0, 100, 1, 250)}, 150, rules, "slurm", "pack");
  EXPECT_DOUBLE_EQ(1.0 / 16, o.held);  // 1 of 8 slots, half of the time
  EXPECT_DOUBLE_EQ(1.0 / 16, o.used);
  EXPECT_DOUBLE_EQ(24.0 / 4, o.hours_per_day);             // 1 of 2 GPUs, half of the time
  EXPECT_DOUBLE_EQ(150.0 / (350 + 400), o.fragmentation);  // 3 slots for 50 s; free: 7, then 8
}

TEST(FleetTest, JainsIndexIsOfTenants) {
  const std::vector<FleetJob> jobs = {Ask(0, 100, 1, 1000, 0), Ask(0, 100, 1, 1000, 1)};
  EXPECT_DOUBLE_EQ(0.5, PlayRow(jobs, 100, Fleet(1, 1, 1), "slurm", "pack").jain.value());  // all and nothing
  EXPECT_DOUBLE_EQ(0.9, PlayRow(jobs, 150, Fleet(1, 1, 1), "slurm", "pack").jain.value());  // 1 and 0.5
  EXPECT_DOUBLE_EQ(1, PlayRow(jobs, 100, Fleet(2, 2, 1), "slurm", "pack").jain.value());
}

TEST(FleetTest, TheLongestAndWidestJobsDoNotWrap) {
  const std::vector<FleetJob> jobs(50'000, Ask(0, 3650 * kDay, 64, 1000));
  const FleetOutcome o = PlayRow(jobs, 3650 * kDay, Fleet(64, 64, 64), "kubernetes", "pack");
  EXPECT_EQ(50'000 * 3650 * kDay, o.last_end);
  EXPECT_NEAR(49'999 / 2.0 * 3650, static_cast<double>(o.wait_mean) / kDay, 1);
  EXPECT_DOUBLE_EQ(1, o.used);
}

// Without lines of like jobs, without knowing where there is no room: every job is tried at every event.
struct Plain {
  Seconds wait_sum = 0, wait_max = 0, last_end = 0;
};
Plain PlayPlainly(const JobList& list, const FleetRules& rules, Choice choice) {
  Hosts hosts(rules.size);
  std::multimap<Seconds, std::pair<Place, uint32_t>> running;
  std::vector<bool> started(list.jobs.size());
  Plain plain;
  for (size_t left = list.jobs.size(), now = 0; left > 0; ++now) {
    const auto time = static_cast<Seconds>(now);
    for (; !running.empty() && running.begin()->first == time; running.erase(running.begin()))
      hosts.Release(running.begin()->second.first, running.begin()->second.second);
    for (size_t i = 0; i < list.jobs.size(); ++i) {
      const FleetJob& job = list.jobs[i];
      if (started[i] || job.arrival > time) continue;
      const uint32_t slots = (job.part * rules.size.slots + 999) / 1000;
      const auto place = hosts.Find({job.gpus, slots}, choice, std::nullopt);
      if (!place) continue;
      hosts.Take(*place, slots);
      running.emplace(time + job.duration, std::pair(*place, slots));
      started[i] = true;
      --left;
      plain.wait_sum += time - job.arrival;
      plain.wait_max = std::max(plain.wait_max, time - job.arrival);
      plain.last_end = std::max(plain.last_end, time + job.duration);
    }
  }
  return plain;
}

TEST(FleetTest, ShortCutsChangeNothing) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed, 7);
    const auto upto = [&](uint32_t most) { return 1 + static_cast<uint32_t>(random.Unit() * most); };
    const FleetRules rules = Fleet(3 + upto(6), 1 + upto(2), upto(8));
    JobList list{.jobs = {}, .tenants = {"red"}, .end = 500};
    for (int i = 0; i < 60; ++i) {
      const uint32_t gpus = random.Unit() < 0.3 ? 2 : 1;
      list.jobs.push_back(Ask(upto(100), upto(60), gpus, gpus > 1 ? 1000 : upto(1000)));
    }
    std::stable_sort(list.jobs.begin(), list.jobs.end(),
                     [](const FleetJob& a, const FleetJob& b) { return a.arrival < b.arrival; });
    for (const char* name : {"pack", "spread"}) {
      const FleetPolicy& row = Row("kubernetes", name);
      const FleetOutcome o = Play(list, rules, row);
      const Plain plain = PlayPlainly(list, rules, row.choice);
      ASSERT_EQ(60u, o.jobs) << seed;
      ASSERT_EQ(plain.wait_max, o.wait_max) << seed;
      ASSERT_EQ(plain.wait_sum / 60, o.wait_mean) << seed;
      ASSERT_EQ(plain.last_end, o.last_end) << seed;
    }
  }
}

TEST(FleetTest, EveryPolicyRunsEveryMadeUpJobAndTheSameTwice) {
  const JobList jobs = MakeJobs({.jobs = 3000, .seed = 4, .days = 2});
  for (const FleetPolicy& row : kFleetPolicies) {
    const FleetOutcome o = Play(jobs, Fleet(60, 8, 8), row);
    const FleetOutcome again = Play(jobs, Fleet(60, 8, 8), row);
    EXPECT_EQ(3000u, o.jobs + o.refused);
    EXPECT_EQ(0u, o.refused);
    EXPECT_LE(o.used, o.held);
    EXPECT_LE(o.held, 1);
    EXPECT_EQ(o.wait_mean, again.wait_mean);
    EXPECT_EQ(o.last_end, again.last_end);
    EXPECT_EQ(o.used, again.used);
  }
}

TEST(MakeJobsTest, AreAsTheMixSays) {
  const JobList list = MakeJobs({.jobs = 20000, .seed = 3, .days = 5, .tenants = 4, .developers = 50, .services = 20});
  uint64_t developers = 0, services = 0, trainings = 0, gpus = 0, first = 0;
  for (size_t i = 0; i < list.jobs.size(); ++i) {
    const FleetJob& job = list.jobs[i];
    developers += job.part == 125;
    services += job.part == 250;
    trainings += job.training;
    gpus += job.training ? job.gpus : 0;
    first += job.tenant == 0;
    ASSERT_TRUE(i == 0 || list.jobs[i - 1].arrival <= job.arrival);
    ASSERT_LT(job.arrival, 5 * kDay);
    const Seconds time = job.arrival % kDay;
    ASSERT_TRUE(job.part != 125 || (9 * kHour <= time && time < 18 * kHour));
  }
  EXPECT_NEAR(10000, static_cast<double>(developers), 300);
  EXPECT_NEAR(4000, static_cast<double>(services), 250);
  EXPECT_NEAR(6000, static_cast<double>(trainings), 250);
  EXPECT_NEAR(2.0, static_cast<double>(gpus) / static_cast<double>(trainings), 0.1);  // 0.6 + 0.2*2 + 0.15*4 + 0.05*8
  EXPECT_NEAR(20000 * 12.0 / 25, static_cast<double>(first), 300);                    // 1 of 1 + 1/2 + 1/3 + 1/4
}

}  // namespace
}  // namespace vgpud::tools::fleet
