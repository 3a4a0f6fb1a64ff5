// SPDX-License-Identifier: Apache-2.0
// Knobs that are changed while VFs run: at once, together, often, and what is refused changes nothing.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "tests/integration/vgpud/policy_bed.h"

namespace vgpud::daemon {
namespace {

struct Refusal {
  const char* name;
  const char* method;
  const char* path;
  Json body;
  int status;
  const char* says;
};

// "a" has a guarantee and a limit, "b" has neither; policy reserve.
const std::vector<Refusal>& Refusals() {
  static const std::vector<Refusal> kAll = {
      {"weight 0", "PATCH", "/v1/vfs/a", {{"weight", 0}}, 400, "weight 0 is out of range: allowed is 1 to 10000"},
      {"slice 0", "PATCH", "/v1/vfs/a", {{"slice_us", 0}}, 400, "slice_us 0 is out of range: allowed is 100 to"},
      {"guarantee 1.5", "PATCH", "/v1/vfs/b", {{"guarantee", 1.5}}, 400, "allowed is 0 or 0.001 to 1 of the GPU"},
      {"sum", "PATCH", "/v1/vfs/b", {{"guarantee", 0.8}}, 409, "guarantees add up to 1.050, but 0."},
      {"sum of a new one", "POST", "/v1/vfs", {{"name", "c"}, {"guarantee", 0.8}}, 409, "guarantees add up to 1.050"},
      {"limit", "PATCH", "/v1/vfs/a", {{"limit", 0.1}}, 409, "VF a: guarantee 0.250 is more than limit 0.100"},
      {"slice by weight",
       "PATCH",
       "/v1/vfs/b",
       {{"weight", 4}},
       409,
       "VF b: weight 4 with base_slice_us 2000 makes 80"},
      {"unknown VF", "PATCH", "/v1/vfs/zz", {{"weight", 5}}, 404, "there is no vf \"zz\""},
      {"unknown VF to pause", "POST", "/v1/vfs/zz/pause", {}, 404, "there is no vf \"zz\""},
      {"unknown policy", "PATCH", "/v1/gpu", {{"policy", "fair"}}, 400, "there are strict, reserve, relaxed"},
      {"no policy", "PATCH", "/v1/gpu", {{"policy", 5}}, 400, "policy must be a name"},
      {"guarantee under strict", "PATCH", "/v1/gpu", {{"policy", "strict"}}, 409, "these VFs have one: a"},
      {"hold under reserve", "PATCH", "/v1/gpu", {{"idle", "hold"}}, 409, "policy reserve has no idle hold"},
      {"base slice", "PATCH", "/v1/gpu", {{"base_slice_us", 99}}, 400, "base_slice_us 99 is out of range"},
      {"min over max", "PATCH", "/v1/gpu", {{"min_slice_us", 30000}}, 409, "is more than max_slice_us 20000"},
      {"group weight", "PATCH", "/v1/gpu", {{"group_weight", {{"3", 0}}}}, 400, "group_weight 0 is out of range"},
      {"group number", "PATCH", "/v1/gpu", {{"group_weight", {{"64", 5}}}}, 400, "group 64 is out of range"},
      {"VF knob of the GPU", "PATCH", "/v1/gpu", {{"weight", 5}}, 400, "unknown field \"weight\""},
      {"nothing", "PATCH", "/v1/gpu", Json::object(), 400, "nothing to change"},
      {"half", "PATCH", "/v1/vfs/b", {{"weight", 5}, {"priority", 4}}, 400, "priority 4 is out of range"},
  };
  return kAll;
}

TEST(VgpudChanges, WhatIsWrongIsRefusedInOneLineAndChangesNothing) {
  PolicyBed bed({"--policy", "reserve"});
  bed.Create("a", {{"guarantee", 0.25}, {"limit", 0.5}});
  bed.Create("b");
  const Json before = bed.Configured();
  for (const Refusal& wrong : Refusals()) {
    for (const char* suffix : {"", "?dry_run=1"}) {
      const Reply reply = bed.Ask(wrong.method, std::string(wrong.path) + suffix, wrong.body);
      EXPECT_EQ(wrong.status, reply.status) << wrong.name << reply.json;
      const std::string error = reply.json.value("error", "");
      EXPECT_NE(std::string::npos, error.find(wrong.says)) << wrong.name << ": " << error;
      EXPECT_EQ(std::string::npos, error.find('\n')) << error;
      EXPECT_EQ(before, bed.Configured()) << wrong.name;
    }
  }
}

TEST(VgpudChanges, WhatIsAskedForWithDryRunIsWhatWouldHappen) {
  PolicyBed bed;
  bed.Busy({"a", "b"});
  struct Step {
    const char* method;
    const char* path;
    Json body;
  };
  const std::vector<Step> steps = {
      {"PATCH", "/v1/vfs/a", {{"weight", 300}, {"priority", 2}}},
      {"PATCH", "/v1/gpu", {{"policy", "reserve"}, {"base_slice_us", 1000}, {"group_weight", {{"7", 50}}}}},
      {"PATCH", "/v1/vfs/b", {{"guarantee", 0.25}, {"limit", 0.75}, {"burst_us", 500}, {"group", 7}}},
      {"PATCH", "/v1/gpu", {{"max_wait_us", 8000}, {"averaging_factor", 3}, {"floor_percent", 10}}},
      {"POST", "/v1/vfs/a/pause", {}},
      {"POST", "/v1/vfs/a/resume", {}},
  };
  for (const Step& step : steps) {
    const Json before = bed.Configured();
    const Json asked = bed.Do(step.method, std::string(step.path) + "?dry_run=1", step.body);
    EXPECT_EQ(before, bed.Configured()) << step.path;
    EXPECT_EQ(true, asked["dry_run"]);
    EXPECT_FALSE(asked.contains("round"));
    const Json done = bed.Do(step.method, step.path, step.body);
    EXPECT_EQ(asked["changes"], done["changes"]) << step.path;
    EXPECT_EQ(asked["effects"], done["effects"]) << step.path;
    EXPECT_FALSE(done["changes"].empty()) << step.path;
    EXPECT_FALSE(done["effects"].empty()) << step.path;
    EXPECT_TRUE(done["round"].is_number_unsigned());
    EXPECT_NE(before, bed.Configured()) << step.path;
  }
  const Json before = bed.Configured();
  const Json created = bed.Do("POST", "/v1/vfs?dry_run=1", {{"name", "c"}});
  EXPECT_EQ(before, bed.Configured());
  EXPECT_EQ("c", created["effects"].back()["vf"]);
  EXPECT_EQ(409, bed.Ask("POST", "/v1/vfs?dry_run=1", {{"name", "a"}}).status);
}

struct TracedTurn {
  uint64_t round;
  int64_t length;   // ns
  int64_t charged;  // without what the host made it longer
};
// The turns of the VF with that number, from the first one on.
std::vector<TracedTurn> TurnsOf(const PolicyBed& bed, unsigned vf) {
  const Json trace = bed.Do("GET", "/v1/trace?last_us=600000000");
  EXPECT_EQ(0, trace["otherData"]["lost"]);
  const std::string row = fmt::format("VF {} ", vf);
  Json tid;
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "thread_name" && event["args"]["name"].get<std::string>().starts_with(row)) tid = event["tid"];
  std::vector<TracedTurn> turns;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == tid) {
      const int64_t length = std::llround(event["dur"].get<double>() * 1000);
      turns.push_back({event["args"]["round"], length, length - event["args"]["host_delay_ns"].get<int64_t>()});
    }
  return turns;
}

