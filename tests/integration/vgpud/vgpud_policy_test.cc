// SPDX-License-Identifier: Apache-2.0
// Policies and knobs on the real daemon, with executors that burn time: what is set is what VFs get.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "tests/integration/vgpud/policy_bed.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

TEST(VgpudPolicy, EachOneGivesTheGpuByWeight) {
  PolicyBed bed;
  bed.Busy({"a"});
  bed.Busy({"b"}, {{"weight", 300}});
  for (const Json& settings : {Json{{"policy", "reserve"}}, Json{{"policy", "relaxed"}}, Json{{"policy", "strict"}},
                               Json{{"idle", "hold"}}, Json{{"policy", "relaxed"}}}) {
    const Json change = bed.Do("PATCH", "/v1/gpu", settings);
    EXPECT_EQ(1u, change["changes"].size()) << change;
    const Json before = bed.Stats();
    auto parts = bed.Parts(600ms);
    EXPECT_NEAR(0.25, parts["a"] / (parts["a"] + parts["b"]), 0.08) << settings;
    EXPECT_GT(parts["a"] + parts["b"], 0.9) << settings;
    ExpectSound(before, bed.Stats());
  }
}

TEST(VgpudPolicy, TheDaemonStartsWithWhatItIsTold) {
  PolicyBed bed({"--policy", "relaxed", "--idle", "hold", "--base-slice-us", "1000", "--averaging-factor", "4"});
  const Json gpu = bed.Do("GET", "/v1/gpu");
  EXPECT_EQ("relaxed", gpu["policy"]);
  EXPECT_EQ("hold", gpu["idle"]);
  EXPECT_EQ(1000, gpu["base_slice_us"]);
  EXPECT_EQ(4, gpu["averaging_factor"]);
  const std::string vgpud = std::getenv("VGPUD");
  const Finished bad = RunProgram({vgpud, "--policy", "fair"});
  EXPECT_EQ(2, bad.status);
  EXPECT_EQ(0u, bad.err.find("--policy: policy \"fair\" does not exist: there are strict, reserve, relaxed\n"))
      << bad.err;
  EXPECT_EQ(2, RunProgram({vgpud, "--policy", "reserve", "--idle", "hold"}).status);
  EXPECT_EQ(2, RunProgram({vgpud, "--averaging-factor", "61"}).status);
}

