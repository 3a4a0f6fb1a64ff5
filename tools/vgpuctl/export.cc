// SPDX-License-Identifier: Apache-2.0
// vgpuctl metrics, trace, report
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/text/numbers.h"
#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

constexpr Column kOfReport[] = {
    {"DAY", "day"},
    {"NAME", "name"},
    {"RECEIVED", "received_ns"},
    {"ENTITLED", "entitled_ns"},
    {"BORROWED", "borrowed_ns"},
    {"WAITED", "waited_ns"},
    {"TURNS", "turns"},
    {"FORCED", "forced_preemptions"},
    {"HANGS", "hangs"},
    {"OVERRUN", "overrun_ns"},
    {"KERNELS", "kernels"},
    {"DESTROYED", "destroyed"},
    {"DOMAIN", "domain"},
};
constexpr uint64_t kMostOfTraceUs = 600'000'000;  // as vgpud keeps it

// A file that is there only when it is whole; "-" is stdout.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {}
  ~Output() {
    if (file_ == nullptr || file_ == stdout) return;
    std::fclose(file_);
    std::remove(path_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Result<void> Write(std::string_view piece) {
    if (file_ == nullptr) file_ = path_ == "-" ? stdout : std::fopen(path_.c_str(), "w");
    if (file_ == nullptr) return FailErrno(fmt::format("cannot create {}", path_));
    if (std::fwrite(piece.data(), 1, piece.size(), file_) != piece.size())
      return FailErrno(fmt::format("cannot write {}", path_));
    return {};
  }
  Result<void> Finish() {
    std::FILE* const file = std::exchange(file_, nullptr);
    if (file == nullptr || (file == stdout ? std::fflush(file) : std::fclose(file)) != 0)
      return FailErrno(fmt::format("cannot write {}", path_));
    return {};
  }

 private:
  const std::string path_;
  std::FILE* file_ = nullptr;
};

// The object at the end of a trace.
CtlJson Counts(const std::string& end_of_trace) {
  static constexpr std::string_view kKey = "\"otherData\":";
  const size_t at = end_of_trace.rfind(kKey);
  const size_t end = at == std::string::npos ? at : end_of_trace.find('}', at);
  if (end == std::string::npos) return {};
  return CtlJson::parse(end_of_trace.substr(at + kKey.size(), end + 1 - at - kKey.size()), nullptr, false);
}

// Of a row of a report; some stand for many VFs.
std::string NameOf(const CtlJson& row) {
  if (!row.contains("vfs")) return Text(row, "name");
  const std::string tenant = Text(row, "tenant");
  return fmt::format("{}{}{} x{}", Text(row, "name"), tenant.empty() ? "" : " ", tenant, Number(row, "vfs"));
}

// "2026-11-20", "today" or "yesterday" (UTC) as vgpud takes it. Empty stays empty.
Result<std::string> DayOf(const char* option, const std::string& text) {
  using std::chrono::days, std::chrono::sys_days, std::chrono::year_month_day;
  const sys_days today = std::chrono::floor<days>(std::chrono::system_clock::now());
  if (text.empty()) return text;
  if (text == "today" || text == "yesterday") {
    const year_month_day day{text == "today" ? today : today - days{1}};
    return fmt::format("{:04}-{:02}-{:02}", int{day.year()}, unsigned{day.month()}, unsigned{day.day()});
  }
  const auto number = [&text](size_t at, size_t digits) {
    return at + digits <= text.size() ? ParseInteger<unsigned>(std::string_view(text).substr(at, digits))
                                      : std::nullopt;
  };
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (text.size() == 10 && text[4] == '-' && text[7] == '-' && year && month && day &&
      year_month_day{std::chrono::year{static_cast<int>(*year)}, std::chrono::month{*month}, std::chrono::day{*day}}
          .ok())
    return text;
  return Fail(std::errc::invalid_argument,
              fmt::format("{} \"{}\" is not a day (write it like 2026-11-20, today or yesterday, UTC)", option, text));
}

// As it comes: it may be longer than there is memory for.
int PrintReport(const CtlArgs& args, const std::string& query) {
  char last = 0;
  const auto asked = AskForStream(args, "/v1/report" + query, [&last](std::string_view piece) -> Result<void> {
    if (piece.find_last_not_of(" \n") != std::string_view::npos) last = piece[piece.find_last_not_of(" \n")];
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size()) return {};
    return FailErrno("cannot write the report");
  });
  if (!asked) return asked.error();
  return last == '}' ? kExitOk : Complain(kExitFailed, "vgpud's report has no end: its log says why; try again");
}

}  // namespace

