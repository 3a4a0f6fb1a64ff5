// SPDX-License-Identifier: Apache-2.0
// vgpuctl stats
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

std::string Percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-"; }

double Real(const CtlJson& object, const char* key, double otherwise) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : otherwise;
}

std::string Us(const CtlJson& object, const char* key) {
  return FormatNanoseconds(static_cast<uint64_t>(1000 * Real(object, key, 0)));
}

std::string Jain(const CtlJson& stats, const char* window) {
  const CtlJson fairness = stats.value("fairness", CtlJson::object()).value(window, CtlJson::object());
  const double jain = Real(fairness, "jain", -1);
  return jain < 0 ? fmt::format("{} -", window) : fmt::format("{} {:.4f}", window, jain);
}

// What is said of the GPU, below the table.
std::string GpuLines(const CtlJson& stats, const std::string& name, bool total) {
  const CtlJson recent = stats.value("last_second", CtlJson::object());
  const auto time = [&](const char* use) {
    const uint64_t ns = total ? Number(stats, fmt::format("{}_total", use).c_str()) : Number(recent, use);
    return static_cast<double>(ns);
  };
  const double run = time("run_ns"), lost = time("switch_ns"), idle = time("idle_ns"), stalled = time("stall_ns");
  const double all = run + lost + idle + stalled;
  std::string text = fmt::format("{}: ", name);
  if (total || all > 0)
    text += fmt::format("run {}, switching {} (p99 {}), host stalls {}, idle {}", Percent(run, all), Percent(lost, all),
                        Us(stats, "switch_p99_us"), Percent(stalled, all), Percent(idle, all));
  else
    text += "idle";
  text += fmt::format("; fairness (Jain): {}, {}\n", Jain(stats, "1s"), Jain(stats, "60s"));
  const CtlJson history = stats.value("history", CtlJson::object());
  if (const std::string state = Text(history, "state"); state != "on")
    text += fmt::format("history {}: {}\n", state, Text(history, "error"));
  return text;
}

// What was done without turns, by the VFs that did most of it.
std::string HostWorkLines(const CtlJson& vfs) {
  constexpr size_t kMost = 5;
  std::vector<const CtlJson*> busy;
  for (const CtlJson& vf : vfs)
    if (Number(vf, "host_work_ns") != 0) busy.push_back(&vf);
  std::stable_sort(busy.begin(), busy.end(), [](const CtlJson* a, const CtlJson* b) {
    return Number(*a, "host_work_ns") > Number(*b, "host_work_ns");
  });
  std::string lines;
  for (size_t i = 0; i < std::min(busy.size(), kMost); ++i)
    lines += fmt::format("outside of turns: {} took {} of processors, {} modules of {} KiB\n", Text(*busy[i], "name"),
                         FormatNanoseconds(Number(*busy[i], "host_work_ns")), Number(*busy[i], "module_loads"),
                         Number(*busy[i], "module_bytes") / 1024);
  return lines;
}

// What a card that has less than was promised costs: memory that was moved off it and back.
std::string MovedLines(const CtlJson& vfs) {
  std::string lines;
  for (const CtlJson& vf : vfs) {
    if (Number(vf, "evictions") == 0 && Number(vf, "moved_bytes") == 0) continue;
    lines += fmt::format("memory of {}: {} times off the card, {} in {}, {} back in {}; {} in the host's memory now\n",
                         Text(vf, "name"), Number(vf, "evictions"), FormatBytes(Number(vf, "evicted_bytes")),
                         FormatNanoseconds(Number(vf, "evicting_ns")), FormatBytes(Number(vf, "returned_bytes")),
                         FormatNanoseconds(Number(vf, "returning_ns")), FormatBytes(Number(vf, "moved_bytes")));
  }
  return lines;
}

// The sums over all VFs of one GPU.
struct Sums {
  double entitled_ns = 0;
  double received_ns = 0;
};
using SumsByGpu = std::map<std::string, Sums>;

// A row of the last second: times as parts of it, counters in it.
CtlJson Now(const CtlJson& vf) {
  const CtlJson recent = vf.value("last_second", CtlJson::object());
  const auto window = static_cast<double>(Number(recent, "window_ns"));
  CtlJson row = vf;
  for (const char* what : {"entitled", "borrowed", "waited"})
    row[fmt::format("{}_part", what)] =
        window > 0 ? CtlJson(static_cast<double>(Number(recent, fmt::format("{}_ns", what).c_str())) / window)
                   : CtlJson();
  const uint64_t turns = Number(recent, "slices");
  row["wait_mean_ns"] = turns == 0 ? CtlJson() : CtlJson(Number(recent, "waited_ns") / turns);
  row["slices"] = turns;
  row["forced_preemptions"] = Number(recent, "forced_preemptions");
  return row;
}

