// SPDX-License-Identifier: Apache-2.0
// vgpuctl ps
#include <fmt/core.h>
#include <pwd.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

constexpr Column kColumns[] = {
    {"VF", "vf"},           {"GPU", "gpu", nullptr, true},
    {"PID", "pid"},         {"EXECUTOR", "executor_pid"},
    {"USER", "user"},       {"TENANT", "tenant", nullptr, true},
    {"DOMAIN", "domain"},   {"VRAM", "vram_bytes"},
    {"GPU-TIME", "gpu_ns"}, {"CPU-TIME", "cpu_ns"},
};

std::string UserOf(const CtlJson& process) {
  if (!process.contains("uid")) return "-";
  const passwd* const user = ::getpwuid(static_cast<uid_t>(Number(process, "uid")));
  return user != nullptr ? user->pw_name : fmt::format("{}", Number(process, "uid"));
}

}  // namespace

int CmdPs(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", args.name.empty() ? "/v1/processes" : "/v1/processes?vf=" + args.name);
  if (!answer) return answer.error();
  Rows rows("processes", kColumns);
  for (const CtlJson& process : answer->json.value("processes", CtlJson::array())) {
    CtlJson shown = process;
    shown["user"] = UserOf(process);
    for (const char* const field : {"tenant", "domain"})
      if (!process.contains(field)) shown[field] = "-";
    rows.Add(std::move(shown), process);
  }
  return PrintRows(args.view, std::move(rows), answer->json);
}

}  // namespace vgpud::tools