int CmdMetrics(const CtlArgs& args) {
  const auto text = AskForText(args, "/metrics");
  return text ? PrintRaw(*text) : text.error();
}

int CmdTrace(const CtlArgs& args) {
  for (const char* format : {"table", "wide", "name", "csv", "json", "yaml"})
    if (args.file == format)
      return Complain(kExitUsage, fmt::format("-o of trace names its file: ./{} if that is its name", format));
  const auto length = ParseMicroseconds(args.last);
  if (!length) return Complain(kExitUsage, "--last " + length.error().context);
  if (*length < 1 || *length > kMostOfTraceUs)
    return Complain(kExitUsage, fmt::format("--last {} is out of range: allowed is 1us to 10min", args.last));
  constexpr size_t kEnd = 4096;  // as much as its last object takes, and more
  Output output{args.file};
  std::string end;
  const auto asked =
      AskForStream(args, fmt::format("/v1/trace?last_us={}{}{}", *length, args.gpu.empty() ? "" : "&gpu=", args.gpu),
                   [&](std::string_view piece) {
                     end += piece;
                     end.erase(0, end.size() - std::min(end.size(), kEnd));
                     return output.Write(piece);
                   });
  if (!asked) return asked.error();
  const CtlJson counts = Counts(end);
  if (!counts.is_object()) return Complain(kExitFailed, "vgpud's trace has no end; try again");
  if (const auto written = output.Finish(); !written) return Complain(kExitFailed, written.error().context);
  if (args.file == "-") return kExitOk;
  fmt::print("{}: {} turns{}; open it at https://ui.perfetto.dev\n", args.file, Number(counts, "turns"),
             Number(counts, "lost") == 0
                 ? ""
                 : fmt::format(", {} older ones lost (vgpud --trace-turns keeps more)", Number(counts, "lost")));
  return kExitOk;
}

int CmdReport(const CtlArgs& args) {
  if (!args.day.empty() && (!args.from.empty() || !args.to.empty()))
    return Complain(kExitUsage, "give --day, or --from and --to, not both");
  const auto day = DayOf("--day", args.day), from = DayOf("--from", args.from), to = DayOf("--to", args.to);
  for (const auto& each : {day, from, to})
    if (!each) return Complain(kExitUsage, each.error().context);
  std::string query;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key, value);
  };
  add("from", day->empty() ? *from : *day);
  add("to", day->empty() ? *to : *day);
  const bool is_whole = args.view.filters.empty() && args.view.sort.empty() && !args.view.reverse;
  if (args.view.format == Format::kJson && is_whole) return PrintReport(args, query);
  const auto answer = Ask(args, "GET", "/v1/report" + query);
  if (!answer) return answer.error();
  auto days = answer->json.value("rows", CtlJson::array()).get<CtlJson::array_t>();
  std::stable_sort(days.begin(), days.end(), [](const CtlJson& a, const CtlJson& b) {
    return std::pair(Text(a, "day"), Text(a, "name")) < std::pair(Text(b, "day"), Text(b, "name"));
  });
  Rows rows("rows", kOfReport);
  for (const CtlJson& row : days) {
    CtlJson shown = row;
    shown["name"] = NameOf(row);
    shown["destroyed"] = row.value("destroyed", false);
    rows.Add(std::move(shown), row);
  }
  return PrintRows(args.view, std::move(rows), answer->json);
}

}  // namespace vgpud::tools
