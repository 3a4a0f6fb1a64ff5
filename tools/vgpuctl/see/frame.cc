// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/see/frame.h"

#include <fmt/core.h>
#include <pwd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"

namespace vgpud::tools {
namespace {

constexpr size_t kGpuBar = 20, kVfBar = 10, kLeastName = 9;

double Real(const CtlJson& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::string UsedBy(const CtlJson& vf) {
  if (const std::string domain = Text(vf, "domain"); !domain.empty()) return "domain " + domain;
  if (const std::string tenant = Text(vf, "tenant"); !tenant.empty()) return "tenant " + tenant;
  if (!vf.contains("owner_uid")) return "-";
  const uint64_t uid = Number(vf, "owner_uid");
  const passwd* const user = ::getpwuid(static_cast<uid_t>(uid));
  return "user " + (user != nullptr ? std::string(user->pw_name) : fmt::format("{}", uid));
}

// A VF on which no program runs waits for nothing.
std::string StateOf(const CtlJson& vf) {
  const std::string state = Text(vf, "state");
  if (state != "ready") return state;
  return Number(vf, "executors") == 0 ? "idle" : "running";
}

GpuRow RowOf(const CtlJson& gpu, const CtlJson& stats) {
  GpuRow row;
  row.name = Text(gpu, "name");
  row.policy = Text(gpu, "policy");
  row.vram_bytes = Number(gpu, "vram_bytes");
  row.vram_promised = Number(gpu, "vram_promised_bytes");
  const CtlJson recent = stats.value("last_second", CtlJson::object());
  const double all =
      Real(recent, "run_ns") + Real(recent, "switch_ns") + Real(recent, "idle_ns") + Real(recent, "stall_ns");
  if (all <= 0) return row;
  row.run = Real(recent, "run_ns") / all;
  row.switching = Real(recent, "switch_ns") / all;
  row.stalled = Real(recent, "stall_ns") / all;
  return row;
}

VfRow RowOf(const CtlJson& vf) {
  return {.name = Text(vf, "name"),
          .gpu = Text(vf, "gpu"),
          .state = StateOf(vf),
          .utilization = Real(vf, "utilization"),
          .share = Real(vf, "share"),
          .vram_used = Number(vf, "vram_used_bytes"),
          .vram_bytes = Number(vf, "vram_bytes"),
          .programs = Number(vf, "executors"),
          .weight = Number(vf, "weight"),
          .used_by = UsedBy(vf)};
}

// The figures of a GPU; one GPU has them at the top.
CtlJson StatsOf(const CtlJson& stats, const std::string& gpu) {
  if (!stats.contains("gpus")) return stats;
  for (const CtlJson& each : stats["gpus"])
    if (Text(each, "name") == gpu) return each;
  return CtlJson::object();
}

std::string Bar(double part, size_t width) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(width)));
  return fmt::format("[{:<{}}]", std::string(full, '#'), width);
}

std::string Line(const GpuRow& gpu) {
  return fmt::format("{} {} {:5.1f}%  switching {:.1f}%  host stalls {:.1f}%  VRAM {} used, {} promised{}  policy {}",
                     gpu.name, Bar(gpu.run, kGpuBar), 100 * gpu.run, 100 * gpu.switching, 100 * gpu.stalled,
                     FormatBytes(gpu.vram_used), FormatBytes(gpu.vram_promised),
                     gpu.vram_bytes == 0 ? "" : fmt::format(" of {}", FormatBytes(gpu.vram_bytes)), gpu.policy);
}

std::string Line(const VfRow& vf, size_t name_width) {
  const bool rests = vf.state == "lost" || vf.state == "failed";
  return fmt::format(
      "{:{}}  {:8}  {} {:4.0f}%  {:>5}  {:>6}  {:>8}  {:>17}  {:>4}  {}", vf.name, name_width, vf.state,
      Bar(vf.utilization, kVfBar), 100 * vf.utilization, rests ? "-" : fmt::format("{:.0f}%", 100 * vf.share),
      vf.weight == 0 ? "-" : fmt::format("{}", vf.weight),
      vf.wait_p99_ns == 0 ? "-" : FormatNanoseconds(vf.wait_p99_ns),
      fmt::format("{}/{}", FormatBytes(vf.vram_used), FormatBytes(vf.vram_bytes)), vf.programs, vf.used_by);
}

