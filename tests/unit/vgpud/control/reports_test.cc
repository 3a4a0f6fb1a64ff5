// SPDX-License-Identifier: Apache-2.0
// Replies of the control API, whole: what docs/observability.md and programs that read them rely on.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/vgpud/control/vf_figures.h"
#include "vgpud/control/json.h"
#include "vgpud/control/metrics.h"
#include "vgpud/control/stats_json.h"
#include "vgpud/model/stats_report.h"
#include "vgpud/model/version.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

VfReport Vf() {
  VfReport vf;
  vf.name = "a";
  vf.uuid = "u-u";
  vf.state = "ready";
  vf.view = {VfId{3}, 300, 2ms};
  vf.view.priority = 2;
  vf.view.group = 7;
  vf.view.guarantee = 250'000;
  vf.view.limit = 500'000;
  vf.view.burst = 3ms;
  vf.view.wake_first = true;
  vf.wake_bound_ns = 25;
  vf.slice_us = 2'500;
  vf.share = 1.0 / 3;
  vf.vram_bytes = 11;
  vf.vram_used_bytes = 12;
  vf.host_memory_bytes = 13;
  vf.transient = true;
  vf.host_memory_used_bytes = 14;
  vf.executors = 15;
  vf.client_connected = true;
  for (size_t e = 0; e < kGuardedEvents; ++e) {
    vf.events.count[e] = 100 + e;
    vf.events.throttled[e] = 200 + e;
  }
  vf.events.throttled_ns = 16;
  vf.server = {.throttled = 17, .throttled_ns = 18, .unanswered_ns = 19, .hangs = 20, .log_lines_dropped = 21};
  vf.cpu_ns = 22;
  vf.gave_way = 23;
  vf.gave_way_ns = 24;
  vf.utilization = 0.25;
  vf.vfio_user_socket = "/r/vf/a.sock";
  vf.channel_socket = "/r/vf/a.channel.sock";
  return vf;
}

constexpr char kVf[] = R"({
  "name": "a", "uuid": "u-u", "state": "ready", "paused": false, "weight": 300, "slice_us": 2500, "slice_fixed": true,
  "share": 0.333333, "utilization": 0.25, "priority": 2, "group": 7, "guarantee": 0.25, "limit": 0.5, "burst_us": 3000, "wake_first": 1,
  "transient": true, "vram_bytes": 11, "vram_used_bytes": 12, "host_memory_bytes": 13, "host_memory_used_bytes": 14, "executors": 15,
  "client_connected": true, "vfio_user_socket": "/r/vf/a.sock", "channel_socket": "/r/vf/a.channel.sock",
  "events": {
    "doorbells": {"count": 100, "throttled": 200}, "commands": {"count": 101, "throttled": 201},
    "opens": {"count": 102, "throttled": 202}, "resets": {"count": 103, "throttled": 203},
    "bad_messages": {"count": 104, "throttled": 204}, "messages": {"count": 105, "throttled": 205},
    "faults": {"count": 106, "throttled": 206}, "interrupts": {"count": 107, "throttled": 207},
    "module_kib": {"count": 108, "throttled": 208}},
  "throttled_ns": 16,
  "server": {"throttled": 17, "throttled_ns": 18, "hangs": 20, "log_lines_dropped": 21}})";

Json Versioned(Json json) {
  json["apiVersion"] = "vgpud/v1";
  return json;
}

TEST(ReplyTest, AVf) {
  EXPECT_EQ(Versioned(Json::parse(kVf)), Json::parse(ToJson(Vf())));
  EXPECT_TRUE(ToJson(Vf()).starts_with("{\n  \"apiVersion\": \"vgpud/v1\",\n  \"name\": \"a\"")) << ToJson(Vf());
  EXPECT_EQ(Versioned({{"vfs", {Json::parse(kVf), Json::parse(kVf)}}}), Json::parse(ToJson(std::vector{Vf(), Vf()})));
}

