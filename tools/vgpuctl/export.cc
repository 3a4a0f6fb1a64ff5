// vgpuctl metrics, trace, report
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/table.h"
#include "tools/vgpuctl/units.h"

namespace vgpud {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int WriteFile(const std::string& path, const std::string& text) {
  std::unique_ptr<std::FILE, CloseFile> file{std::fopen(path.c_str(), "w")};
  if (file == nullptr) return Complain(kExitFailed, fmt::format("cannot create {}: {}", path, std::strerror(errno)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || std::fclose(file.release()) != 0)
    return Complain(kExitFailed, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return kExitOk;
}

// The object at the end of a trace.
CtlJson Counts(const std::string& trace) {
  static constexpr std::string_view kKey = "\"otherData\":";
  const size_t at = trace.rfind(kKey);
  const size_t end = at == std::string::npos ? at : trace.find('}', at);
  if (end == std::string::npos) return {};
  return CtlJson::parse(trace.substr(at + kKey.size(), end + 1 - at - kKey.size()), nullptr, false);
}

}  // namespace

int CmdMetrics(const CtlArgs& args) {
  const auto text = AskForText(args, "/metrics");
  return text ? PrintRaw(*text) : text.error();
}

int CmdTrace(const CtlArgs& args) {
  const auto length = ParseMicroseconds(args.last);
  if (!length) return Complain(kExitUsage, "--last " + length.error().context);
  const auto trace = AskForText(args, fmt::format("/v1/trace?last_us={}", *length));
  if (!trace) return trace.error();
  const CtlJson counts = Counts(*trace);
  if (!counts.is_object()) return Complain(kExitFailed, "vgpud's trace has no end; try again");
  if (args.file == "-") return PrintRaw(*trace);
  if (const int failed = WriteFile(args.file, *trace); failed != kExitOk) return failed;
  fmt::print("{}: {} turns{}; open it at https://ui.perfetto.dev\n", args.file, Number(counts, "turns"),
             Number(counts, "lost") == 0
                 ? ""
                 : fmt::format(", {} older ones lost (vgpud --trace-turns keeps more)", Number(counts, "lost")));
  return kExitOk;
}

int CmdReport(const CtlArgs& args) {
  if (!args.day.empty() && (!args.from.empty() || !args.to.empty()))
    return Complain(kExitUsage, "give --day, or --from and --to, not both");
  std::string query;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key, value);
  };
  add("from", args.day.empty() ? args.from : args.day);
  add("to", args.day.empty() ? args.to : args.day);
  const auto answer = Ask(args, "GET", "/v1/report" + query);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  Table table{{"DAY", "NAME", "RECEIVED", "ENTITLED", "BORROWED", "WAITED", "TURNS", "FORCED", "HANGS", "OVERRUN",
               "KERNELS", "DESTROYED"}};
  for (const CtlJson& row : answer->json.value("rows", CtlJson::array())) {
    const auto time = [&](const char* key) { return FormatNanoseconds(Number(row, key)); };
    const auto count = [&](const char* key) { return fmt::format("{}", Number(row, key)); };
    table.Row({Text(row, "day"), Text(row, "name"), time("received_ns"), time("entitled_ns"), time("borrowed_ns"),
               time("waited_ns"), count("turns"), count("forced_preemptions"), count("hangs"), time("overrun_ns"),
               count("kernels"), row.value("destroyed", false) ? "yes" : "no"});
  }
  return PrintRaw(table.Text());
}

}  // namespace vgpud
