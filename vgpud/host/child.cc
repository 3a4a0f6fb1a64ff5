// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/child.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "vgpud/host/spawn.h"

namespace vgpud::daemon {

Result<Child> Child::Spawn(const Spec& spec) {
  Spawned spawned = TRY(SpawnProcess(spec));
  return Child{spawned.pid, std::move(spawned.pidfd), false};
}

Child::Child(pid_t pid, UniqueFd pidfd, bool adopted)
    : pid_(pid), adopted_(adopted), pidfd_(new UniqueFd(std::move(pidfd)), [](const UniqueFd* last) {
        const std::unique_ptr<const UniqueFd> owned{last};
        siginfo_t info{};
        ::waitid(P_PIDFD, static_cast<id_t>(last->get()), &info, WEXITED | WNOHANG);
      }) {}

Child::~Child() {
  if (pid_ < 0) return;
  Kill(SIGKILL);
  pollfd ended{pidfd(), POLLIN, 0};
  ::poll(&ended, 1, kLastWaitMs);
}

void Child::Kill(int signal) const {
  if (pid_ >= 0) ::syscall(SYS_pidfd_send_signal, pidfd(), signal, nullptr, 0);
}

void Child::Abandon() {
  Kill(SIGKILL);
  pid_ = -1;
}

std::optional<Child::Ending> Child::Reap() {
  if (pid_ < 0) return Ending{false, "ended earlier"};
  if (adopted_) {
    pollfd ended{pidfd(), POLLIN, 0};
    if (::poll(&ended, 1, 0) != 1) return std::nullopt;
    pid_ = -1;
    return Ending{true, "an end that was not seen: an earlier vgpud had started it"};
  }
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  pid_ = -1;
  if (info.si_code == CLD_EXITED) return Ending{info.si_status == 0, fmt::format("exit {}", info.si_status)};
  return Ending{false, fmt::format("signal {}", info.si_status)};
}

}  // namespace vgpud::daemon
