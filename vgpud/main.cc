// SPDX-License-Identifier: Apache-2.0
// vgpud: the daemon. Configuration files and flags become a Config, the Config becomes a Daemon; no logic here.
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/foreign_fd.h"
#include "base/log.h"
#include "vgpud/config/config.h"
#include "vgpud/config/flags.h"
#include "vgpud/config/read_config.h"
#include "vgpud/daemon.h"
#include "vgpud/service/journal.h"
#include "vgpud/service/passed_sockets.h"

namespace vgpud::daemon {
namespace {

constexpr int kUsage = 2;

int Complain(const Error& error, int status = 1) {
  fmt::print(stderr, "vgpud: {}\n", error.context);
  return status;
}

}  // namespace
}  // namespace vgpud::daemon

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::daemon;
  const pid_t parent = ::getppid();
  auto passed = TakePassedSockets();
  Flags flags;
  CLI::App app{"Shares one GPU among virtual functions, in time slices. Control it with vgpuctl."};
  app.set_version_flag("--version", "vgpud " VGPUD_VERSION);
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  const std::vector<std::string> command_line(argv + 1, argv + argc);
  auto told = ReadConfig(command_line);
  if (!told) return Complain(told.error(), kUsage);
  if (flags.check_config) {
    fmt::print("the configuration is right\n");
    return 0;
  }
  if (flags.exit_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  SetLogName("vgpud");
  if (!passed) return Complain(passed.error());
  told->config.passed = *passed;
  (void)LogToJournal();
  if (const auto resolved = ResolveConfig(told->config); !resolved) return Complain(resolved.error());
  StartClosers();
  auto daemon = Daemon::Start(*told, [command_line] { return ReadConfig(command_line); });
  if (!daemon) return Complain(daemon.error());
  (*daemon)->Run();
  return 0;
}