// With the debts of all turns before: a turn is never shorter than its slice less what the VF owes.
TEST(VgpudChanges, ANewWeightShowsInEveryTurnFromTheSecondRoundOn) {
  PolicyBed bed;
  bed.Busy({"a", "b"});
  const uint64_t round = bed.Do("PATCH", "/v1/vfs/a", {{"weight", 1000}})["round"];
  EXPECT_TRUE(Eventually([&] { return bed.Stats()["round"] > round + 10; }));
  int64_t debt = 0;
  int after = 0, before = 0;
  for (const auto& [in_round, length, charged] : TurnsOf(bed, 0)) {
    const bool is_new = in_round >= round + 2;
    const bool may_be_new = in_round >= round && length >= 20'000'000 - debt;
    const int64_t full = is_new || may_be_new ? 20'000'000 : 2'000'000;
    debt %= full;  // it was passed over for each slice that it owed
    EXPECT_GE(length, full - debt) << "round " << in_round << ", changed in round " << round;
    debt = std::max<int64_t>(0, debt + charged - full);
    (is_new ? after : before) += 1;
  }
  EXPECT_GE(after, 8);
  EXPECT_GE(before, 2);
}

// Neither half of the second change would be allowed alone.
TEST(VgpudChanges, SeveralChangesAreOneAndTakeEffectTogether) {
  PolicyBed bed;
  bed.Busy({"a", "b"});
  Json change = bed.Do("PATCH", "/v1/settings",
                       {{"gpu", {{"policy", "reserve"}}},
                        {"vfs", {{"a", {{"guarantee", 0.8}}}, {"b", {{"guarantee", 0.1}, {"weight", 300}}}}}});
  EXPECT_GT(change["round"], 0);
  EXPECT_EQ(5u, change["changes"].size()) << change;  // policy, two guarantees, a weight and its slice
  const Json swap = {{"vfs", {{"a", {{"guarantee", 0.1}}}, {"b", {{"guarantee", 0.8}}}}}};
  EXPECT_EQ(409, bed.Ask("PATCH", "/v1/vfs/b", swap["vfs"]["b"]).status);
  const Json before = bed.Configured();
  EXPECT_EQ(true, bed.Do("PATCH", "/v1/settings?dry_run=1", swap)["dry_run"]);
  EXPECT_EQ(before, bed.Configured());
  bed.Do("PATCH", "/v1/settings", swap);
  EXPECT_EQ(0.1, bed.Do("GET", "/v1/vfs/a")["guarantee"]);
  EXPECT_EQ(0.8, bed.Do("GET", "/v1/vfs/b")["guarantee"]);
  const auto parts = bed.Parts(500ms);
  EXPECT_GT(parts.at("b"), parts.at("a"));
  // One wrong part and nothing of it is done.
  const Json now = bed.Configured();
  const Reply refused =
      bed.Ask("PATCH", "/v1/settings", {{"vfs", {{"a", {{"weight", 200}}}, {"b", {{"guarantee", 0.99}}}}}});
  EXPECT_EQ(409, refused.status);
  EXPECT_EQ("guarantee", refused.json["field"]);
  EXPECT_EQ(404,
            bed.Ask("PATCH", "/v1/settings", {{"vfs", {{"a", {{"weight", 200}}}, {"c", {{"weight", 1}}}}}}).status);
  EXPECT_EQ(now, bed.Configured());
  const Finished typed =
      bed.bed().Ctl({"apply", "--policy", "strict", "a:guarantee=none,weight=100", "b:guarantee=none,weight=100"});
  EXPECT_EQ(0, typed.status) << typed.err;
  EXPECT_NE(std::string::npos, typed.out.find("gpu policy reserve -> strict, effective at round")) << typed.out;
  EXPECT_NE(std::string::npos, typed.out.find("b weight 300 -> 100, effective at round")) << typed.out;
  EXPECT_EQ(2, bed.bed().Ctl({"apply"}).status);
  EXPECT_EQ(2, bed.bed().Ctl({"apply", "a:weight=1", "a:weight=2"}).status);
}