// A row of the time since the VF was created: parts are those of its GPU.
CtlJson Total(const CtlJson& vf, const Sums& sums) {
  const auto part = [](uint64_t ns, double all) {
    return all > 0 ? CtlJson(static_cast<double>(ns) / all) : CtlJson();
  };
  CtlJson row = vf;
  row["entitled_part"] = part(Number(vf, "entitled_ns"), sums.entitled_ns);
  row["received_part"] = part(Number(vf, "received_ns"), sums.received_ns);
  row["turn_wait_p99_ns"] = static_cast<uint64_t>(1000 * Real(vf, "turn_wait_p99_us", 0));
  return row;
}

constexpr Column kNow[] = {
    {"NAME", "name"},
    {"WEIGHT", "weight"},
    {"SLICE", "slice_us"},
    {"UTIL", "utilization"},
    {"ENTITLED", "entitled_part"},
    {"BORROWED", "borrowed_part"},
    {"WAITED", "waited_part"},
    {"WAIT-MEAN", "wait_mean_ns"},
    {"SLICES", "slices"},
    {"FORCED", "forced_preemptions"},
    {"DEBT", "debt_ns"},
    {"ERR-1S", "share_error_1s"},
    {"ERR-60S", "share_error_60s"},
    {"GPU", "gpu", "soft0"},
    {"DOMAIN", "domain", "-"},
    {"STATE", "state", "ready"},
    {"PRIORITY", "priority", "1"},
    {"GROUP", "group", "-"},
    {"GUARANTEE", "guarantee", "0%"},
    {"LIMIT", "limit", "100%"},
};
constexpr Column kTotal[] = {
    {"NAME", "name"},
    {"WEIGHT", "weight"},
    {"SLICE", "slice_us"},
    {"ENTITLED", "entitled_part"},
    {"RECEIVED", "received_part"},
    {"TIME", "received_ns"},
    {"BORROWED", "borrowed_ns"},
    {"WAITED", "waited_ns"},
    {"WAIT-P99", "turn_wait_p99_ns"},
    {"SLICES", "slices"},
    {"FORCED", "forced_preemptions"},
    {"OVERRUN-MAX", "worst_overrun_ns"},
    {"DEBT", "debt_ns"},
    {"KERNELS", "kernels"},
    {"GPU", "gpu", "soft0"},
    {"DOMAIN", "domain", "-"},
    {"STATE", "state", "ready"},
    {"PRIORITY", "priority", "1"},
    {"GROUP", "group", "-"},
    {"GUARANTEE", "guarantee", "0%"},
    {"LIMIT", "limit", "100%"},
};

CtlJson VfsOf(const CtlJson& stats) { return stats.value("vfs", CtlJson::array()); }

SumsByGpu SumUp(const CtlJson& vfs) {
  SumsByGpu sums;
  for (const CtlJson& vf : vfs) {
    Sums& gpu = sums[Text(vf, "gpu")];
    gpu.entitled_ns += static_cast<double>(Number(vf, "entitled_ns"));
    gpu.received_ns += static_cast<double>(Number(vf, "received_ns"));
  }
  return sums;
}

}  // namespace

// Shows the last second, or with --total the time since the VFs were created. A VF has the same row alone and among
// all.
int CmdStats(const CtlArgs& args) {
  std::string path = args.name.empty() ? "/v1/stats" : "/v1/stats?vf=" + args.name;
  if (args.name.empty() && !args.gpu.empty()) path += "?gpu=" + args.gpu;
  const auto answer = Ask(args, "GET", path);
  if (!answer) return answer.error();
  const CtlJson vfs = VfsOf(answer->json);
  SumsByGpu sums = SumUp(vfs);
  if (args.total && !args.name.empty()) {
    const auto all = Ask(args, "GET", "/v1/stats");
    if (!all) return all.error();
    sums = SumUp(VfsOf(all->json));
  }
  std::string gpus;
  for (const CtlJson& gpu : answer->json.value("gpus", CtlJson::array()))
    gpus += GpuLines(gpu, Text(gpu, "name"), args.total);
  if (gpus.empty()) gpus = GpuLines(answer->json, "gpu", args.total);
  Rows rows("vfs", args.total ? std::span<const Column>(kTotal) : kNow);
  for (const CtlJson& vf : vfs) rows.Add(args.total ? Total(vf, sums[Text(vf, "gpu")]) : Now(vf), vf);
  return PrintRows(args.view, std::move(rows), answer->json,
                   gpus + (args.total ? HostWorkLines(vfs) + MovedLines(vfs) : ""));
}

}  // namespace vgpud::tools