std::string Cut(std::string line, size_t width) {
  line.erase(line.find_last_not_of(' ') + 1);
  if (line.size() > width) line.resize(width);
  return line;
}

}  // namespace

Frame FrameOf(const CtlJson& gpus, const CtlJson& vfs, const CtlJson& stats) {
  Frame frame;
  std::map<std::string, uint64_t> waits, used;
  for (const CtlJson& vf : stats.value("vfs", CtlJson::array()))
    waits[Text(vf, "name")] = static_cast<uint64_t>(1000 * Real(vf, "turn_wait_p99_us"));
  for (const CtlJson& vf : vfs.value("vfs", CtlJson::array())) {
    VfRow row = RowOf(vf);
    row.wait_p99_ns = waits[row.name];
    used[row.gpu] += row.vram_used;
    frame.vfs.push_back(std::move(row));
  }
  for (const CtlJson& gpu : gpus.value("gpus", CtlJson::array())) {
    GpuRow row = RowOf(gpu, StatsOf(stats, Text(gpu, "name")));
    row.vram_used = used[row.name];
    frame.gpus.push_back(std::move(row));
  }
  return frame;
}

const std::vector<SortColumn>& SortColumns() {
  static const std::vector<SortColumn> columns{
      {"util", [](const VfRow& a, const VfRow& b) { return a.utilization > b.utilization; }},
      {"name", [](const VfRow& a, const VfRow& b) { return a.name < b.name; }},
      {"share", [](const VfRow& a, const VfRow& b) { return a.share > b.share; }},
      {"wait", [](const VfRow& a, const VfRow& b) { return a.wait_p99_ns > b.wait_p99_ns; }},
      {"vram", [](const VfRow& a, const VfRow& b) { return a.vram_used > b.vram_used; }},
      {"programs", [](const VfRow& a, const VfRow& b) { return a.programs > b.programs; }}};
  return columns;
}

const SortColumn* FindSortColumn(const std::string& name) {
  for (const SortColumn& column : SortColumns())
    if (column.name == name) return &column;
  return nullptr;
}

// VFs with the same figure keep the order of their names, so that rows do not jump.
void Sort(Frame& frame, const SortColumn& by) {
  std::sort(frame.vfs.begin(), frame.vfs.end(), [](const VfRow& a, const VfRow& b) { return a.name < b.name; });
  std::stable_sort(frame.vfs.begin(), frame.vfs.end(), by.before);
}

FrameText TextOf(const Frame& frame, size_t width) {
  FrameText text;
  size_t name_width = kLeastName;
  for (const VfRow& vf : frame.vfs) name_width = std::max(name_width, vf.name.size());
  for (const GpuRow& gpu : frame.gpus) text.gpus.push_back(Cut(Line(gpu), width));
  text.heading = Cut(fmt::format("{:{}}  {:8}  {:18}  {:>5}  {:>6}  {:>8}  {:>17}  {:>4}  {}", "VF", name_width,
                                 "STATE", "UTIL", "SHARE", "WEIGHT", "WAIT-P99", "VRAM", "PROC", "USED BY"),
                     width);
  for (const VfRow& vf : frame.vfs) text.vfs.push_back(Cut(Line(vf, name_width), width));
  return text;
}

CtlJson JsonOf(const Frame& frame) {
  CtlJson json{{"gpus", CtlJson::array()}, {"vfs", CtlJson::array()}};
  for (const GpuRow& gpu : frame.gpus)
    json["gpus"].push_back({{"name", gpu.name},
                            {"policy", gpu.policy},
                            {"run", gpu.run},
                            {"switching", gpu.switching},
                            {"stalled", gpu.stalled},
                            {"vram_used_bytes", gpu.vram_used},
                            {"vram_promised_bytes", gpu.vram_promised},
                            {"vram_bytes", gpu.vram_bytes}});
  for (const VfRow& vf : frame.vfs)
    json["vfs"].push_back({{"name", vf.name},
                           {"gpu", vf.gpu},
                           {"state", vf.state},
                           {"utilization", vf.utilization},
                           {"share", vf.share},
                           {"weight", vf.weight},
                           {"turn_wait_p99_ns", vf.wait_p99_ns},
                           {"vram_used_bytes", vf.vram_used},
                           {"vram_bytes", vf.vram_bytes},
                           {"programs", vf.programs},
                           {"used_by", vf.used_by}});
  return json;
}

}  // namespace vgpud::tools
