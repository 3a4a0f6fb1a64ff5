// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

using Json = nlohmann::ordered_json;

uint64_t Count(Ns t) { return static_cast<uint64_t>(t.count()); }
uint64_t Us(Ns t) { return Count(t) / 1000; }

std::string Percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-"; }
double Part(Ns part, Ns whole) {
  return whole > Ns{0} ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}
// -1 stands for "does not apply".
std::string Figure(double value, int digits) { return value < 0 ? "-" : fmt::format("{:.{}f}", value, digits); }
Json OrNull(double value) { return value < 0 ? Json(nullptr) : Json(value); }

std::string VfTable(const Outcome& outcome) {
  Table table{{"NAME",       "WEIGHT",   "SLICE",  "ENTITLED",    "RECEIVED",  "TIME",    "BORROWED",
               "WAITED",     "SLICES",   "FORCED", "OVERRUN-MAX", "DEBT",      "KERNELS", "USE",
               "WORST-WAIT", "WAKE-P99", "HANGS",  "ERROR-1S",    "ERROR-60S", "LAG"}};
  double received = 0;
  double entitled = 0;
  for (const VfOutcome& vf : outcome.vfs) {
    received += static_cast<double>(vf.account.received_ns);
    entitled += static_cast<double>(vf.account.entitled_ns);
  }
  for (const VfOutcome& vf : outcome.vfs) {
    const VfAccount& a = vf.account;
    table.Row({vf.name,
               fmt::format("{}", vf.weight),
               FormatMicroseconds(Us(vf.slice)),
               Percent(static_cast<double>(a.entitled_ns), entitled),
               Percent(static_cast<double>(a.received_ns), received),
               FormatNanoseconds(a.received_ns),
               FormatNanoseconds(a.borrowed_ns),
               FormatNanoseconds(a.waited_ns),
               fmt::format("{}", a.slices),
               fmt::format("{}", a.forced_preemptions),
               FormatNanoseconds(a.worst_overrun_ns),
               FormatNanoseconds(Count(vf.debt)),
               fmt::format("{}", vf.kernels),
               fmt::format("{:.1f}%", 100 * Part(vf.served, vf.present)),
               FormatNanoseconds(Count(vf.worst_wait)),
               FormatNanoseconds(vf.wake_wait.Percentile(99)),
               fmt::format("{}{}", a.hangs, vf.parked ? " parked" : ""),
               fmt::format("{:.2f}%", 100 * vf.share_error_1s),
               fmt::format("{:.2f}%", 100 * vf.share_error_60s),
               Figure(vf.lag_of_bound, 2)});
  }
  return table.Text();
}

Json VfJson(const VfOutcome& vf) {
  Json json{{"name", vf.name}, {"weight", vf.weight}, {"slice_us", Us(vf.slice)}};
  for (const AccountStatistic& row : kAccountStatistics) json[row.about.name] = vf.account.*row.value;
  json.update(Json{{"debt_ns", Count(vf.debt)},
                   {"parked", vf.parked},
                   {"kernels", vf.kernels},
                   {"served_ns", Count(vf.served)},
                   {"use", Part(vf.served, vf.present)},
                   {"worst_wait_ns", Count(vf.worst_wait)},
                   {"mean_wait_ns", Count(vf.mean_wait)},
                   {"wake_p50_ns", vf.wake_wait.Percentile(50)},
                   {"wake_p99_ns", vf.wake_wait.Percentile(99)},
                   {"wake_max_ns", vf.wake_wait.max_ns()},
                   {"wake_bound_ns", vf.wake_bound ? Json(Count(*vf.wake_bound)) : Json(nullptr)},
                   {"share_error_1s", vf.share_error_1s},
                   {"share_error_60s", vf.share_error_60s},
                   {"lag_of_bound", OrNull(vf.lag_of_bound)}});
  return json;
}

}  // namespace

std::string OutcomeTables(std::span<const Outcome> outcomes) {
  std::string text;
  Table summary{{"POLICY", "UTILISATION", "HOURS/DAY", "SWITCHING", "IDLE", "IDLE-WITH-WORK", "JAIN", "ERROR-1S",
                 "ERROR-60S", "LAG", "WORST-WAIT", "TURNS"}};
  for (const Outcome& o : outcomes) {
    text += fmt::format("policy {}, {} simulated\n{}\n", o.policy, FormatNanoseconds(Count(o.wall)), VfTable(o));
    const auto wall = static_cast<double>(o.wall.count());
    summary.Row({o.policy, Percent(o.Utilisation(), 1), fmt::format("{:.1f}", 24 * o.Utilisation()),
                 Percent(static_cast<double>(o.switch_ns), wall), Percent(static_cast<double>(o.idle_ns), wall),
                 Percent(static_cast<double>(o.idle_with_work.count()), wall), Figure(o.jain, 4),
                 fmt::format("{:.2f}%", 100 * o.share_error_1s), fmt::format("{:.2f}%", 100 * o.share_error_60s),
                 Figure(o.lag_of_bound, 2), FormatNanoseconds(Count(o.worst_wait)), fmt::format("{}", o.turns)});
  }
  return text + summary.Text();
}

std::string OutcomeJson(std::span<const Outcome> outcomes, uint64_t seed) {
  Json policies = Json::array();
  for (const Outcome& o : outcomes) {
    Json vfs = Json::array();
    for (const VfOutcome& vf : o.vfs) vfs.push_back(VfJson(vf));
    policies.push_back({{"policy", o.policy},
                        {"wall_ns", Count(o.wall)},
                        {"run_ns_total", o.run_ns},
                        {"switch_ns_total", o.switch_ns},
                        {"idle_ns_total", o.idle_ns},
                        {"idle_with_work_ns", Count(o.idle_with_work)},
                        {"utilisation", o.Utilisation()},
                        {"jain", OrNull(o.jain)},
                        {"share_error_1s", o.share_error_1s},
                        {"share_error_60s", o.share_error_60s},
                        {"lag_of_bound", OrNull(o.lag_of_bound)},
                        {"worst_wait_ns", Count(o.worst_wait)},
                        {"turns", o.turns},
                        {"rounds", o.rounds},
                        {"vfs", std::move(vfs)}});
  }
  return Json{{"seed", seed}, {"policies", std::move(policies)}}.dump(2) + "\n";
}

}  // namespace vgpud::tools
