// SPDX-License-Identifier: Apache-2.0
// vgpuctl tenants, calendar
#include <fmt/core.h>

#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {

int CmdTenants(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/tenants");
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  Table table{{"NAME", "VFS", "VRAM", "HOST_MEMORY", "RAM", "WEIGHT", "GUARANTEE", "PRIORITY", "SHARE"}};
  const auto bytes = [](const CtlJson& value) { return FormatBytes(value.get<uint64_t>()); };
  const auto part = [](const CtlJson& value) { return Readable("guarantee", value); };
  const auto count = [](const CtlJson& value) { return value.dump(); };
  const auto add = [&](const std::string& name, const CtlJson& tenant) {
    const CtlJson quota = tenant.value("quota", CtlJson::object());
    const auto of = [&](const char* field, auto show) {
      const std::string has = show(tenant.value(field, CtlJson(0)));
      return quota.contains(field) ? fmt::format("{} of {}", has, show(quota[field])) : has;
    };
    table.Row({name, of("vfs", count), of("vram_bytes", bytes), of("host_memory_bytes", bytes), of("ram_bytes", bytes),
               of("weight", count), of("guarantee", part),
               quota.contains("priority") ? "up to " + count(quota["priority"]) : "any",
               Readable("share", tenant.value("share", CtlJson(0.0)))});
  };
  for (const CtlJson& tenant : answer->json.value("tenants", CtlJson::array())) add(Text(tenant, "name"), tenant);
  add("(all VFs)", answer->json.value("site", CtlJson::object()));
  return PrintRaw(table.Text());
}

int CmdCalendar(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/calendar");
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  Table table{{"NAME", "WHEN", "NOW", "SETTINGS"}};
  for (const CtlJson& period : answer->json.value("periods", CtlJson::array())) {
    std::string settings;
    for (const CtlJson& each : period.value("settings", CtlJson::array()))
      settings += (settings.empty() ? "" : ", ") + each.get<std::string>();
    table.Row({Text(period, "name"), Text(period, "when"), period.value("holds", false) ? "yes" : "no", settings});
  }
  const int printed = PrintRaw(table.Text());
  if (const std::string problem = Text(answer->json, "problem"); !problem.empty())
    fmt::print("not in force: {}\n", problem);
  return printed;
}

}  // namespace vgpud::tools
