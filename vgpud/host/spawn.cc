// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/spawn.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mapping.h"

extern char** environ;

namespace vgpud::daemon {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
// What of our environment a child gets: what it reads, and not what somebody has told vgpud, or whoever started it. The
// second line is for programs that take the place of ours in tests.
constexpr std::string_view kPassedOn[] = {
    "VGPUD_", "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS=", "REAL_VGPUD_"};
// Descriptors on their way to their numbers stay above all of those.
constexpr int kAboveAllNumbers = 32;

std::vector<char*> Environment() {
  std::vector<char*> passed;
  for (char** variable = environ; *variable != nullptr; ++variable)
    for (const std::string_view name : kPassedOn)
      if (std::string_view(*variable).starts_with(name)) passed.push_back(*variable);
  passed.push_back(nullptr);
  return passed;
}

int NamespacesOf(Confinement kind) {
  constexpr int kAll = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
  if (kind == Confinement::kUserNamespace) return kAll | CLONE_NEWUSER;
  return kind == Confinement::kNamespaces ? kAll : 0;
}

// Where no file of the new process is placed over it.
Result<UniqueFd> Above(UniqueFd file) {
  UniqueFd above{::fcntl(file.get(), F_DUPFD_CLOEXEC, kAboveAllNumbers)};
  if (!above) return FailErrno("descriptor for a new process");
  return above;
}

// One whose ends wait.
struct WaitingPipe {
  UniqueFd read, write;
};
Result<WaitingPipe> MakeWaitingPipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return FailErrno("pipe");
  WaitingPipe low{UniqueFd{fds[0]}, UniqueFd{fds[1]}};
  WaitingPipe above;
  above.read = TRY(Above(std::move(low.read)));
  above.write = TRY(Above(std::move(low.write)));
  return above;
}

// What the new process works from. It shares our memory until its exec, while the thread that made it waits: it calls
// the kernel directly and changes nothing of the C library's. Nor does it return, so that AddressSanitizer must not
// mark its stack: it would take the marks for those of the next one.
struct Start {
  const char* program;
  int program_file;
  char* const* arguments;
  char* const* environment;
  const Child::Spec::File* files;
  size_t file_count;
  bool new_user;
  int started;   // it writes a 0 here once it is there
  int released;  // and goes on when somebody wrote here, or gives up at the end of the file
  int release;   // the other end of that, of which it has a copy, too
  int failed;    // an errno here, or the end of the file when its program runs
};

[[noreturn, gnu::no_sanitize_address]] void GiveUp(const Start& start) {
  const int error = errno;
  [[maybe_unused]] const auto n = ::syscall(SYS_write, start.failed, &error, sizeof error);
  for (;;) ::syscall(SYS_exit_group, 127);
}

[[gnu::no_sanitize_address]] void DefaultSignals() {
  // The kernel's struct sigaction of SIG_DFL. A sanitizer's sigaction() would change the handlers of vgpud.
  const std::array<uint64_t, 4> action{};
  for (int signal = 1; signal < NSIG; ++signal)
    if (signal != SIGPIPE) ::syscall(SYS_rt_sigaction, signal, action.data(), nullptr, sizeof(uint64_t));
}

// To their numbers, over whatever of ours has those: each goes out of the way first.
[[gnu::no_sanitize_address]] void PlaceFiles(const Start& start) {
  int moved[kAboveAllNumbers];
  for (size_t i = 0; i < start.file_count; ++i) {
    moved[i] = static_cast<int>(::syscall(SYS_fcntl, start.files[i].fd, F_DUPFD_CLOEXEC, kAboveAllNumbers));
    if (moved[i] < 0) GiveUp(start);
  }
  const int null = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC));
  if (null < 0 || ::syscall(SYS_dup3, null, STDIN_FILENO, 0) < 0 || ::syscall(SYS_dup3, null, STDOUT_FILENO, 0) < 0)
    GiveUp(start);
  for (size_t i = 0; i < start.file_count; ++i)
    if (::syscall(SYS_dup3, moved[i], start.files[i].number, 0) < 0) GiveUp(start);
}

[[gnu::no_sanitize_address]] int RunChild(void* argument) {
  const Start& start = *static_cast<const Start*>(argument);
  const int there = 0;
  char released = 0;
  ::syscall(SYS_close, start.release);
  if (::syscall(SYS_write, start.started, &there, sizeof there) < 0) GiveUp(start);
  if (::syscall(SYS_read, start.released, &released, 1) != 1) GiveUp(start);
  if (start.new_user) {
    // Refused where the groups of an ordinary user can't be given up; they are its user's own.
    ::syscall(SYS_setgroups, 0, nullptr);
    if (::syscall(SYS_setresgid, 0, 0, 0) != 0 || ::syscall(SYS_setresuid, 0, 0, 0) != 0) GiveUp(start);
  }
  DefaultSignals();
  // Whatever of ours is open, also what we were started with: its files are placed over that.
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0) GiveUp(start);
  PlaceFiles(start);
  const uint64_t no_signals = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  ::syscall(SYS_execve, start.program, start.arguments, start.environment);
  // The user of a VF may not see the folders above a program that it may run.
  if (errno == EACCES)
    ::syscall(SYS_execveat, start.program_file, "", start.arguments, start.environment, AT_EMPTY_PATH);
  GiveUp(start);
}

