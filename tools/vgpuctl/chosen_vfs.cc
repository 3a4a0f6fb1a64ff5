// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/chosen_vfs.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/vgpuctl/rows.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

tl::unexpected<int> Refuse(ExitCode code, const std::string& why) { return tl::unexpected(Complain(code, why)); }

tl::expected<ChosenVfs, int> AllVfs(const CtlArgs& args, bool lost_too) {
  const auto listed = Ask(args, "GET", "/v1/vfs");
  if (!listed) return tl::unexpected(listed.error());
  ChosenVfs all{{}, true};
  for (const CtlJson& vf : listed->json.value("vfs", CtlJson::array()))
    if (lost_too || Text(vf, "state") != "lost") all.names.push_back(Text(vf, "name"));
  return all;
}

}  // namespace

tl::expected<ChosenVfs, int> ChooseVfs(const CtlArgs& args, const char* command, bool lost_too) {
  if (args.all && !args.names.empty()) return Refuse(kExitUsage, "give names of VFs or --all, not both");
  if (args.if_revision && (args.all || args.names.size() > 1))
    return Refuse(kExitUsage, "--if-revision is the revision of one VF: give one name");
  if (args.all) return AllVfs(args, lost_too);
  if (args.names.empty())
    return Refuse(kExitUsage, fmt::format("{0} needs the name of a VF, several names, or --all: vgpuctl help {0} has "
                                          "an example",
                                          command));
  for (auto name = args.names.begin(); name != args.names.end(); ++name) {
    if (std::find(args.names.begin(), name, *name) != name)
      return Refuse(kExitUsage, fmt::format("{} is given twice", *name));
    // Such a name is no part of a path.
    if (!CanBeInPath(*name)) return Refuse(kExitNotFound, fmt::format("there is no vf \"{}\"", *name));
  }
  return ChosenVfs{args.names, args.names.size() > 1};
}

int AskOfEach(const CtlArgs& args, const ChosenVfs& vfs, const AskOfVf& ask,
              const std::function<void(const CtlJson& answer)>& print) {
  int code = kExitOk;
  CtlJson all = CtlJson::array();
  for (const std::string& name : vfs.names) {
    auto answer = ask(name);
    if (!answer) {
      const int failed = Complain(answer.error());
      if (code == kExitOk) code = failed;
    } else if (!*answer) {
      continue;
    } else if (!args.json) {
      print((*answer)->json);
    } else if (!vfs.several) {
      return PrintData(args.view, (*answer)->raw);
    } else {
      (*answer)->json.erase("apiVersion");
      all.push_back(std::move((*answer)->json));
    }
  }
  if (!args.json || !vfs.several) return code;
  const int printed = PrintData(args.view, CtlJson{{"apiVersion", control::kApiVersion}, {"vfs", all}});
  return code != kExitOk ? code : printed;
}

}  // namespace vgpud::tools
