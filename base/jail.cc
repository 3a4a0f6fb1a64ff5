#include "base/jail.h"

#include <fmt/core.h>
#include <seccomp.h>
#include <sys/prctl.h>

#include <memory>
#include <span>

#include "base/log.h"

namespace vgpud {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerBuild = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kSanitizerBuild = true;
#else
constexpr bool kSanitizerBuild = false;
#endif
#else
constexpr bool kSanitizerBuild = false;
#endif

// What an event loop on handed-over fds, malloc and abort() need. Nothing here opens a path or makes a socket.
constexpr const char* kCommon[] = {
    "accept4",
    "brk",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "dup",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd2",
    "exit",
    "exit_group",
    "fcntl",
    "fstat",
    "futex",
    "getpid",
    "getrandom",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "lseek",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "newfstatat",
    "poll",
    "ppoll",
    "pread64",
    "pwrite64",
    "read",
    "recvfrom",
    "recvmsg",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_yield",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "sigaltstack",
    "tgkill",
    "timerfd_settime",
    "write",
    "writev",
};

// Memory for channel.sock clients, and the end of executors that do not end by themselves.
constexpr const char* kVf[] = {"ftruncate", "memfd_create", "pidfd_send_signal"};

// Worker threads and their placement.
constexpr const char* kExec[] = {
    "clone3",
    "clone",
    "get_robust_list",
    "membarrier",
    "rseq",
    "sched_getaffinity",
    "sched_setaffinity",
    "set_robust_list",
    "sysinfo",
    "timerfd_create",
    "epoll_create1",
    "memfd_create",
    "ftruncate",
    "prctl",
    "getrusage",
};

struct JailList {
  const char* name;
  std::span<const char* const> extra;
};
constexpr JailList kLists[] = {{"vgpud-vf", kVf}, {"vgpud-exec", kExec}};

Result<void> Allow(scmp_filter_ctx filter, std::span<const char* const> names) {
  for (const char* name : names) {
    const int number = seccomp_syscall_resolve_name(name);
    // A call this machine's kind does not have needs no rule.
    if (number == __NR_SCMP_ERROR || number < 0) continue;
    if (const int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0); rc != 0)
      return Fail(static_cast<std::errc>(-rc), fmt::format("jail: rule for system call {}", name));
  }
  return {};
}

}  // namespace

Result<void> EnterJail(JailKind kind) {
  const JailList& list = kLists[static_cast<size_t>(kind)];
  if (kSanitizerBuild) {
    LOG(kWarning, "jail=off list={}: this is a sanitizer build", list.name);
    return {};
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("jail: no_new_privs");
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter{seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release};
  if (!filter) return Fail(std::errc::not_enough_memory, "jail: seccomp_init");
  TRY(Allow(filter.get(), kCommon));
  TRY(Allow(filter.get(), list.extra));
  if (const int rc = seccomp_load(filter.get()); rc != 0)
    return Fail(static_cast<std::errc>(-rc),
                fmt::format("jail: load the list of {} (is seccomp enabled in this kernel?)", list.name));
  LOG(kDebug, "jail=on list={}", list.name);
  return {};
}

}  // namespace vgpud
