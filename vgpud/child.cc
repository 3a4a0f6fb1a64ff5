#include "vgpud/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace vgpud {
namespace {

int PidfdOpen(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

struct SpawnSetup {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSetup() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
};

}  // namespace

Result<Child> Child::Spawn(const std::string& program, const std::vector<std::string>& args, const UniqueFd& link,
                           int link_number) {
  SpawnSetup setup;
  posix_spawn_file_actions_addopen(&setup.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&setup.files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&setup.files, link.get(), link_number);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&setup.attributes, &none);
  posix_spawnattr_setsigdefault(&setup.attributes, &all);
  posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> argv;
  for (const auto& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (const int err = ::posix_spawn(&pid, program.c_str(), &setup.files, &setup.attributes, argv.data(), environ)) {
    errno = err;
    return FailErrno(fmt::format("cannot start {}", program));
  }
  UniqueFd pidfd{PidfdOpen(pid)};
  if (!pidfd) {
    auto failure = FailErrno(fmt::format("pidfd of {} (pid {})", program, pid));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return failure;
  }
  return Child{pid, std::move(pidfd)};
}

Child::~Child() {
  if (pid_ < 0) return;
  Kill(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::Kill(int signal) const {
  if (pid_ >= 0) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

std::optional<Child::Ending> Child::Reap() {
  if (pid_ < 0) return Ending{false, "ended earlier"};
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
    return std::nullopt;
  pid_ = -1;
  if (info.si_code == CLD_EXITED) return Ending{info.si_status == 0, fmt::format("exit {}", info.si_status)};
  return Ending{false, fmt::format("signal {}", info.si_status)};
}

}  // namespace vgpud
