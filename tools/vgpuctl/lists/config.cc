// SPDX-License-Identifier: Apache-2.0
// vgpuctl config check|show|diff|reload
#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/rows.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

void PrintChanges(const CtlJson& list, const std::string& when) {
  for (const CtlJson& change : list)
    fmt::print("{} {} -> {}, {}\n", Text(change, "key"), Text(change, "old"), Text(change, "new"), when);
}

int Reload(const CtlArgs& args, bool only_check) {
  const auto answer = Ask(args, "POST", only_check ? "/v1/config/reload?dry_run=1" : "/v1/config/reload");
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  const CtlJson now = answer->json.value("now", CtlJson::array()),
                at_restart = answer->json.value("at_restart", CtlJson::array());
  if (only_check) fmt::print("the configuration is right\n");
  if (!only_check && now.empty() && at_restart.empty()) fmt::print("nothing changes\n");
  PrintChanges(now, only_check ? "with a reload" : fmt::format("effective at round {}", Number(answer->json, "round")));
  PrintChanges(at_restart, "when vgpud is started again");
  return kExitOk;
}

int Check(const CtlArgs& args) { return Reload(args, true); }
int ReloadNow(const CtlArgs& args) { return Reload(args, false); }

int Show(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/config");
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  Table table{{"KEY", "VALUE", "FROM"}};
  for (const CtlJson& value : answer->json.value("values", CtlJson::array())) {
    const std::string text = Text(value, "value"), told = Text(value, "configured");
    table.Row({Text(value, "key"), text.empty() ? "-" : text,
               Text(value, "from") + (told.empty() ? "" : fmt::format(" (configured: {})", told))});
  }
  return PrintRaw(table.Text());
}

int Diff(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/config/diff");
  if (!answer) return answer.error();
  const CtlJson list = answer->json.value("differences", CtlJson::array());
  const int status = list.empty() ? kExitOk : kExitDiffers;
  if (args.json) return PrintData(args.view, answer->raw) == kExitOk ? status : kExitFailed;
  static constexpr struct {
    const char* effect;
    const char* words;
  } kEffects[] = {{"reload", "with a reload"},
                  {"restart", "when vgpud is started again"},
                  {"never", "was changed live and stays so until the next start"}};
  for (const CtlJson& each : list)
    for (const auto& row : kEffects)
      if (Text(each, "effect") == row.effect)
        fmt::print("{} {} -> {}, {}\n", Text(each, "key"), Text(each, "running"), Text(each, "configured"), row.words);
  return status;
}

constexpr struct {
  const char* verb;
  int (*run)(const CtlArgs&);
} kVerbs[] = {{"check", &Check}, {"show", &Show}, {"diff", &Diff}, {"reload", &ReloadNow}};

}  // namespace

int CmdConfig(const CtlArgs& args) {
  for (const auto& row : kVerbs)
    if (args.name == row.verb) return row.run(args);
  return Complain(kExitUsage, "config takes check, show, diff or reload");
}

}  // namespace vgpud::tools