TEST(ReplyTest, AVfThatNothingWasSaidOf) {
  const Json fresh = Json::parse(ToJson(VfReport{}));
  EXPECT_EQ(100, fresh["weight"]);
  EXPECT_EQ(nullptr, fresh["group"]);
  for (const char* off : {"slice_fixed", "paused", "client_connected"}) EXPECT_EQ(false, fresh[off]) << off;
  for (const char* nothing : {"slice_us", "share", "guarantee", "burst_us", "vram_bytes", "vram_used_bytes",
                              "host_memory_bytes", "host_memory_used_bytes", "executors", "throttled_ns"})
    EXPECT_EQ(0, fresh[nothing]) << nothing;
  for (const auto& [name, event] : fresh["events"].items()) EXPECT_EQ((Json{{"count", 0}, {"throttled", 0}}), event);
  for (const auto& [name, value] : fresh["server"].items()) EXPECT_EQ(0, value) << name;
  EXPECT_FALSE(fresh.contains("reason"));
  VfReport failed;
  failed.reason = "why";
  EXPECT_EQ("why", Json::parse(ToJson(failed))["reason"]);
  EXPECT_EQ(0u, failed.cpu_ns + failed.gave_way + failed.gave_way_ns + failed.server.unanswered_ns);
  EXPECT_EQ(1u, failed.gpu_threads);
}

TEST(ReplyTest, AVfSaysWhoseItIs) {
  VfReport vf = Vf();
  EXPECT_FALSE(Json::parse(ToJson(vf)).contains("domain"));
  vf.domain = {"guest \"a\"", "d-d"};
  Json json = Json::parse(ToJson(vf));
  EXPECT_EQ("guest \"a\"", json["domain"]);
  EXPECT_EQ("d-d", json["domain_uuid"]);
  EXPECT_FALSE(json.contains("ends_with_domain"));
  vf.domain.ends_vf = true;
  EXPECT_EQ(true, Json::parse(ToJson(vf))["ends_with_domain"]);
}

TEST(ReplyTest, AVfHasItsKernelFaultsWhereTheSchedulerThreadWasAsked) {
  VfReport vf = Vf();
  EXPECT_FALSE(Json::parse(ToJson(vf)).contains("kernel_faults"));
  vf.kernel_faults = KernelFaults{};
  EXPECT_EQ(Json::object(), Json::parse(ToJson(vf))["kernel_faults"]);
  vf.kernel_faults->Count(716, 4);
  EXPECT_EQ((Json{{"716", 4}}), Json::parse(ToJson(vf))["kernel_faults"]);
}

TEST(ReplyTest, AVfHasItsOwner) {
  VfReport vf = Vf();
  vf.owner = {.user = 1000, .group = {}};
  const Json json = Json::parse(ToJson(vf));
  EXPECT_EQ(1000, json["owner_uid"]);
  EXPECT_FALSE(json.contains("owner_gid"));
}

TEST(ReplyTest, TheGpu) {
  GpuReport gpu;
  gpu.name = "soft0";
  gpu.kind = "soft";
  gpu.capability = "8.6";
  gpu.settings.options.group_weights[0] = 7;
  gpu.settings.options.group_weights[63] = 200;
  gpu.preempt_timeout_us = 31;
  gpu.switch_cost = Ns{32};
  gpu.vfs = 33;
  gpu.vram_promised_bytes = 34;
  gpu.numa_node = 1;
  gpu.fifo = true;
  gpu.protections = {{"own-user", true, ""}, {"empty-root", false, "no"}};
  EXPECT_EQ(Versioned(Json::parse(R"({
      "name": "soft0", "kind": "soft", "compute_capability": "8.6", "policy": "strict", "idle": "yield", "base_slice_us": 2000, "max_wait_us": 0,
      "min_slice_us": 500, "max_slice_us": 20000, "averaging_factor": 1, "floor_percent": 5,
      "idle_grace_us": 50, "anticipate_percent": 90, "anticipate_us": 500, "group_weight": {"0": 7, "63": 200}, "preempt_timeout_us": 31, "switch_cost_ns": 32, "vfs": 33,
      "vram_bytes": null, "vram_promised_bytes": 34, "numa_node": 1,
      "scheduler_fifo": true, "protections": [{"name": "own-user", "in_force": true},
                                              {"name": "empty-root", "in_force": false, "why_not": "no"}]})")),
            Json::parse(ToJson(gpu)));
  const Json fresh = Json::parse(ToJson(GpuReport{}));
  for (const char* nothing : {"preempt_timeout_us", "switch_cost_ns", "vfs"}) EXPECT_EQ(0, fresh[nothing]) << nothing;
  EXPECT_EQ(false, fresh["scheduler_fifo"]);
  EXPECT_EQ(Json::object(), fresh["group_weight"]);
}