TEST(VgpudChanges, TheCommandLineTakesAndShowsEverything) {
  PolicyBed bed;
  const auto says = [&](std::vector<std::string> args, const char* text) {
    const Finished done = bed.bed().Ctl(std::move(args));
    EXPECT_EQ(0, done.status) << done.err;
    EXPECT_NE(std::string::npos, done.out.find(text)) << done.out;
  };
  says({"set-gpu", "--policy", "reserve", "--base-slice", "1ms", "--group-weight", "3=200"},
       "gpu policy strict -> reserve, effective at round ");
  says({"create", "a", "--guarantee", "25%", "--limit", "0.75", "--burst", "500us", "--group", "3", "--priority", "2"},
       "guarantee          25%");
  says({"create", "b", "--weight", "300", "--dry-run"}, "b share 0% -> ");
  says({"create", "b"}, "state              ready");
  says({"set", "b", "--weight", "300", "--dry-run"}, "b slice 1ms -> 3ms, not done");
  says({"set", "b", "--slice", "4ms"}, "b slice 1ms -> 4ms, effective at round ");
  says({"set", "b", "--weight", "100"}, "b: nothing changes");
  const Finished warned = bed.bed().Ctl({"set", "b", "--weight", "200", "--dry-run"});
  EXPECT_NE(std::string::npos, warned.out.find("b slice_fixed true -> false, not done")) << warned.out;
  EXPECT_EQ(
      "vgpuctl: warning: b: weight 200 ends its fixed slice of 4000 us, as a fixed slice has the same share whatever "
      "the "
      "weight; vgpuctl set b --slice 4000us fixes it again\n",
      warned.err);
  says({"set", "b", "--slice", "auto"}, "b slice_fixed true -> false");
  says({"set", "a", "--group", "none", "--limit", "none"}, "a limit 75% -> 100%");
  says({"pause", "a"}, "a paused false -> true, effective at round ");
  says({"pause", "a"}, "a: nothing changes");
  says({"list", "-o", "wide"}, "a     soft0  paused  0%    100     1ms    0%     2         -      25%        100%");
  says({"resume", "a"}, "b share ");
  says({"gpu"}, "policy             reserve");
  says({"gpu"}, "group_weight       {\"3\":200}");
  says({"stats", "a"}, "NAME");
  const Finished refused = bed.bed().Ctl({"set-gpu", "--policy", "strict"});
  EXPECT_EQ(5, refused.status);
  EXPECT_EQ(
      "vgpuctl: policy strict has no guarantee, but these VFs have one: a; take it away first (vgpuctl set NAME "
      "--guarantee none)\n",
      refused.err);
  EXPECT_EQ(2, bed.bed().Ctl({"set", "a", "--guarantee", "much"}).status);
  EXPECT_EQ(2, bed.bed().Ctl({"set-gpu"}).status);
}

