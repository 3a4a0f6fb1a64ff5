#include "gpu/exec/guard.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

namespace vgpud {
namespace {

constexpr rlim_t kMaxFds = 64;

void OnSigbus(int) {
  static constexpr char kLine[] = "vgpud-exec: the guest took away memory that it shares; ending this channel\n";
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
  ::_exit(3);
}

}  // namespace

void ExitOnSigbus() {
  struct sigaction action {};
  action.sa_handler = OnSigbus;
  ::sigaction(SIGBUS, &action, nullptr);
}

Result<void> SetLimits() {
  const rlimit no_core{0, 0};
  const rlimit few_fds{kMaxFds, kMaxFds};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return FailErrno("setrlimit(RLIMIT_CORE)");
  if (::setrlimit(RLIMIT_NOFILE, &few_fds) != 0) return FailErrno("setrlimit(RLIMIT_NOFILE)");
  return {};
}

}  // namespace vgpud
