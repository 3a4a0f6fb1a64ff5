// SPDX-License-Identifier: Apache-2.0
// vgpuctl destroy, show, reset
#include <fmt/core.h>

#include <utility>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/chosen_vfs.h"
#include "tools/vgpuctl/print.h"

namespace vgpud::tools {
int CmdDestroy(const CtlArgs& args) {
  auto vfs = ChooseVfs(args, "destroy", true);
  if (!vfs) return vfs.error();
  vfs->several |= args.if_exists;
  const auto destroy = [&](const std::string& name) -> tl::expected<std::optional<Answer>, Failure> {
    const std::string path = WithRevision(args, fmt::format("/v1/vfs/{}?if_unused={}", name, args.force ? 0 : 1));
    auto answer = TryToAsk(args, "DELETE", path);
    if (answer) return std::move(*answer);
    if (args.if_exists && answer.error().code == kExitNotFound) return std::nullopt;
    return tl::unexpected(answer.error());
  };
  return AskOfEach(args, *vfs, destroy, [](const CtlJson& vf) { fmt::print("{} destroyed\n", Text(vf, "name")); });
}

int CmdReset(const CtlArgs& args) {
  const auto vfs = ChooseVfs(args, "reset", args.force);
  if (!vfs) return vfs.error();
  return AskOfEach(
      args, *vfs,
      [&args](const std::string& name) {
        return TryToAsk(args, "POST", "/v1/vfs/" + name + "/reset" + (args.force ? "?force=1" : ""));
      },
      [](const CtlJson& vf) { fmt::print("{} reset, state {}\n", Text(vf, "name"), Text(vf, "state")); });
}

}  // namespace vgpud::tools