TEST(VgpudChanges, ChangesRacingADestroyAreAnsweredClearly) {
  PolicyBed bed;
  bed.Busy({"other"});
  for (int round = 0; round < 5; ++round) {
    bed.Busy({"a"});
    std::atomic<bool> stop{false};
    std::thread changer{[&] {
      for (uint32_t weight = 1; !stop.load(); ++weight) {
        const Reply reply = bed.Ask("PATCH", "/v1/vfs/a", {{"weight", 20 + weight % 1000}});
        const bool clear = reply.status == 200 || reply.status == 404 || reply.status == 409;
        EXPECT_TRUE(clear) << reply.status << reply.json;
        if (reply.status == 200) continue;
        EXPECT_NE(std::string::npos, reply.json.value("error", "").find("\"a\"")) << reply.json;
      }
    }};
    bed.Do("DELETE", "/v1/vfs/a");
    stop.store(true);
    changer.join();
    EXPECT_EQ(404, bed.Ask("POST", "/v1/vfs/a/pause").status);
  }
  EXPECT_EQ(0, bed.Stats()["impossible_events"]);
}

std::vector<std::string> EightNames() {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back(fmt::format("vf{}", i));
  return names;
}

TEST(VgpudChanges, AChangeOfPolicyWhileEightVfsRunLosesNothing) {
  PolicyBed bed({"--base-slice-us", "1000"});
  const auto names = EightNames();
  bed.Busy(names);
  const char* const policies[] = {"reserve", "relaxed", "strict"};
  Json before = bed.Stats();
  for (int change = 0; change < 12; ++change) {
    const Json answer = bed.Do("PATCH", "/v1/gpu", {{"policy", policies[change % 3]}});
    EXPECT_EQ(policies[change % 3], answer["gpu"]["policy"]);
    EXPECT_GE(answer["round"], before["round"]);
    Json after;
    EXPECT_TRUE(Eventually([&] {
      after = bed.Stats();
      bool all = true;
      for (size_t i = 0; i < names.size(); ++i)
        all &= PolicyBed::Delta(before["vfs"][i], after["vfs"][i], "slices") >= 2;
      return all;
    })) << policies[change % 3];
    ExpectSound(before, after);
    before = after;
  }
}

// One change of any kind, mostly good ones.
Reply RandomChange(const PolicyBed& bed, std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const std::string vf = fmt::format("/v1/vfs/vf{}", pick(8));
  switch (pick(10)) {
    case 0:
      return bed.Ask("PATCH", "/v1/gpu", {{"policy", std::array{"strict", "reserve", "relaxed"}[pick(3)]}});
    case 1:
      return bed.Ask("PATCH", "/v1/gpu", {{"base_slice_us", 200 + pick(800)}, {"averaging_factor", 1 + pick(4)}});
    case 2:
      return bed.Ask("PATCH", "/v1/gpu", {{"group_weight", {{fmt::format("{}", pick(4)), 50 + pick(200)}}}});
    case 3:
      return bed.Ask("POST", vf + "/pause");
    case 4:
    case 5:
      return bed.Ask("POST", vf + "/resume");
    case 6:
      return bed.Ask("PATCH", vf, {{"priority", pick(4)}, {"group", pick(2) == 0 ? Json() : Json(pick(4))}});
    case 7:
      return bed.Ask("PATCH", vf, {{"guarantee", pick(3) * 0.05}, {"limit", 0.5 + pick(2) * 0.5}});
    case 8:
      return bed.Ask("PATCH", vf, {{"slice_us", pick(2) == 0 ? Json() : Json(200 + pick(800))}});
    default:
      return bed.Ask("PATCH", vf, {{"weight", pick(300)}});
  }
}

