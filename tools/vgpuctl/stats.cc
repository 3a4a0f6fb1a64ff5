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
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

std::string Percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-"; }

double Real(const CtlJson& object, const char* key, double otherwise) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : otherwise;
}

std::string Points(const CtlJson& vf, const char* key) {
  const auto it = vf.find(key);
  return it != vf.end() && it->is_number() ? fmt::format("{:+.2f}", 100 * it->get<double>()) : "-";
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

// A column only where some VF differs from the usual: the table has to fit on a screen.
struct Setting {
  const char* heading;
  const char* field;
  const char* usual;
};
constexpr Setting kSettings[] = {{"GPU", "gpu", "soft0"},     {"DOMAIN", "domain", "none"},
                                 {"STATE", "state", "ready"}, {"PRIORITY", "priority", "1"},
                                 {"GROUP", "group", "none"},  {"GUARANTEE", "guarantee", "0%"},
                                 {"LIMIT", "limit", "100%"}};

std::string Shown(const CtlJson& vf, const Setting& setting) {
  return Readable(setting.field, vf.value(setting.field, CtlJson()));
}

std::vector<const Setting*> WorthShowing(const CtlJson& vfs) {
  std::vector<const Setting*> settings;
  for (const Setting& setting : kSettings)
    if (std::any_of(vfs.begin(), vfs.end(), [&](const CtlJson& vf) { return Shown(vf, setting) != setting.usual; }))
      settings.push_back(&setting);
  return settings;
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

struct Row {
  const CtlJson& vf;
  const CtlJson recent;  // the last second
  const Sums sums;       // of its GPU
};

std::string Word(const Row& row, const char* field) { return Text(row.vf, field); }
std::string Count(const Row& row, const char* field) { return fmt::format("{}", Number(row.vf, field)); }
std::string Time(const Row& row, const char* field) { return FormatNanoseconds(Number(row.vf, field)); }
std::string Micros(const Row& row, const char* field) { return FormatMicroseconds(Number(row.vf, field)); }
std::string P99(const Row& row, const char* field) { return Us(row.vf, field); }
std::string Error(const Row& row, const char* field) { return Points(row.vf, field); }
std::string Part(const Row& row, const char* field) { return Percent(Real(row.vf, field, 0), 1); }
std::string RecentCount(const Row& row, const char* field) { return fmt::format("{}", Number(row.recent, field)); }
// A part of the time that has passed.
std::string RecentPart(const Row& row, const char* field) {
  return Percent(static_cast<double>(Number(row.recent, field)), static_cast<double>(Number(row.recent, "window_ns")));
}
// A mean over its turns.
std::string RecentMean(const Row& row, const char* field) {
  const uint64_t turns = Number(row.recent, "slices");
  return turns == 0 ? "-" : FormatNanoseconds(Number(row.recent, field) / turns);
}
std::string OfAllEntitled(const Row& row, const char* field) {
  return Percent(static_cast<double>(Number(row.vf, field)), row.sums.entitled_ns);
}
std::string OfAllReceived(const Row& row, const char* field) {
  return Percent(static_cast<double>(Number(row.vf, field)), row.sums.received_ns);
}

struct Column {
  const char* heading;
  const char* field;
  std::string (*cell)(const Row&, const char* field);
};
constexpr Column kNow[] = {
    {"NAME", "name", &Word},
    {"WEIGHT", "weight", &Count},
    {"SLICE", "slice_us", &Micros},
    {"UTIL", "utilization", &Part},
    {"ENTITLED", "entitled_ns", &RecentPart},
    {"BORROWED", "borrowed_ns", &RecentPart},
    {"WAITED", "waited_ns", &RecentPart},
    {"WAIT-MEAN", "waited_ns", &RecentMean},
    {"SLICES", "slices", &RecentCount},
    {"FORCED", "forced_preemptions", &RecentCount},
    {"DEBT", "debt_ns", &Time},
    {"ERR-1S", "share_error_1s", &Error},
    {"ERR-60S", "share_error_60s", &Error},
};
constexpr Column kTotal[] = {
    {"NAME", "name", &Word},
    {"WEIGHT", "weight", &Count},
    {"SLICE", "slice_us", &Micros},
    {"ENTITLED", "entitled_ns", &OfAllEntitled},
    {"RECEIVED", "received_ns", &OfAllReceived},
    {"TIME", "received_ns", &Time},
    {"BORROWED", "borrowed_ns", &Time},
    {"WAITED", "waited_ns", &Time},
    {"WAIT-P99", "turn_wait_p99_us", &P99},
    {"SLICES", "slices", &Count},
    {"FORCED", "forced_preemptions", &Count},
    {"OVERRUN-MAX", "worst_overrun_ns", &Time},
    {"DEBT", "debt_ns", &Time},
    {"KERNELS", "kernels", &Count},
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

std::string TableOf(const CtlJson& vfs, const SumsByGpu& sums, std::span<const Column> columns) {
  const std::vector<const Setting*> settings = WorthShowing(vfs);
  std::vector<std::string> headings;
  for (const Column& column : columns) headings.push_back(column.heading);
  for (const Setting* setting : settings) headings.push_back(setting->heading);
  Table table{headings};
  for (const CtlJson& vf : vfs) {
    const auto of_gpu = sums.find(Text(vf, "gpu"));
    const Row row{vf, vf.value("last_second", CtlJson::object()), of_gpu != sums.end() ? of_gpu->second : Sums{}};
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(column.cell(row, column.field));
    for (const Setting* setting : settings) cells.push_back(Shown(vf, *setting));
    table.Row(cells);
  }
  return table.Text();
}

}  // namespace

// Shows the last second, or with --total the time since the VFs were created. A VF has the same row alone and among
// all.
int CmdStats(const CtlArgs& args) {
  std::string path = args.name.empty() ? "/v1/stats" : "/v1/stats?vf=" + args.name;
  if (args.name.empty() && !args.gpu.empty()) path += "?gpu=" + args.gpu;
  const auto answer = Ask(args, "GET", path);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
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
  const std::string table = TableOf(vfs, sums, args.total ? std::span<const Column>(kTotal) : kNow);
  return PrintRaw(table + gpus + (args.total ? HostWorkLines(vfs) + MovedLines(vfs) : ""));
}

}  // namespace vgpud::tools
