// SPDX-License-Identifier: Apache-2.0
#include "base/jail/jail.h"

#include <fmt/core.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/sanitizer.h"

namespace vgpud {
namespace {

using Filter = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

std::vector<scmp_arg_cmp> ArgumentsOf(const SyscallRule& rule) {
  std::vector<scmp_arg_cmp> arguments;
  for (const ArgumentRule& a : rule.arguments) {
    switch (a.test) {
      case ArgumentRule::Test::kAny:
        break;
      case ArgumentRule::Test::kEqual:
        arguments.push_back({a.index, SCMP_CMP_EQ, a.value, 0});
        break;
      case ArgumentRule::Test::kNot:
        arguments.push_back({a.index, SCMP_CMP_NE, a.value, 0});
        break;
      case ArgumentRule::Test::kMasked:
        arguments.push_back({a.index, SCMP_CMP_MASKED_EQ, a.mask, a.value});
        break;
      case ArgumentRule::Test::kAtLeast:
        arguments.push_back({a.index, SCMP_CMP_GE, a.value, 0});
        break;
      case ArgumentRule::Test::kBelow:
        arguments.push_back({a.index, SCMP_CMP_LT, a.value, 0});
        break;
      case ArgumentRule::Test::kOwnPid:
        arguments.push_back({a.index, SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()), 0});
        break;
    }
  }
  return arguments;
}

uint32_t ActionOf(const SyscallRule& rule, JailWatch watch) {
  if (rule.answer == SyscallRule::Answer::kKill) return SCMP_ACT_KILL_PROCESS;
  if (rule.answer == SyscallRule::Answer::kRefuse) return SCMP_ACT_ERRNO(static_cast<uint16_t>(rule.error));
  if (rule.answer == SyscallRule::Answer::kAsk && watch == JailWatch::kAsk) return SCMP_ACT_NOTIFY;
  return SCMP_ACT_ALLOW;
}

bool Names(std::span<const SyscallRule> rules, const char* call) {
  return std::any_of(rules.begin(), rules.end(),
                     [call](const SyscallRule& rule) { return std::strcmp(rule.name, call) == 0; });
}

// Without what `instead` has rows of.
Result<void> Add(scmp_filter_ctx filter, std::span<const SyscallRule> rules, JailWatch watch, uint32_t default_action,
                 std::span<const SyscallRule> instead = {}) {
  for (const SyscallRule& rule : rules) {
    if (Names(instead, rule.name)) continue;
    const int number = seccomp_syscall_resolve_name(rule.name);
    // A call this machine's kind does not have needs no rule, and libseccomp takes none that says what is so anyway.
    if (number == __NR_SCMP_ERROR || number < 0 || ActionOf(rule, watch) == default_action) continue;
    const std::vector<scmp_arg_cmp> arguments = ArgumentsOf(rule);
    const int rc = seccomp_rule_add_array(filter, ActionOf(rule, watch), number,
                                          static_cast<unsigned>(arguments.size()), arguments.data());
    if (rc != 0) return Fail(static_cast<std::errc>(-rc), fmt::format("jail: rule for system call {}", rule.name));
  }
  return {};
}

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
constexpr unsigned long SECCOMP_FILTER_FLAG_TSYNC_ESRCH = 1UL << 4;  // linux/seccomp.h, Linux 5.7
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr unsigned long SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 1UL << 5;  // linux/seccomp.h, Linux 5.19
#endif

// What seccomp_load does, with a flag that this version of the library may not know: once the watcher has a call, only
// the end of the process takes it back. Without it a signal in the right moment undoes a call that the watcher takes
// for done. `all_threads`: of this process, not the caller alone.
Result<UniqueFd> LoadWatched(scmp_filter_ctx filter, bool all_threads) {
  const UniqueFd file{::memfd_create("jail", MFD_CLOEXEC)};
  if (!file) return FailErrno("jail: memfd for the filter");
  if (const int rc = seccomp_export_bpf(filter, file.get()); rc != 0)
    return Fail(static_cast<std::errc>(-rc), "jail: compile the list");
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return FailErrno("jail: fstat of the filter");
  std::vector<sock_filter> code(static_cast<size_t>(st.st_size) / sizeof(sock_filter));
  if (::pread(file.get(), code.data(), static_cast<size_t>(st.st_size), 0) != st.st_size)
    return FailErrno("jail: read the filter");
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  const unsigned long wanted = SECCOMP_FILTER_FLAG_NEW_LISTENER |
                               (all_threads ? SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH : 0);
  for (const unsigned long flags : {SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0UL}) {
    const long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, wanted | flags, &program);
    if (fd >= 0) return UniqueFd{static_cast<int>(fd)};
    if (errno != EINVAL) break;
  }
  return FailErrno("jail: load the list, watched");
}

Result<UniqueFd> Load(JailKind kind, JailWatch watch, bool nested) {
  const int error = ErrorOtherwise(kind);
  const uint32_t unwatched = error != 0 ? SCMP_ACT_ERRNO(static_cast<uint16_t>(error)) : SCMP_ACT_KILL_PROCESS;
  const uint32_t otherwise = watch == JailWatch::kAsk ? SCMP_ACT_NOTIFY : unwatched;
  const Filter filter{seccomp_init(otherwise), &seccomp_release};
  if (!filter) return Fail(std::errc::not_enough_memory, "jail: seccomp_init");
  // A call by another architecture's numbers ends the process as well, not its thread alone.
  if (seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0)
    return Fail(std::errc::invalid_argument, "jail: what happens to calls of other architectures");
  // A tree instead of a list: calls far down the list would wait for all before them.
  (void)seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  const bool of_driver = kind == JailKind::kExecDriver;
  // A driver has started threads of its own before.
  if (of_driver && seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) != 0)
    return Fail(std::errc::invalid_argument, "jail: a list for all threads at once");
  TRY(Add(filter.get(), RulesForBoth(), watch, otherwise, of_driver ? RulesFor(kind) : std::span<const SyscallRule>{}));
  TRY(Add(filter.get(), RulesFor(kind), watch, otherwise));
  if (nested) TRY(Add(filter.get(), RulesForNested(), watch, otherwise));
  if (watch == JailWatch::kAsk) return LoadWatched(filter.get(), of_driver);
  if (const int rc = seccomp_load(filter.get()); rc != 0)
    return Fail(static_cast<std::errc>(-rc),
                fmt::format("jail: load the list of {} (is seccomp enabled in this kernel?)", NameOf(kind)));
  return UniqueFd{};
}

}  // namespace

Result<UniqueFd> EnterJail(JailKind kind, JailWatch watch, bool nested) {
  if (kSanitizerBuild) {
    LOG(kWarning, "jail=off list={}: this is a sanitizer build", NameOf(kind));
    return UniqueFd{};
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("jail: no_new_privs");
  if (watch == JailWatch::kAsk) {
    auto watched = Load(kind, JailWatch::kAsk, nested);
    if (watched && *watched) return watched;
    LOG(kWarning, "jail: this kernel does not let {} be watched: {}", NameOf(kind),
        watched ? "no descriptor" : watched.error().context);
  }
  return Load(kind, JailWatch::kNone, nested);
}

}  // namespace vgpud
