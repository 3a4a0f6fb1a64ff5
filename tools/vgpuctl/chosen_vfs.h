// SPDX-License-Identifier: Apache-2.0
// The VFs that a command is for. For the sources of subcommands only: it brings the whole JSON library.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

struct ChosenVfs {
  std::vector<std::string> names;
  bool several = false;  // the answer is a list, also if it has one VF or none
};
// Returns the VFs that were named, or with --all those of the daemon: lost ones are among these only if `lost_too`.
// Returns an exit code after saying what is wrong with the names.
tl::expected<ChosenVfs, int> ChooseVfs(const CtlArgs& args, const char* command, bool lost_too = false);

// Answers about one VF; nothing: there is nothing to say of it.
using AskOfVf = std::function<tl::expected<std::optional<Answer>, Failure>(const std::string& name)>;
// Asks for one VF after the other and prints each answer with `print`, with -o json all of them. A failure is said, and
// the next VF is asked for; returns the exit code of the first failure.
int AskOfEach(const CtlArgs& args, const ChosenVfs& vfs, const AskOfVf& ask,
              const std::function<void(const CtlJson& answer)>& print);

}  // namespace vgpud::tools