TEST(ReplyTest, AChange) {
  ChangeReport change;
  change.difference.changes = {{"a", "weight", uint64_t{1}, uint64_t{2}},
                               {"", "idle", std::string("yield"), std::string("hold")}};
  change.difference.effects = {{"b", "group", std::monostate{}, uint64_t{5}}, {"b", "share", 0.25, 0.5}};
  Json expected = Json::parse(R"({
      "changes": [{"vf": "a", "field": "weight", "old": 1, "new": 2}, {"field": "idle", "old": "yield", "new": "hold"}],
      "effects": [{"vf": "b", "field": "group", "old": null, "new": 5},
                  {"vf": "b", "field": "share", "old": 0.25, "new": 0.5}], "dry_run": true})");
  EXPECT_EQ(Versioned(expected), Json::parse(ToJson(change)));
  change.round = 9;
  change.vf = Vf();
  change.gpu = GpuReport{};
  const Json done = Json::parse(ToJson(change));
  EXPECT_EQ(false, done["dry_run"]);
  EXPECT_EQ(9, done["round"]);
  EXPECT_EQ(Json::parse(kVf), done["vf"]);
  EXPECT_TRUE(done["gpu"].contains("policy"));
}

// All figures differ: 1000, 1001, ... in the order of the table.
VfStats Figures(uint64_t first) {
  VfStats stats;
  for (const VfStatistic& row : VfStatistics()) row.set(stats, first++);
  for (const VfHistogram& histogram : VfHistograms()) histogram.edit(stats).Add(first += 1000);
  return stats;
}

