// SPDX-License-Identifier: Apache-2.0
// The subcommand `vgpu-sim fleet`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/sim/fleet/play.h"
#include "tools/sim/fleet/synthetic.h"

namespace vgpud::tools::fleet {

class FleetCommand {
 public:
  // Adds the subcommand to `app`; this must outlive the parsing.
  explicit FleetCommand(CLI::App& app);
  // Was it asked for?
  bool parsed() const { return command_->parsed(); }
  // Runs it; returns the exit code: 0 ok, 1 output could not be written, 2 bad usage or a wrong trace.
  int Run();

 private:
  Result<JobList> Jobs() const;
  // Empty if all is well; sets rules_.
  std::string Settle();

  CLI::App* command_;
  std::string trace_;
  Mix mix_;
  FleetRules rules_;
  double quota_percent_ = 20;
  std::string night_ = "20-8";
  std::string engine_ = "all";
  std::string policy_ = "all";
  bool json_ = false;
};

}  // namespace vgpud::tools::fleet
