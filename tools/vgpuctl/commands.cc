// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/commands.h"

#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/print.h"

namespace vgpud::tools {
int CmdDestroy(const CtlArgs& args) {
  const auto answer = Ask(args, "DELETE", WithRevision(args, "/v1/vfs/" + args.name));
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  fmt::print("{} destroyed\n", args.name);
  return kExitOk;
}

int CmdList(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/vfs");
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintVfs(answer->json.value("vfs", CtlJson::array()));
}

int CmdShow(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/vfs/" + args.name);
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintFields(answer->json);
}

int CmdProfiles(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/profiles" + (args.gpu.empty() ? "" : "?gpu=" + args.gpu));
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintProfiles(answer->json.value("profiles", CtlJson::array()));
}

int CmdReset(const CtlArgs& args) {
  const auto answer = Ask(args, "POST", "/v1/vfs/" + args.name + "/reset" + (args.force ? "?force=1" : ""));
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  fmt::print("{} reset, state {}\n", args.name, Text(answer->json, "state"));
  return kExitOk;
}

}  // namespace vgpud::tools
