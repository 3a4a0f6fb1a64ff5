// SPDX-License-Identifier: Apache-2.0
// vgpuctl show
#include <fmt/core.h>

#include <utility>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/chosen_vfs.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/record_text.h"

namespace vgpud::tools {

int CmdShow(const CtlArgs& args) {
  const auto vfs = ChooseVfs(args, "show", true);
  if (!vfs) return vfs.error();
  bool first = true;
  const auto print = [&first](const CtlJson& vf) {
    if (!std::exchange(first, false)) fmt::print("\n");
    (void)PrintFields(vf);
    const CtlJson events = vf.value("recent_events", CtlJson::array());
    if (!events.empty()) fmt::print("\nrecent events:\n");
    for (const CtlJson& event : events) fmt::print("{}\n", EventText(event));
  };
  return AskOfEach(
      args, *vfs, [&args](const std::string& name) { return TryToAsk(args, "GET", "/v1/vfs/" + name); }, print);
}

}  // namespace vgpud::tools
