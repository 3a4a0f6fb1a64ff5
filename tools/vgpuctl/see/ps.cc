// SPDX-License-Identifier: Apache-2.0
// vgpuctl ps
#include <fmt/core.h>
#include <pwd.h>

#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

std::string OrDash(std::string text) { return text.empty() ? "-" : text; }

std::string UserOf(const CtlJson& process) {
  if (!process.contains("uid")) return "-";
  const passwd* const user = ::getpwuid(static_cast<uid_t>(Number(process, "uid")));
  return user != nullptr ? user->pw_name : fmt::format("{}", Number(process, "uid"));
}

}  // namespace

int CmdPs(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", args.name.empty() ? "/v1/processes" : "/v1/processes?vf=" + args.name);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  Table table{{"VF", "PID", "EXECUTOR", "USER", "DOMAIN", "VRAM", "GPU", "CPU"}};
  for (const CtlJson& process : answer->json.value("processes", CtlJson::array()))
    table.Row({Text(process, "vf"), fmt::format("{}", Number(process, "pid")),
               fmt::format("{}", Number(process, "executor_pid")), UserOf(process), OrDash(Text(process, "domain")),
               FormatBytes(Number(process, "vram_bytes")), FormatNanoseconds(Number(process, "gpu_ns")),
               FormatNanoseconds(Number(process, "cpu_ns"))});
  return PrintRaw(table.Text());
}

}  // namespace vgpud::tools