Result<pid_t> PidOf(int pidfd) {
  char text[512] = {};
  const UniqueFd info{::open(fmt::format("/proc/self/fdinfo/{}", pidfd).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!info || ::read(info.get(), text, sizeof text - 1) <= 0) return FailErrno("pid of a new process");
  const std::string_view all{text};
  const size_t at = all.find("Pid:");
  const pid_t pid = at == all.npos ? -1 : static_cast<pid_t>(std::strtol(text + at + 4, nullptr, 10));
  if (pid <= 0) return Fail(std::errc::no_such_process, "pid of a new process");
  return pid;
}

Result<void> WriteFile(const std::string& path, const std::string& text) {
  const UniqueFd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno(fmt::format("cannot write \"{}\" to {}", text, path));
  return {};
}

// user_namespaces(7): one user and one group, known as 0 inside.
Result<void> MapUser(pid_t pid, uid_t user) {
  const std::string directory = fmt::format("/proc/{}/", pid);
  const std::string line = fmt::format("0 {} 1", user);
  const bool our_own = user == ::geteuid() && user != 0;
  // An ordinary user may map its own group alone, and only after giving up setgroups.
  if (our_own) TRY(WriteFile(directory + "setgroups", "deny"));
  TRY(WriteFile(directory + "uid_map", line));
  return WriteFile(directory + "gid_map", our_own ? fmt::format("0 {} 1", ::getegid()) : line);
}

// The errno that it wrote; 0 when the end of the file came first.
int ReadError(int fd) {
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(fd, &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  return n == sizeof error ? error : 0;
}

}  // namespace

Result<Spawned> SpawnProcess(const Child::Spec& spec) {
  UniqueFd opened{::open(spec.program.c_str(), O_PATH | O_CLOEXEC)};
  if (!opened) return FailErrno(fmt::format("cannot start {}", spec.program));
  const UniqueFd program_file = TRY(Above(std::move(opened)));
  std::vector<char*> arguments;
  for (const auto& argument : spec.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = Environment();
  WaitingPipe started = TRY(MakeWaitingPipe()), released = TRY(MakeWaitingPipe()), failed = TRY(MakeWaitingPipe());
  const Mapping stack = TRY(Mapping::Anonymous(kStackBytes));
  Start start{.program = spec.program.c_str(),
              .program_file = program_file.get(),
              .arguments = arguments.data(),
              .environment = environment.data(),
              .files = spec.files.data(),
              .file_count = spec.files.size(),
              .new_user = spec.confinement == Confinement::kUserNamespace,
              .started = started.write.get(),
              .released = released.read.get(),
              .release = released.write.get(),
              .failed = failed.write.get()};
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD | NamespacesOf(spec.confinement);
  int pidfd = -1;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // The thread that makes the process waits until it has its program, while this one writes its maps.
  std::thread maker([&] {
    if (::clone(&RunChild, stack.data() + stack.size(), flags, &start, &pidfd) >= 0) return;
    const int error = errno;
    [[maybe_unused]] const auto n = ::write(started.write.get(), &error, sizeof error);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  Spawned spawned;
  Result<void> prepared;
  if (const int error = ReadError(started.read.get()); error != 0) {
    errno = error;
    prepared = FailErrno(fmt::format("cannot start {}", spec.program));
  } else {
    spawned.pidfd = UniqueFd{pidfd};
    prepared = [&]() -> Result<void> {
      spawned.pid = TRY(PidOf(spawned.pidfd.get()));
      if (start.new_user) TRY(MapUser(spawned.pid, spec.user));
      return {};
    }();
    // Without a byte it gives up.
    if (prepared) [[maybe_unused]]
      const auto n = ::write(released.write.get(), "", 1);
    released.write.Reset();
  }
  maker.join();
  failed.write.Reset();
  if (const int error = ReadError(failed.read.get()); prepared && error != 0) {
    errno = error;
    prepared = FailErrno(
        fmt::format("cannot start {}{}", spec.program,
                    error == EACCES ? fmt::format(" as user {} (may everybody read and execute it?)", spec.user) : ""));
  }
  if (prepared) return spawned;
  if (spawned.pidfd) {
    ::syscall(SYS_pidfd_send_signal, spawned.pidfd.get(), SIGKILL, nullptr, 0);
    siginfo_t ended{};
    ::waitid(P_PIDFD, static_cast<id_t>(spawned.pidfd.get()), &ended, WEXITED);
  }
  return tl::unexpected(prepared.error());
}

}  // namespace vgpud::daemon