StatsReport Stats() {
  StatsReport stats;
  stats.gpu.now_ns = 1;
  stats.gpu.round = 2;
  stats.gpu.run_ns = 3'000'000'003;
  stats.gpu.switch_ns = 4;
  stats.gpu.idle_ns = 5;
  stats.gpu.stall_ns = 6;
  stats.gpu.leaving_ns = 7;
  stats.gpu.impossible_events = 8;
  stats.gpu.fifo = true;
  stats.gpu.spin = 9500ns;
  stats.gpu.switches.Add(300);
  stats.gpu.switches.Add(300);
  stats.gpu.slice_ends.Add(5'000);
  stats.gpu.wake_ups.Add(70'000);
  stats.vfs = {{Vf(), Figures(1000), 25}};
  stats.vfs[0].recent.window_ns = 1000;
  stats.vfs[0].recent.account.received_ns = 480;
  stats.vfs[0].recent.account.waited_ns = 20;
  stats.vfs[0].vf.utilization = stats.vfs[0].recent.utilization();
  stats.recent = {1001, {501, 502, 503, 504}};
  stats.keys = {77};
  FairnessReport second{"1s", {}};
  second.figures = {1s, 0.98765432, {{77, 0.6, 0.4}, {78, 0.4, 0.6}}};
  stats.windows = {second, {"60s", {}}};
  stats.history = {"on", "", "/s/usage.db", 5};
  stats.traced_turns = 41;
  stats.trace_capacity = 42;
  stats.about.name = "soft0";
  stats.about.kind = "soft";
  stats.about.capability = "7.5";
  stats.about.vram_bytes = 50;
  stats.about.vram_promised_bytes = 51;
  stats.vfs[0].stats.work.faults.Count(700, 2);
  stats.vfs[0].stats.work.faults.Count(12345, 3);
  stats.about.protections = {{"own-user", true, ""}, {"empty-root", false, "no"}};
  return stats;
}

TEST(StatsReplyTest, TheGpusFigures) {
  Json json = Json::parse(ToJson(Stats()));
  json.erase("vfs");
  EXPECT_EQ(Json::parse(R"({"apiVersion": "vgpud/v1", "now_ns": 1, "round": 2, "run_ns_total": 3000000003,
      "switch_ns_total": 4, "idle_ns_total": 5, "stall_ns_total": 6, "leaving_ns": 7, "impossible_events": 8,
      "scheduler_fifo": true, "spin_us": 9.5,
      "last_second": {"window_ns": 1001, "run_ns": 501, "switch_ns": 502, "idle_ns": 503, "stall_ns": 504},
      "fairness": {"1s": {"window_ns": 1000000000, "busy_vfs": 2, "jain": 0.987654},
                   "60s": {"window_ns": 0, "busy_vfs": 0, "jain": null}},
      "trace": {"turns": 41, "capacity": 42}, "history": {"state": "on", "path": "/s/usage.db", "lost_vfs": 5},
      "switch_p50_us": 0.3, "switch_p99_us": 0.3, "switch_max_us": 0.3, "switch_ns_buckets": {"320": 2},
      "slice_end_late_p50_us": 5.0, "slice_end_late_p99_us": 5.0, "slice_end_late_max_us": 5.0,
      "slice_end_late_ns_buckets": {"5120": 1},
      "wake_late_p50_us": 70.0, "wake_late_p99_us": 70.0, "wake_late_max_us": 70.0,
      "wake_late_ns_buckets": {"81920": 1}})"),
            json);
  StatsReport failing = Stats();
  failing.history.error = "full";
  EXPECT_EQ("full", Json::parse(ToJson(failing))["history"]["error"]);
}

TEST(StatsReplyTest, PercentilesAreNotTheMost) {
  StatsReport stats = Stats();
  for (int i = 0; i < 98; ++i) stats.gpu.wake_ups.Add(300);
  stats.gpu.wake_ups.Add(1'000);
  const Json json = Json::parse(ToJson(stats));
  EXPECT_EQ(0.32, json["wake_late_p50_us"]);
  EXPECT_EQ(1.024, json["wake_late_p99_us"]);
  EXPECT_EQ(70.0, json["wake_late_max_us"]);
}

TEST(StatsReplyTest, AVfsFigures) {
  const Json vf = Json::parse(ToJson(Stats()))["vfs"][0];
  uint64_t value = 1000;
  EXPECT_EQ((Json{{"700", 2}, {"other", 3}}), vf["kernel_faults"]);
  for (const char* name : kVfFigures) EXPECT_EQ(value++, vf.value(name, uint64_t{0})) << name;
  const std::pair<const char*, int> kOwn[] = {
      {"cpu_ns", 22}, {"cpu_outside_turns_ns", 25}, {"gave_way", 23}, {"gave_way_ns", 24}, {"wake_bound_ns", 25}};
  for (const auto& [name, is] : kOwn) EXPECT_EQ(is, vf.value(name, 0)) << name;
  EXPECT_EQ(0.2, vf["share_error_1s"]);
  EXPECT_EQ(nullptr, vf["share_error_60s"]);
  EXPECT_EQ(0.48, vf["utilization"]);
  EXPECT_EQ(1000, vf["last_second"]["window_ns"]);
  EXPECT_EQ(480, vf["last_second"]["received_ns"]);
  EXPECT_EQ(20, vf["last_second"]["waited_ns"]);
  EXPECT_FALSE(vf["last_second"].contains("worst_overrun_ns")) << "of the whole life, not of a second";
  EXPECT_EQ("a", vf["name"]);
  EXPECT_EQ("ready", vf["state"]);
  EXPECT_EQ(false, vf["paused"]);
  EXPECT_EQ(300, vf["weight"]);
  double us = (1000 + std::size(kVfFigures)) / 1000.0;
  for (const char* name : {"drain", "channels_off_took", "overrun", "turn_wait", "wake_wait"})
    EXPECT_DOUBLE_EQ(us += 1, vf[fmt::format("{}_max_us", name)].get<double>()) << name;
}

std::string Value(const std::string& text, const std::string& sample) {
  const size_t at = text.find("\n" + sample + " ");
  return at == std::string::npos
             ? "none"
             : text.substr(at + sample.size() + 2, text.find('\n', at + 1) - at - sample.size() - 2);
}
std::string TypeOf(const std::string& text, const std::string& family) { return Value(text, "# TYPE " + family); }

TEST(MetricsTest, TheGpusSamples) {
  const std::string text = MetricsText(Stats());
  const std::pair<const char*, const char*> kSamples[] = {
      {"vgpud_gpu_run_seconds_total{gpu=\"soft0\"}", "3.000000003"},
      {"vgpud_gpu_switch_seconds_total{gpu=\"soft0\"}", "0.000000004"},
      {"vgpud_gpu_idle_seconds_total{gpu=\"soft0\"}", "0.000000005"},
      {"vgpud_gpu_stall_seconds_total{gpu=\"soft0\"}", "0.000000006"},
      {"vgpud_gpu_rounds_total{gpu=\"soft0\"}", "2"},
      {"vgpud_gpu_impossible_events_total{gpu=\"soft0\"}", "8"},
      {"vgpud_trace_turns_total{gpu=\"soft0\"}", "41"},
      {"vgpud_gpu_switch_duration_seconds_count{gpu=\"soft0\"}", "2"},
      {"vgpud_gpu_slice_end_late_seconds_sum{gpu=\"soft0\"}", "0.000005000"},
      {"vgpud_scheduler_wake_late_seconds_sum{gpu=\"soft0\"}", "0.000070000"},
      {"vgpud_gpu_vfs{gpu=\"soft0\"}", "1"},
      {"vgpud_scheduler_fifo{gpu=\"soft0\"}", "1"},
      {"vgpud_history_up{gpu=\"soft0\"}", "1"},
      {"vgpud_history_lost_vfs_total{gpu=\"soft0\"}", "5"},
      {"vgpud_gpu_info{gpu=\"soft0\",kind=\"soft\",policy=\"strict\",compute_capability=\"7.5\"}", "1"},
      {"vgpud_gpu_vram_bytes{gpu=\"soft0\"}", "50"},
      {"vgpud_gpu_vram_promised_bytes{gpu=\"soft0\"}", "51"},
      {"vgpud_gpu_vram_used_bytes{gpu=\"soft0\"}", "12"},
      {"vgpud_vf_kernel_faults_total{gpu=\"soft0\",vf=\"a\",error=\"700\"}", "2"},
      {"vgpud_vf_kernel_faults_total{gpu=\"soft0\",vf=\"a\",error=\"719\"}", "0"},
      {"vgpud_vf_kernel_faults_total{gpu=\"soft0\",vf=\"a\",error=\"other\"}", "3"},
      {"vgpud_protection{name=\"own-user\"}", "1"},
      {"vgpud_protection{name=\"empty-root\"}", "0"},
      {"vgpud_gpu_jain_index{gpu=\"soft0\",window=\"1s\"}", "0.98765432"},
      {"vgpud_gpu_jain_index{gpu=\"soft0\",window=\"60s\"}", "none"},
      {"vgpud_vf_share_error{gpu=\"soft0\",vf=\"a\",window=\"1s\"}", "0.19999999999999996"},
      {"vgpud_vf_share_error{gpu=\"soft0\",vf=\"a\",window=\"60s\"}", "none"},
      {"vgpud_vf_info{gpu=\"soft0\",vf=\"a\",uuid=\"u-u\",state=\"ready\"}", "1"},
      {"vgpud_vf_guest_events_total{gpu=\"soft0\",vf=\"a\",event=\"doorbells\"}", "100"},
      {"vgpud_vf_guest_events_total{gpu=\"soft0\",vf=\"a\",event=\"module_kib\"}", "108"},
      {"vgpud_vf_guest_events_throttled_total{gpu=\"soft0\",vf=\"a\",event=\"opens\"}", "202"},
  };
  for (const auto& [sample, value] : kSamples) EXPECT_EQ(value, Value(text, sample)) << sample;
  EXPECT_EQ("1", Value(text, fmt::format("vgpud_build_info{{version=\"{}\"}}", Version())));
  StatsReport unlimited = Stats();
  unlimited.about.vram_bytes = 0;
  EXPECT_EQ("none", Value(MetricsText(unlimited), "vgpud_gpu_vram_bytes{gpu=\"soft0\"}")) << "there is no limit";
  StatsReport owned = Stats();
  owned.vfs[0].vf.domain = {"guest \"a\"", "d-d"};
  EXPECT_EQ("1", Value(MetricsText(owned),
                       "vgpud_vf_info{gpu=\"soft0\",vf=\"a\",uuid=\"u-u\",state=\"ready\",domain=\"guest "
                       "\\\"a\\\"\",domain_uuid=\"d-d\"}"));
  EXPECT_EQ("guest \"a\"", Json::parse(ToJson(owned))["vfs"][0]["domain"]);
  StatsReport off = Stats();
  off.history.name = "off";
  off.gpu.fifo = false;
  EXPECT_EQ("0", Value(MetricsText(off), "vgpud_history_up{gpu=\"soft0\"}"));
  EXPECT_EQ("0", Value(MetricsText(off), "vgpud_scheduler_fifo{gpu=\"soft0\"}"));
}

TEST(MetricsTest, AVfsSamples) {
  const std::string text = MetricsText(Stats());
  for (const auto& sample : kVfSamples) {
    const std::string family = fmt::format("vgpud_vf_{}", sample.family);
    EXPECT_EQ(sample.type, TypeOf(text, family)) << family;
    EXPECT_EQ(sample.value, Value(text, family + "{gpu=\"soft0\",vf=\"a\"}")) << family;
  }
  for (const char* histogram : {"drain", "channels_off", "turn_overrun", "turn_wait", "wake_wait"}) {
    EXPECT_EQ("histogram", TypeOf(text, fmt::format("vgpud_vf_{}_seconds", histogram)));
    EXPECT_EQ("1", Value(text, fmt::format("vgpud_vf_{}_seconds_count{{gpu=\"soft0\",vf=\"a\"}}", histogram)));
  }
}

TEST(MetricsTest, ReportsThatNobodyFilledInSayNothing) {
  const StatsReport none;
  const std::string text = MetricsText(none);
  for (const char* zero : {"vgpud_gpu_run_seconds_total", "vgpud_gpu_switch_seconds_total",
                           "vgpud_gpu_idle_seconds_total", "vgpud_gpu_stall_seconds_total"})
    EXPECT_EQ("0.000000000", Value(text, zero + std::string("{gpu=\"\"}"))) << zero;
  for (const char* zero : {"vgpud_gpu_rounds_total", "vgpud_gpu_impossible_events_total", "vgpud_trace_turns_total",
                           "vgpud_gpu_vfs", "vgpud_scheduler_fifo", "vgpud_history_up", "vgpud_history_lost_vfs_total"})
    EXPECT_EQ("0", Value(text, zero + std::string("{gpu=\"\"}"))) << zero;
  const Json json = Json::parse(ToJson(none));
  for (const char* zero : {"now_ns", "leaving_ns", "spin_us"}) EXPECT_EQ(0, json[zero]) << zero;
  EXPECT_EQ((Json{{"turns", 0}, {"capacity", 0}}), json["trace"]);
}

TEST(MetricsTest, BucketsAreThePowersOfTwoFromOneMicrosecondToOneSecond) {
  StatsReport stats = Stats();
  stats.gpu.switches.Add(1'000'000'000);
  const std::string text = MetricsText(stats);
  const std::string family = "vgpud_gpu_switch_duration_seconds_bucket{gpu=\"soft0\",le=\"";
  size_t buckets = 0;
  for (size_t at = 0; (at = text.find(family, at)) != std::string::npos; at += family.size()) ++buckets;
  EXPECT_EQ(22u, buckets) << "2^10 to 2^30 ns, and all";
  EXPECT_EQ("none", Value(text, family + "5.12e-07\"}"));
  EXPECT_EQ("2", Value(text, family + "1.024e-06\"}"));
  EXPECT_EQ("2", Value(text, family + "0.536870912\"}"));
  EXPECT_EQ("3", Value(text, family + "1.073741824\"}"));
  EXPECT_EQ("none", Value(text, family + "2.147483648\"}"));
  EXPECT_EQ("3", Value(text, family + "+Inf\"}"));
}

TEST(ReportReplyTest, RowsStandBetweenHeadAndTail) {
  History::Vf vf{"u-u", "a", Figures(1000), true};
  const std::string text = ReportHead("2026-11-19", "2026-11-20") +
                           ReportRows({{"2026-11-20", vf}, {"2026-11-20", vf}}, "") +
                           ReportTail("2026-11-19", "2026-11-20");
  const Json row = Json::parse(R"({"day": "2026-11-20", "name": "a", "uuid": "u-u", "destroyed": true,
      "entitled_ns": 1000, "received_ns": 1001, "borrowed_ns": 1002, "unclaimed_ns": 1003, "runnable_ns": 1004,
      "waited_ns": 1005, "turns": 1006, "forced_preemptions": 1007, "overrun_ns": 1008, "hangs": 1010,
      "host_stalls": 1011, "active_ns": 1014,
      "active_gpu_ns": 1015, "active_thinking_ns": 1016, "active_others_ns": 1017,
      "active_switching_ns": 1018, "active_stalled_ns": 1019, "active_held_ns": 1020, "kernels": 1022, "warp_instructions": 1023})");
  EXPECT_EQ(Versioned({{"from", "2026-11-19"}, {"to", "2026-11-20"}, {"rows", {row, row}}}), Json::parse(text)) << text;
  EXPECT_EQ("", ReportRows({}, ""));
  vf.domain = {"guest-a", "d-d"};
  vf.tenant = "team-a";
  const Json owned = Json::parse(ReportRows({{"2026-11-20", vf}}, "left"));
  EXPECT_EQ("guest-a", owned["domain"]);
  EXPECT_EQ("d-d", owned["domain_uuid"]);
  EXPECT_EQ("team-a", owned["tenant"]);
  EXPECT_EQ("left", owned["gpu"]);
  EXPECT_FALSE(owned.contains("vfs"));
}

TEST(MetricsTest, SeveralGpusAreToldApart) {
  std::vector<StatsReport> gpus = {Stats(), Stats()};
  gpus[0].about.name = "left";
  gpus[1].about.name = "right";
  gpus[1].gpu.round = 99;
  gpus[1].vfs[0].vf.name = "b";
  const std::string text = MetricsText(gpus);
  EXPECT_EQ("2", Value(text, "vgpud_gpu_rounds_total{gpu=\"left\"}"));
  EXPECT_EQ("99", Value(text, "vgpud_gpu_rounds_total{gpu=\"right\"}"));
  EXPECT_EQ("1", Value(text, "vgpud_gpu_vfs{gpu=\"right\"}"));
  EXPECT_EQ("1", Value(text, "vgpud_vf_info{gpu=\"right\",vf=\"b\",uuid=\"u-u\",state=\"ready\"}"));
  EXPECT_EQ("none", Value(text, "vgpud_gpu_rounds_total"));
  const std::string family = "# TYPE vgpud_gpu_rounds_total";
  EXPECT_EQ(text.find(family), text.rfind(family)) << "a family is there once";
}

TEST(StatsReplyTest, SeveralGpusHaveTheirFiguresAndAllVfsOneList) {
  std::vector<StatsReport> gpus = {Stats(), Stats()};
  gpus[0].about.name = "left";
  gpus[1].about.name = "right";
  gpus[1].vfs[0].vf.gpu = "right";
  const Json json = Json::parse(ToJson(gpus));
  EXPECT_EQ("left", json["gpus"][0]["name"]);
  EXPECT_EQ(2, json["gpus"][1]["round"]);
  EXPECT_FALSE(json.contains("round")) << "whose would it be?";
  ASSERT_EQ(2u, json["vfs"].size());
  EXPECT_EQ("right", json["vfs"][1]["gpu"]);
  gpus.pop_back();
  EXPECT_EQ(ToJson(gpus[0]), ToJson(gpus)) << "one is told as ever";
}

}  // namespace
}  // namespace vgpud::daemon
