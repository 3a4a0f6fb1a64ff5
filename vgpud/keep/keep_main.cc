// SPDX-License-Identifier: Apache-2.0
// vgpud-keep: holds what a vgpud would lose when it is killed, for the next one. Started by vgpud, with the socket to
// it as fd 3 and a listening socket as fd 4.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/foreign_fd.h"
#include "base/jail/confine.h"
#include "base/jail/jail.h"
#include "base/log.h"
#include "vgpud/keep/fd_keeper.h"

namespace {

vgpud::Result<void> InJail() {
  const auto entered = vgpud::EnterJail(vgpud::JailKind::kKeep);
  if (!entered) return tl::unexpected(entered.error());
  return {};
}

}  // namespace

int main() {
  using namespace vgpud;
  using namespace vgpud::daemon;
  ::signal(SIGPIPE, SIG_IGN);
  // Who stops vgpud from a terminal stops it, and it ends this.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  SetLogName("vgpud-keep");
  for (const int fd : {keep::kSessionFd, keep::kListenFd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  // Who connects is told that it is this process that listens, not the one that made the socket.
  ::listen(keep::kListenFd, SOMAXCONN);
  // It stays vgpud's user, by which both know each other, and needs nothing else of what that user may.
  for (const auto& step : {EnterConfinement(Confinement::kNothing, {}), InJail()})
    if (!step) {
      LOG(kError, "it does not start: {}", step.error().context);
      return 1;
    }
  StartClosers();
  FdKeeper keeper{UniqueFd{keep::kSessionFd}, UniqueFd{keep::kListenFd}};
  keeper.Run();
  return 0;
}
