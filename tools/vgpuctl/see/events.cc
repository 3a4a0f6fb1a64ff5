// SPDX-License-Identifier: Apache-2.0
// vgpuctl events, logs
#include <fmt/core.h>

#include <cstdio>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/record_text.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

using TextOf = std::string(const CtlJson& record);

std::string MissedText(uint64_t missed) {
  return missed == 0 ? "" : fmt::format("({} are missing here: vgpud keeps the latest only)\n", missed);
}

// One line of what a follower gets.
Result<void> PrintNext(const std::string& line, bool json, TextOf* text_of) {
  if (line.empty()) return {};  // a sign of life
  std::string text = line + "\n";
  if (!json) {
    const CtlJson record = CtlJson::parse(line, nullptr, false);
    if (!record.is_object()) return Fail(std::errc::protocol_error, "vgpud sent a line that is not JSON");
    text = record.contains("missed") ? MissedText(Number(record, "missed")) : text_of(record) + "\n";
  }
  if (PrintRaw(text) != kExitOk || std::fflush(stdout) != 0) return FailErrno("standard output");
  return {};
}

int Follow(const CtlArgs& args, const std::string& path, TextOf* text_of) {
  std::string rest;
  const BodySink sink = [&](std::string_view piece) -> Result<void> {
    rest += piece;
    for (size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      TRY(PrintNext(rest.substr(0, end), args.json, text_of));
    return {};
  };
  const auto followed = AskForStream(args, path, sink);
  return followed ? kExitOk : followed.error();
}

// `list`: what vgpud calls the records.
int Show(const CtlArgs& args, std::string path, const char* list, TextOf* text_of) {
  if (args.follow && args.view.format == Format::kYaml)
    return Complain(kExitUsage,
                    "what is followed has no end, and so no -o yaml: take -o json, which is one object a line");
  if (args.follow) return Follow(args, path + (path.find('?') == std::string::npos ? "?" : "&") + "follow=1", text_of);
  const auto answer = Ask(args, "GET", path);
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  std::string text = MissedText(Number(answer->json, "missed"));
  for (const CtlJson& record : answer->json.value(list, CtlJson::array())) text += text_of(record) + "\n";
  return PrintRaw(text);
}

}  // namespace

int CmdEvents(const CtlArgs& args) {
  return Show(args, args.name.empty() ? "/v1/events" : "/v1/events?vf=" + args.name, "events", &EventText);
}

int CmdLogs(const CtlArgs& args) { return Show(args, "/v1/vfs/" + args.name + "/log", "lines", &LogLineText); }

}  // namespace vgpud::tools
