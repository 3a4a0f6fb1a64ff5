// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/guard.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/fd.h"
#include "base/jail/rules.h"
#include "base/sanitizer.h"

namespace vgpud::exec {
namespace {

// What an executor has without a guest, and what malloc may lose.
constexpr rlim_t kOwnBytes = 64 << 20;
// Beside those that compute: the one that serves its link, the one that starts the others, the loader, one to spare.
constexpr rlim_t kOwnThreads = 4;
constexpr rlim_t kMostStackBytes = 64 << 20;

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

namespace {

rlim_t g_first_limit = RLIM_INFINITY;  // that SetLimits set

// Private writable memory (setrlimit(2), RLIMIT_DATA); the ledger's limit is met long before.
Result<void> LimitMemory(const MemoryLimit& memory, uint32_t threads) {
  if (memory.bytes == 0 || kSanitizerBuild) return {};
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0) return FailErrno("getrlimit(RLIMIT_STACK)");
  const rlim_t per_stack = std::min(stack.rlim_cur, kMostStackBytes);
  const rlim_t own = kOwnBytes + (threads + kOwnThreads) * per_stack;
  const rlimit data{memory.bytes + own, std::max(memory.bytes, memory.most) + own};
  if (::setrlimit(RLIMIT_DATA, &data) != 0) return FailErrno("setrlimit(RLIMIT_DATA)");
  g_first_limit = data.rlim_cur;
  return {};
}

// The kernel makes room for the number of guest files now, while there is one thread; with several it would wait for
// all processors before it does (synchronize_rcu(), some 10 ms), at the first mmap of each executor.
Result<void> MakeRoomForGuestFiles() {
  const UniqueFd any{::eventfd(0, EFD_CLOEXEC)};
  const UniqueFd high{::fcntl(any.get(), F_DUPFD_CLOEXEC, kGuestFileNumber)};
  if (!high) return FailErrno("descriptor for guest files");
  return {};
}

}  // namespace

Result<void> SetLimits(const MemoryLimit& memory, uint32_t threads, uint64_t most_threads, uint64_t files) {
  const rlimit no_core{0, 0};
  const rlimit few_fds{kMostExecutorFiles + files, kMostExecutorFiles + files};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return FailErrno("setrlimit(RLIMIT_CORE)");
  if (::setrlimit(RLIMIT_NOFILE, &few_fds) != 0) return FailErrno("setrlimit(RLIMIT_NOFILE)");
  const rlimit few_threads{most_threads, most_threads};
  if (most_threads != 0 && ::setrlimit(RLIMIT_NPROC, &few_threads) != 0) return FailErrno("setrlimit(RLIMIT_NPROC)");
  TRY(MakeRoomForGuestFiles());
  return LimitMemory(memory, threads);
}

Result<void> RaiseMemoryLimit(uint64_t more) {
  if (g_first_limit == RLIM_INFINITY) return {};
  rlimit data{};
  if (::getrlimit(RLIMIT_DATA, &data) != 0) return FailErrno("getrlimit(RLIMIT_DATA)");
  const rlim_t most = data.rlim_max - std::min(data.rlim_max, g_first_limit);
  const rlim_t wanted = g_first_limit + std::min<rlim_t>(more, most);
  if (wanted <= data.rlim_cur) return {};
  data.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_DATA, &data) != 0) return FailErrno("setrlimit(RLIMIT_DATA)");
  return {};
}

}  // namespace vgpud::exec