TEST(VgpudPolicy, AConfigurationFileIsReadAgainOnSighup) {
  const ScratchDir directory;
  const std::string file = directory.path() + "/vgpud.toml";
  const auto write = [&](const char* text) { std::ofstream(file) << text; };
  write("[gpu]\nbase_slice_us = 3000\nmax_slice_us = 50000\n");
  PolicyBed bed({"--config", file});
  bed.Busy({"a"});
  const auto knob = [&](const char* name) { return bed.Do("GET", "/v1/gpu")[name]; };
  EXPECT_EQ(3000, knob("base_slice_us"));
  bed.Do("PATCH", "/v1/gpu", {{"max_slice_us", 60'000}});
  const auto logged = [&](const std::string& text) { return bed.bed().Log().find(text) != std::string::npos; };

  // Of two that differ both, or none.
  write("[gpu]\nbase_slice_us = 4000\nmin_slice_us = 1\n");
  ::kill(bed.bed().pid(), SIGHUP);
  EXPECT_TRUE(
      Eventually([&] { return logged("reload: nothing is changed: " + file + ":3:1: [gpu] min_slice_us = 1: "); }));
  EXPECT_EQ(3000, knob("base_slice_us"));

  write("[gpu]\nbase_slice_us = 4000\nmax_slice_us = 50000\nsoft_gpu_threads = 2\n");
  ::kill(bed.bed().pid(), SIGHUP);
  EXPECT_TRUE(Eventually([&] { return logged("reload: done, 1 changed"); }));
  EXPECT_TRUE(logged("reload: gpu.base_slice_us 3000 -> 4000, from round "));
  EXPECT_TRUE(logged("reload: gpu.soft_gpu_threads 0 -> 2 takes effect when vgpud is started again"));
  EXPECT_EQ(4000, knob("base_slice_us"));
  EXPECT_EQ(60'000, knob("max_slice_us")) << "what the file says as before is nobody's business";
  EXPECT_EQ("ready", bed.Do("GET", "/v1/vfs/a")["state"]);
}

TEST(VgpudPolicy, RelaxedLetsAKernelFinishAndTakesTheTimeBack) {
  PolicyBed bed({"--policy", "relaxed"});
  bed.Busy({"long", "b"});
  const Json before = bed.Stats();
  auto parts = bed.Parts(1500ms);
  const Json after = bed.Stats();
  EXPECT_NEAR(0.5, parts["long"] / (parts["long"] + parts["b"]), 0.1);
  // Its kernels take 5 ms, its slice is 2 ms: no turn was cut short.
  ASSERT_EQ("long", after["vfs"][0]["name"]);
  EXPECT_GE(PolicyBed::Delta(before["vfs"][0], after["vfs"][0], "received_ns") /
                PolicyBed::Delta(before["vfs"][0], after["vfs"][0], "slices"),
            4e6);
  EXPECT_EQ(0, bed.Figure("long", "hangs"));
}

TEST(VgpudPolicy, HoldKeepsTheTurnOfWhoHasNoWork) {
  PolicyBed bed({"--idle", "hold"});
  bed.Busy({"busy"});
  bed.Create("silent");
  EXPECT_NEAR(0.5, bed.Parts(500ms)["busy"], 0.08);
  bed.Do("PATCH", "/v1/gpu", {{"idle", "yield"}});
  EXPECT_NEAR(1, bed.Parts(300ms)["busy"], 0.08);
}

TEST(VgpudPolicy, GuaranteeAQuarterLimitThreeQuartersHandsOver) {
  PolicyBed bed({"--policy", "reserve"});
  bed.Busy({"a", "b"}, {{"guarantee", 0.25}, {"limit", 0.75}, {"burst_us", 10'000}});
  bed.Parts(300ms);  // what was owed while only one had begun
  auto both = bed.Parts(1200ms);
  EXPECT_NEAR(0.5, both["a"], 0.08);
  EXPECT_NEAR(0.5, both["b"], 0.08);
  bed.Close("a");
  // A limit is a part of all time, also of what the host took.
  const Json before = bed.Stats();
  bed.Parts(800ms);
  const Json after = bed.Stats();
  const auto part = [&](const char* field) {
    return PolicyBed::Delta(before, after, field) / PolicyBed::Delta(before, after, "now_ns");
  };
  ASSERT_EQ("b", after["vfs"][1]["name"]);
  EXPECT_NEAR(
      0.75,
      PolicyBed::Delta(before["vfs"][1], after["vfs"][1], "received_ns") / PolicyBed::Delta(before, after, "now_ns"),
      0.04);
  EXPECT_NEAR(0.25, part("idle_ns_total") + part("stall_ns_total") + part("switch_ns_total"), 0.05);
  bed.Open("a");
  ASSERT_TRUE(Eventually([&] { return bed.Do("GET", "/v1/vfs/a")["executors"] == 1; }));
  bed.Parts(300ms);
  EXPECT_NEAR(0.5, bed.Parts(1200ms)["a"], 0.08);
}

// Processor time of the whole daemon, in seconds.
double CpuSeconds(pid_t pid) {
  std::stringstream text;
  text << std::ifstream(fmt::format("/proc/{}/stat", pid)).rdbuf();
  std::istringstream fields(text.str().substr(text.str().rfind(')') + 2));
  std::string skip;
  double user = 0, system = 0;
  for (int i = 0; i < 11; ++i) fields >> skip;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

TEST(VgpudPolicy, WhileEverybodyIsAtTheLimitTheDaemonSleepsButHearsOfNewWork) {
  PolicyBed bed({"--policy", "reserve", "--idle-grace-us", "0"});
  bed.Busy({"capped"}, {{"limit", 0.25}});
  const double cpu = CpuSeconds(bed.bed().pid());
  const TimePoint start = Now();
  // Nothing is asked in between: the daemon must wake up by itself, every 8 ms.
  const Json before = bed.Stats();
  std::this_thread::sleep_for(1s);
  const Json after = bed.Stats();
  EXPECT_NEAR(
      0.25,
      PolicyBed::Delta(before["vfs"][0], after["vfs"][0], "received_ns") / PolicyBed::Delta(before, after, "now_ns"),
      0.05);
  const double seconds = std::chrono::duration<double>(Now() - start).count();
  EXPECT_LT((CpuSeconds(bed.bed().pid()) - cpu) / seconds, 0.5);
  bed.Busy({"free"});
  EXPECT_GT(bed.Parts(500ms)["free"], 0.65);
}

TEST(VgpudPolicy, APausedVfLosesTheGpuAtOnceAndKeepsItsBooks) {
  PolicyBed bed;
  bed.Busy({"a"}, {{"slice_us", 1'000'000}});
  const Json paused = bed.Do("POST", "/v1/vfs/a/pause");
  EXPECT_EQ("paused", paused["vf"]["state"]);
  EXPECT_NE(std::string::npos, paused["vf"]["reason"].get<std::string>().find("vgpuctl resume"));
  EXPECT_EQ(Json::parse(R"([{"vf": "a", "field": "paused", "old": false, "new": true}])"), paused["changes"]);
  const uint64_t received = bed.Figure("a", "received_ns"), slices = bed.Figure("a", "slices");
  EXPECT_LT(received, slices * 1'000'000'000) << "its last slice was not cut short";
  bed.Busy({"b"});
  EXPECT_GT(bed.Parts(300ms)["b"], 0.95);
  EXPECT_EQ(received, bed.Figure("a", "received_ns"));
  EXPECT_EQ(slices, bed.Figure("a", "slices"));
  EXPECT_EQ(true, bed.Stats()["vfs"][0]["paused"]);
  EXPECT_EQ(0.0, bed.Stats()["vfs"][0]["share"]);
  bed.Do("PATCH", "/v1/vfs/a", {{"slice_us", nullptr}});
  EXPECT_EQ("paused", bed.Do("GET", "/v1/vfs/a")["state"]);
  EXPECT_EQ("ready", bed.Do("POST", "/v1/vfs/a/resume")["vf"]["state"]);
  EXPECT_TRUE(Eventually([&] { return bed.Figure("a", "received_ns") > received; }));
  EXPECT_EQ(Json::array(), bed.Do("POST", "/v1/vfs/a/resume")["changes"]);
}

}  // namespace
}  // namespace vgpud::daemon
