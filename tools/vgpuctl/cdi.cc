// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/cdi.h"

#include <fmt/core.h>

#include <vector>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

Result<std::string> CdiText(const std::string& vfs, const std::string& library) {
  const CtlJson answer = CtlJson::parse(vfs, nullptr, false);
  if (!answer.is_object()) return Fail(std::errc::protocol_error, "vgpud answered without JSON");
  std::vector<daemon::CdiDevice::Vf> all;
  for (const CtlJson& vf : answer.value("vfs", CtlJson::array())) {
    const std::string name = Text(vf, "name"), socket = Text(vf, "channel_socket");
    if (!name.empty() && !socket.empty()) all.push_back({name, socket});  // one that is lost has none
  }
  const daemon::CdiFile file = daemon::CdiFileOf(all, library);
  for (const std::string& name : file.left_out)
    (void)Complain(kExitOk,
                   fmt::format("vf \"{}\" is left out: names of such devices end with a letter or a digit", name));
  return file.text;
}

int CmdCdi(const CtlArgs& args) {
  if (args.update_ldcache) return UpdateLdcache();
  const auto library = daemon::FindCudaLibrary(args.library);
  if (!library) return Complain(kExitFailed, library.error().context);
  const auto vfs = AskForText(args, "/v1/vfs");
  if (!vfs) return vfs.error();
  const auto text = CdiText(*vfs, *library);
  if (!text) return Complain(kExitFailed, text.error().context);
  if (args.file.empty() || args.file == "-") return PrintRaw(*text);
  if (const auto done = daemon::WriteCdi(args.file, *text); !done) return Complain(kExitFailed, done.error().context);
  if (text->empty()) fmt::print("there is no VF: {} is not there either\n", args.file);
  const CtlJson spec = CtlJson::parse(*text, nullptr, false);
  for (const CtlJson& device : spec.is_object() ? spec["devices"] : CtlJson::array())
    fmt::print("{}={}\n", daemon::kCdiKind, Text(device, "name"));
  return kExitOk;
}

}  // namespace vgpud::tools
