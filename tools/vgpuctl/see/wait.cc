// SPDX-License-Identifier: Apache-2.0
// vgpuctl wait
#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

// What vgpud may take longer than the time that it is told.
constexpr std::chrono::seconds kToAnswer{10};

}  // namespace

int CmdWait(const CtlArgs& args) {
  CtlArgs patient = args;
  std::string path = fmt::format("/v1/vfs/{}/wait?for={}", args.name, args.wait_for);
  if (args.wait_for_daemon) path += fmt::format("&timeout_ms={}", args.timeout.count());
  patient.timeout += kToAnswer;
  const auto answer = Ask(patient, "GET", path);
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  fmt::print("{} is {}\n", args.name, args.wait_for);
  return kExitOk;
}

}  // namespace vgpud::tools