TEST(VgpudChanges, AThousandChangesPerSecondWhileEightVfsRunLoseNothing) {
  PolicyBed bed({"--base-slice-us", "500"});
  const auto names = EightNames();
  bed.Busy(names);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0}, refused{0};
  std::vector<std::thread> clients;
  for (unsigned seed = 0; seed < 8; ++seed)
    clients.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!stop.load()) {
        const Reply reply = RandomChange(bed, random);
        EXPECT_TRUE(reply.status == 200 || reply.status == 400 || reply.status == 409) << reply.status << reply.json;
        ++(reply.status == 200 ? done : refused);
      }
    });
  Json before = bed.Stats();
  const Json first = before;
  for (int look = 0; look < 15; ++look) {
    std::this_thread::sleep_for(200ms);
    const Json after = bed.Stats();
    ExpectSound(before, after);
    before = after;
  }
  stop.store(true);
  for (std::thread& client : clients) client.join();
  const double seconds = PolicyBed::Delta(first, bed.Stats(), "now_ns") / 1e9;
  fmt::print("{} changes done, {} refused in {:.1f} s: {:.0f} per second\n", done.load(), refused.load(), seconds,
             static_cast<double>(done + refused) / seconds);
  EXPECT_GT(done.load(), 200u);
  EXPECT_GT(refused.load(), 0u);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_GT(PolicyBed::Delta(first["vfs"][i], before["vfs"][i], "received_ns"), 0) << names[i];

  const Json usual = {{"weight", 100}, {"priority", 1}, {"group", nullptr}, {"guarantee", 0}, {"limit", 1}};
  for (const auto& name : names) {
    bed.Do("PATCH", "/v1/vfs/" + name, usual);
    bed.Do("POST", "/v1/vfs/" + name + "/resume");
  }
  bed.Do("PATCH", "/v1/gpu", {{"policy", "strict"}, {"averaging_factor", 1}, {"base_slice_us", 1000}});
  EXPECT_TRUE(Eventually([&] {
    const Json stats = bed.Stats();
    for (const Json& vf : stats["vfs"])
      if (vf["debt_ns"] > 5'000'000) return false;
    return true;
  }));
  for (const auto& [name, part] : bed.Parts(1s)) EXPECT_NEAR(1.0 / 8, part, 0.04) << name;
  for (const auto& name : names) EXPECT_EQ(1, bed.Do("GET", "/v1/vfs/" + name)["executors"]);
}

TEST(VgpudChanges, AResetCostsTheNeighboursAtMostARound) {
  PolicyBed bed({"--base-slice-us", "5000"});
  bed.Busy({"a", "b", "c"});
  const Json before = bed.Stats();
  constexpr int kResets = 5;
  for (int i = 0; i < kResets; ++i) {
    bed.Do("POST", "/v1/vfs/a/reset");
    bed.Open("a");
    const uint64_t received = bed.Figure("a", "received_ns");
    ASSERT_TRUE(Eventually([&] { return bed.Figure("a", "received_ns") > received; }));
  }
  const Json after = bed.Stats();
  const double rounds = PolicyBed::Delta(before, after, "round");
  for (size_t i = 1; i < 3; ++i) {
    const Json &was = before["vfs"][i], &is = after["vfs"][i];
    // A VF that the host made overrun sits out a round per slice that it owes.
    const double owed = (PolicyBed::Delta(was, is, "overrun_ns_total") + was["debt_ns"].get<double>()) / 5e6;
    EXPECT_GE(PolicyBed::Delta(was, is, "slices"), rounds - kResets - 1 - owed) << is["name"];
  }
  ExpectSound(before, after);
}

}  // namespace
}  // namespace vgpud::daemon
