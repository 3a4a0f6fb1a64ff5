// SPDX-License-Identifier: Apache-2.0
// vgpuctl stats
#include <fmt/core.h>

#include <algorithm>
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
std::string GpuLines(const CtlJson& stats, const std::string& name) {
  const auto run = static_cast<double>(Number(stats, "run_ns_total"));
  const auto lost = static_cast<double>(Number(stats, "switch_ns_total"));
  const auto idle = static_cast<double>(Number(stats, "idle_ns_total"));
  const double all = run + lost + idle;
  std::string text = fmt::format("{}: run {}, switching {} (p99 {}), idle {}; fairness (Jain): {}, {}\n", name,
                                 Percent(run, all), Percent(lost, all), Us(stats, "switch_p99_us"), Percent(idle, all),
                                 Jain(stats, "1s"), Jain(stats, "60s"));
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
constexpr Setting kSettings[] = {{"DOMAIN", "domain", "none"},     {"STATE", "state", "ready"},
                                 {"PRIORITY", "priority", "1"},    {"GROUP", "group", "none"},
                                 {"GUARANTEE", "guarantee", "0%"}, {"LIMIT", "limit", "100%"}};

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

}  // namespace

// Shares in percent of all, errors in points of the last window, times of the whole life.
int CmdStats(const CtlArgs& args) {
  std::string path = args.name.empty() ? "/v1/stats" : "/v1/stats?vf=" + args.name;
  if (args.name.empty() && !args.gpu.empty()) path += "?gpu=" + args.gpu;
  const auto answer = Ask(args, "GET", path);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  const CtlJson vfs = answer->json.value("vfs", CtlJson::array());
  double received = 0, entitled = 0;
  for (const CtlJson& vf : vfs) {
    received += static_cast<double>(Number(vf, "received_ns"));
    entitled += static_cast<double>(Number(vf, "entitled_ns"));
  }
  const auto part = [](const CtlJson& vf, const char* key, double whole) {
    return Percent(static_cast<double>(Number(vf, key)), whole);
  };
  std::vector<std::string> headings{"NAME",    "WEIGHT",      "SLICE",    "ENTITLED", "RECEIVED", "ERR-1S",
                                    "ERR-60S", "TIME",        "BORROWED", "WAITED",   "WAIT-P99", "SLICES",
                                    "FORCED",  "OVERRUN-MAX", "DEBT",     "KERNELS"};
  const std::vector<const Setting*> settings = WorthShowing(vfs);
  for (const Setting* setting : settings) headings.push_back(setting->heading);
  Table table{headings};
  for (const CtlJson& vf : vfs) {
    const auto time = [&](const char* key) { return FormatNanoseconds(Number(vf, key)); };
    const auto count = [&](const char* key) { return fmt::format("{}", Number(vf, key)); };
    std::vector<std::string> row{Text(vf, "name"),
                                 count("weight"),
                                 FormatMicroseconds(Number(vf, "slice_us")),
                                 part(vf, "entitled_ns", entitled),
                                 part(vf, "received_ns", received),
                                 Points(vf, "share_error_1s"),
                                 Points(vf, "share_error_60s"),
                                 time("received_ns"),
                                 time("borrowed_ns"),
                                 time("waited_ns"),
                                 Us(vf, "turn_wait_p99_us"),
                                 count("slices"),
                                 count("forced_preemptions"),
                                 time("worst_overrun_ns"),
                                 time("debt_ns"),
                                 count("kernels")};
    for (const Setting* setting : settings) row.push_back(Shown(vf, *setting));
    table.Row(row);
  }
  std::string gpus;
  for (const CtlJson& gpu : answer->json.value("gpus", CtlJson::array())) gpus += GpuLines(gpu, Text(gpu, "name"));
  if (gpus.empty()) gpus = GpuLines(answer->json, "gpu");
  return PrintRaw(table.Text() + gpus + HostWorkLines(vfs) + MovedLines(vfs));
}

}  // namespace vgpud::tools
