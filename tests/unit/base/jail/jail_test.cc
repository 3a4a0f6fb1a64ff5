// SPDX-License-Identifier: Apache-2.0
// What the jail lets through, refuses and ends, tried in processes that enter it for real.
#include "base/jail/jail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/jail/syscall_watch.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/sanitizer.h"
#include "tests/unit/base/jail/in_jail.h"

namespace vgpud {
namespace {

struct Attempt {
  const char* name;
  long (*call)();
  int exec;                         // in the thread of vgpud-exec that maps
  int vf;                           // in vgpud-vf
  std::optional<int> workers = {};  // in the other threads of vgpud-exec, where that is not the same as `exec`
};
std::ostream& operator<<(std::ostream& os, const Attempt& attempt) { return os << attempt.name; }

class JailTest : public testing::TestWithParam<Attempt> {
 protected:
  void SetUp() override {
    if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
  }
};

TEST_P(JailTest, EndsAsListed) {
  EXPECT_EQ(GetParam().exec, InJail(JailKind::kExec, GetParam().call)) << "in vgpud-exec";
  EXPECT_EQ(GetParam().vf, InJail(JailKind::kVf, GetParam().call)) << "in vgpud-vf";
  EXPECT_EQ(GetParam().workers.value_or(GetParam().exec), InJail(JailKind::kExecWorkers, GetParam().call))
      << "in vgpud-exec's workers";
}

// By the numbers of another architecture (x32), in a thread that could be ended alone.
long OnAThread() {
  std::thread([] { ::syscall(0x40000000 | SYS_getpid); }).join();
  return 0;
}
// vgpud-keep holds what everybody would like to have: it can keep it, and give it back, and nothing else.
TEST(KeepJailTest, OpensStartsAndSignalsNothing) {
  if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
  const auto in_jail = [](long (*call)()) { return InJail(JailKind::kKeep, call); };
  EXPECT_EQ(0, in_jail([] { return Map(PROT_READ | PROT_WRITE, kAnonymous); }));
  EXPECT_EQ(0, in_jail(StartThread));
  EXPECT_EQ(0, in_jail([] { return ::write(STDERR_FILENO, "", 0); }));
  EXPECT_EQ(EACCES, in_jail([] { return long{::open("/etc/passwd", O_RDONLY)}; }));
  for (const auto call : {
           +[] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; },
           +[] { return ::write(STDOUT_FILENO, "", 0); },
           +[] { return ::syscall(SYS_pidfd_send_signal, -1, SIGKILL, nullptr, 0); },
           +[] { return long{::kill(::getpid(), 0)}; },
           +[] { return long{::fork()}; },
           +[] { return long{::execl("/bin/true", "true", nullptr)}; },
           +[] { return Map(PROT_READ | PROT_EXEC, kAnonymous); },
           +[] { return long{::unlink("/nothing")}; },
           +[] { return long{::dup(0)}; },
       })
    EXPECT_EQ(kKilled, in_jail(call));
}

INSTANTIATE_TEST_SUITE_P(
    , JailTest,
    testing::ValuesIn(std::vector<Attempt>{
        // What they do all the time.
        {"memory", [] { return Map(PROT_READ | PROT_WRITE, kAnonymous); }, 0, 0},
        {"threads", StartThread, kKilled, 0, 0},
        {"tgkill_itself", [] { return ::syscall(SYS_tgkill, ::getpid(), ::getpid(), 0); }, 0, 0},
        // What none does: vgpud chooses.
        {"placement",
         [] {
           cpu_set_t set{};
           if (::sched_getaffinity(0, sizeof set, &set) != 0) return -1L;
           return long{::sched_setaffinity(0, sizeof set, &set)};
         },
         kKilled, kKilled, kKilled},
        {"guest_memory_mapped",
         [] {
           void* const at = reinterpret_cast<void*>(kGuestWindowBegin);
           return ::mmap(at, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, kGuestFileNumber, 0) == MAP_FAILED ? -1L : 0L;
         },
         EBADF, kKilled, kKilled},
        {"guest_memory_unmapped", [] { return long{::munmap(reinterpret_cast<void*>(kGuestWindowBegin), 4096)}; }, 0, 0,
         kKilled},
        {"make_shared_memory", [] { return long{::memfd_create("m", MFD_CLOEXEC)}; }, kKilled, 0},
        {"dup", [] { return long{::fcntl(0, F_DUPFD_CLOEXEC, 0)}; }, kKilled, 0},
        {"read_guest_file",
         [] {
           char c;
           return long{::pread(0, &c, 1, 0)};
         },
         kKilled, 0},
        {"read_own_file",
         [] {
           char c;
           return long{::read(0, &c, 0)};
         },
         0, 0},
        {"read_through_the_guests_number",
         [] {
           char c;
           return long{::read(kGuestFileNumber, &c, 1)};
         },
         kKilled, EBADF},
        // Other processes.
        {"tgkill_another", [] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0); }, kKilled, kKilled},
        {"kill", [] { return long{::kill(::getppid(), 0)}; }, kKilled, kKilled},
        {"tkill", [] { return ::syscall(SYS_tkill, ::getppid(), 0); }, kKilled, kKilled},
        {"rt_sigqueueinfo", [] { return ::syscall(SYS_rt_sigqueueinfo, ::getppid(), SIGUSR1, nullptr); }, kKilled,
         kKilled},
        {"ptrace", [] { return ::ptrace(PTRACE_SEIZE, ::getppid(), nullptr, nullptr); }, kKilled, kKilled},
        {"process_vm_readv", [] { return long{::process_vm_readv(::getppid(), nullptr, 0, nullptr, 0, 0)}; }, kKilled,
         kKilled},
        {"pidfd_open", [] { return ::syscall(SYS_pidfd_open, ::getppid(), 0); }, kKilled, kKilled},
        {"pidfd_getfd", [] { return ::syscall(SYS_pidfd_getfd, 0, 0, 0); }, kKilled, kKilled},
        {"signal_by_descriptor", [] { return ::syscall(SYS_pidfd_send_signal, -1, SIGSTOP, nullptr, 0); }, kKilled,
         kKilled},
        {"own_by_descriptor", [] { return long{::fcntl(0, F_SETOWN, ::getppid())}; }, kKilled, kKilled},
        {"signal_of_descriptor", [] { return long{::fcntl(0, F_SETSIG, SIGKILL)}; }, kKilled, kKilled},
        {"affinity_of_another",
         [] {
           cpu_set_t set{};
           return long{::sched_setaffinity(::getppid(), sizeof set, &set)};
         },
         kKilled, kKilled},
        {"scheduler_of_another",
         [] {
           sched_param p{};
           return long{::sched_setscheduler(::getppid(), SCHED_BATCH, &p)};
         },
         kKilled, kKilled},
        {"scheduler_of_itself",
         [] {
           sched_param p{};
           return long{::sched_setscheduler(0, SCHED_IDLE, &p)};
         },
         kKilled, kKilled},
        {"precedence_of_itself", [] { return long{::setpriority(PRIO_PROCESS, 0, 5)}; }, kKilled, kKilled},
        {"precedence_of_another", [] { return long{::setpriority(PRIO_PROCESS, 1, 5)}; }, kKilled, kKilled},
        {"precedence_of_the_user", [] { return long{::setpriority(PRIO_USER, 0, 5)}; }, kKilled, kKilled},
        {"limits_of_another", [] { return ::syscall(SYS_prlimit64, ::getppid(), RLIMIT_NOFILE, nullptr, nullptr); },
         kKilled, kKilled},
        {"memory_limit_of_itself",
         [] {
           rlimit limit{};
           return ::getrlimit(RLIMIT_DATA, &limit) == 0 ? long{::setrlimit(RLIMIT_DATA, &limit)} : -1;
         },
         0, kKilled, kKilled},
        {"memory_limit_of_another", [] { return ::syscall(SYS_prlimit64, ::getppid(), RLIMIT_DATA, nullptr, nullptr); },
         kKilled, kKilled},
        {"limit_of_files_of_itself", [] { return ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, nullptr); },
         kKilled, kKilled},
        // New processes and programs.
        {"fork", [] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }, kKilled, kKilled},
        {"vfork", [] { return ::syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0); }, kKilled, kKilled},
        {"clone3", [] { return ::syscall(SYS_clone3, nullptr, 0); }, ENOSYS, ENOSYS},
        {"thread_in_a_new_namespace",
         [] {
           return ::syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET,
                            0, 0, 0, 0);
         },
         kKilled, kKilled},
        {"thread_with_names_of_its_own",
         [] {
           return ::syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUTS,
                            0, 0, 0, 0);
         },
         kKilled, kKilled},
        {"execve", [] { return long{::execl("/bin/true", "true", nullptr)}; }, kKilled, kKilled},
        {"unshare", [] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }, kKilled, kKilled},
        {"setns", [] { return ::syscall(SYS_setns, 0, 0); }, kKilled, kKilled},
        // Memory.
        {"executable_memory", [] { return Map(PROT_READ | PROT_EXEC, kAnonymous); }, kKilled, kKilled},
        {"writable_code", [] { return Map(PROT_READ | PROT_WRITE | PROT_EXEC, kAnonymous); }, kKilled, kKilled},
        {"code_made_writable",
         [] { return long{::mprotect(reinterpret_cast<void*>(kGuestWindowEnd), 4096, PROT_READ | PROT_EXEC)}; },
         kKilled, kKilled},
        {"guest_memory_made_writable",
         [] { return long{::mprotect(reinterpret_cast<void*>(kGuestWindowBegin), 4096, PROT_READ | PROT_WRITE)}; },
         kKilled, ENOMEM},
        {"guest_memory_grown",
         [] {
           return ::mremap(reinterpret_cast<void*>(kGuestWindowBegin), 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED ? -1L
                                                                                                                 : 0L;
         },
         ENOMEM, EFAULT},
        {"memory_moved_into_the_window",
         [] {
           return ::mremap(reinterpret_cast<void*>(kGuestWindowEnd), 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
                           kGuestWindowBegin) == MAP_FAILED
                      ? -1L
                      : 0L;
         },
         kKilled, kKilled},
        {"guest_memory_replaced", [] { return Map(PROT_READ, kAnonymous | MAP_FIXED, kGuestWindowBegin); }, kKilled, 0},
        {"guest_window_reserved", [] { return Map(PROT_NONE, kAnonymous | MAP_FIXED_NOREPLACE, kGuestWindowBegin); }, 0,
         0},
        {"reserved_memory", [] { return Map(PROT_NONE, kAnonymous | MAP_NORESERVE); }, 0, 0},
        {"stack", [] { return Map(PROT_READ | PROT_WRITE, kAnonymous | MAP_STACK | MAP_NORESERVE); }, 0, 0},
        {"huge_pages", [] { return Map(PROT_READ, kAnonymous | MAP_HUGETLB | MAP_NORESERVE); }, kKilled, kKilled},
        {"huge_pages_in_the_window",
         [] { return Map(PROT_READ, kAnonymous | MAP_HUGETLB | MAP_FIXED_NOREPLACE, kGuestWindowBegin); }, kKilled,
         kKilled},
        {"shared_memory", [] { return Map(PROT_READ, MAP_SHARED | MAP_ANONYMOUS); }, kKilled, kKilled},
        {"memory_that_grows", [] { return Map(PROT_READ, kAnonymous | MAP_GROWSDOWN); }, kKilled, kKilled},
        {"memory_that_stays", [] { return Map(PROT_READ, kAnonymous | MAP_LOCKED); }, kKilled, kKilled},
        {"memory_taken_at_once", [] { return Map(PROT_READ, kAnonymous | MAP_POPULATE); }, kKilled, kKilled},
        {"file_mapped_privately",
         [] { return ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0) == MAP_FAILED ? -1L : 0L; }, kKilled, kKilled},
        {"remap_file_pages", [] { return ::syscall(SYS_remap_file_pages, 0, 0, 0, 0, 0); }, kKilled, kKilled},
        {"pages_poisoned", [] { return long{::madvise(nullptr, 4096, MADV_HWPOISON)}; }, kKilled, kKilled},
        {"holes_in_shared_memory", [] { return long{::madvise(nullptr, 4096, MADV_REMOVE)}; }, kKilled, kKilled},
        {"userfaultfd", [] { return ::syscall(SYS_userfaultfd, 0); }, kKilled, kKilled},
        {"process_madvise", [] { return ::syscall(SYS_process_madvise, -1, nullptr, 0, MADV_PAGEOUT, 0); }, kKilled,
         kKilled},
        // Files and the network.
        {"sleepers_moved", [] { return ::syscall(SYS_futex, nullptr, 4, 0, nullptr, nullptr, 0); }, kKilled, kKilled},
        {"open", [] { return long{::open("/etc/passwd", O_RDONLY)}; }, EACCES, EACCES},
        {"truncate_the_log", [] { return long{::ftruncate(2, 0)}; }, kKilled, kKilled},
        {"seek_the_log", [] { return ::lseek(2, 0, SEEK_SET); }, kKilled, kKilled},
        {"unlink", [] { return long{::unlink("/x")}; }, kKilled, kKilled},
        {"chdir", [] { return long{::chdir("/")}; }, kKilled, kKilled},
        {"mount", [] { return ::syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr); }, kKilled, kKilled},
        {"socket", [] { return long{::socket(AF_INET, SOCK_STREAM, 0)}; }, kKilled, kKilled},
        {"connect", [] { return long{::connect(0, nullptr, 0)}; }, kKilled, kKilled},
        {"filter_on_a_socket", [] { return long{::setsockopt(0, SOL_SOCKET, SO_ATTACH_FILTER, nullptr, 0)}; }, kKilled,
         kKilled},
        {"ioctl", [] { return ::syscall(SYS_ioctl, 0, 0x5412); }, kKilled, kKilled},
        // The kernel itself.
        {"bpf", [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }, kKilled, kKilled},
        {"io_uring", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }, kKilled, kKilled},
        {"perf_event_open", [] { return ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }, kKilled, kKilled},
        {"keyring", [] { return ::syscall(SYS_keyctl, 0, 0, 0, 0, 0); }, kKilled, kKilled},
        {"kexec", [] { return ::syscall(SYS_kexec_load, 0, 0, nullptr, 0); }, kKilled, kKilled},
        {"module", [] { return ::syscall(SYS_init_module, nullptr, 0, nullptr); }, kKilled, kKilled},
        {"set_clock", [] { return ::syscall(SYS_clock_settime, CLOCK_REALTIME, nullptr); }, kKilled, kKilled},
        {"set_user", [] { return ::syscall(SYS_setresuid, 0, 0, 0); }, kKilled, kKilled},
        {"message_queue", [] { return ::syscall(SYS_mq_open, "/x", O_CREAT, 0600, nullptr); }, kKilled, kKilled},
        {"shared_segment", [] { return ::syscall(SYS_shmget, 1, 4096, 0600); }, kKilled, kKilled},
        {"core_dumps", [] { return long{::prctl(PR_SET_DUMPABLE, 1)}; }, EINVAL, EINVAL},
        {"death_signal", [] { return long{::prctl(PR_SET_PDEATHSIG, 9)}; }, EINVAL, EINVAL},
        {"unknown_call", [] { return ::syscall(4000); }, kKilled, kKilled},
        {"other_architecture", OnAThread, kKilled, kKilled},
    }),
    [](const auto& p) { return std::string(p.param.name); });

class WatchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
  }
  // A process in a watched jail that calls `call` and exits with its errno; its watch.
  UniqueFd Start(long (*call)()) {
    SocketPair link = *MakeSeqpacketPair();
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto watch = EnterJail(JailKind::kExec, JailWatch::kAsk);
      const int fds[] = {watch ? watch->get() : -1};
      if (!watch || !*watch || !SendMessage(link.b.get(), std::as_bytes(std::span{"w", 1}), fds)) ::_exit(200);
      ::_exit(call() >= 0 ? 0 : errno);
    }
    pollfd p{link.a.get(), POLLIN, 0};
    ::poll(&p, 1, -1);
    auto message = ReceiveMessage(link.a.get());
    return message && message->fds.size() == 1 ? message->fds[0].Trust() : UniqueFd{};
  }
  int Status() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }
  pid_t pid_ = -1;
  EventLoop loop_;
};

TEST_F(WatchTest, TellsWhichCallAndLeavesTheCallerWaiting) {
  UniqueFd watch = Start([] { return long{::kill(1, 0)}; });
  ASSERT_TRUE(watch);
  std::string tried;
  const SyscallWatch watcher(loop_, std::move(watch), [&](const SyscallWatch::Call& call) -> SyscallWatch::Verdict {
    tried = call.Name();
    ::kill(pid_, SIGKILL);
    loop_.Stop();
    return {};
  });
  loop_.Run();
  EXPECT_EQ("kill", tried);
  EXPECT_EQ(SIGKILL, WTERMSIG(Status()));
}

TEST_F(WatchTest, GivesAFileWithTheAnswer) {
  const UniqueFd memory = *MakeSealedMemfd("m", 4096);
  const Mapping view = *Mapping::Shared(memory.get(), 0, 4096);
  UniqueFd watch = Start([] {
    void* const at = reinterpret_cast<void*>(kGuestWindowBegin);
    auto* p = static_cast<char*>(::mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, kGuestFileNumber, 0));
    if (p == MAP_FAILED) return -1L;
    *p = 42;
    return 0L;
  });
  ASSERT_TRUE(watch);
  const SyscallWatch watcher(loop_, std::move(watch), [&](const SyscallWatch::Call& call) -> SyscallWatch::Verdict {
    EXPECT_EQ("mmap", call.Name());
    EXPECT_EQ(kGuestWindowBegin, call.arguments[0]);
    loop_.Stop();
    return {SyscallWatch::Verdict::Kind::kGo, 0, memory.get(), kGuestFileNumber};
  });
  loop_.Run();
  EXPECT_EQ(0, Status());
  EXPECT_EQ(std::byte{42}, *view.data());
}

// Without SA_RESTART, as where a write is bounded in time (vfio/device/bounded_write.h).
TEST_F(WatchTest, SignalsOfTheWatcherSpoilNoAnswer) {
  constexpr int kCalls = 4000;
  const UniqueFd memory = *MakeSealedMemfd("m", 4096);
  UniqueFd watch = Start([] {
    for (int i = 0; i < kCalls; ++i)
      if (::mmap(reinterpret_cast<void*>(kGuestWindowBegin), 4096, PROT_READ, MAP_SHARED | MAP_FIXED, kGuestFileNumber,
                 0) == MAP_FAILED)
        return -1L;
    return 0L;
  });
  ASSERT_TRUE(watch);
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  const auto tick = [](suseconds_t us) {
    const itimerval every{{0, us}, {0, us}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  };
  int calls = 0;
  const SyscallWatch watcher(loop_, std::move(watch), [&](const SyscallWatch::Call& call) -> SyscallWatch::Verdict {
    if (call.Name() != "mmap" || ++calls == kCalls) loop_.Stop();
    return {SyscallWatch::Verdict::Kind::kGo, 0, memory.get(), kGuestFileNumber};
  });
  tick(50);
  loop_.Run();
  tick(0);
  EXPECT_EQ(0, Status());
  EXPECT_EQ(kCalls, calls);
}

int KernelMinor() {
  utsname name{};
  int major = 0, minor = 0;
  return ::uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 ? 1000 * major + minor : 0;
}

void HandleSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, nullptr);
}

// Or a call that the watcher takes for done could be undone by a signal at the right moment.
TEST_F(WatchTest, NoSignalTakesBackACallThatTheWatcherHas) {
  if (KernelMinor() < 5019) GTEST_SKIP() << "since Linux 5.19";
  UniqueFd watch = Start([] {
    HandleSignals();
    return long{::munmap(reinterpret_cast<void*>(kGuestWindowBegin), 4096)};
  });
  ASSERT_TRUE(watch);
  int undelivered = 0;
  const SyscallWatch watcher(
      loop_, std::move(watch),
      [&](const SyscallWatch::Call&) -> SyscallWatch::Verdict {
        ::kill(pid_, SIGUSR1);
        // It would be gone by now.
        for (int i = 0; i < 1000; ++i) ::sched_yield();
        loop_.Stop();
        return {SyscallWatch::Verdict::Kind::kGo};
      },
      [&] { ++undelivered; });
  loop_.Run();
  EXPECT_EQ(0, undelivered);
  EXPECT_EQ(0, Status());
}

// A signal between the moment when the loop learns of a call and the one when it looks.
TEST_F(WatchTest, ACallThatWasTakenBackIsNotTheLast) {
  UniqueFd watch = Start([] {
    HandleSignals();
    long rc = 0;
    while ((rc = ::munmap(reinterpret_cast<void*>(kGuestWindowBegin), 4096)) != 0 && errno == EINTR) {
      pollfd nothing{-1, 0, 0};
      ::ppoll(&nothing, 1, nullptr, nullptr);  // until the next signal
    }
    return rc;
  });
  ASSERT_TRUE(watch);
  pollfd call{watch.get(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&call, 1, -1));
  // Both are known to the loop when it begins, and the first one's callback comes first.
  const UniqueFd first = *MakeEventFd();
  SignalEventFd(first.get());
  const auto take_back = loop_.OnReadable(first.get(), [&, number = watch.get()] {
    DrainEventFd(first.get());
    ::kill(pid_, SIGUSR1);
    pollfd again{number, POLLIN, 0};
    while (::poll(&again, 1, 0) == 1) ::sched_yield();
    loop_.Post([this] { ::kill(pid_, SIGUSR1); });
  });
  int calls = 0;
  const SyscallWatch watcher(loop_, std::move(watch), [&](const SyscallWatch::Call&) -> SyscallWatch::Verdict {
    ++calls;
    loop_.Stop();
    return {SyscallWatch::Verdict::Kind::kGo};
  });
  // The second signal may come before it waits for one.
  const auto more = loop_.Timer([this] { ::kill(pid_, SIGUSR1); });
  const auto late = loop_.Timer([this] { loop_.Stop(); });
  more->Arm(std::chrono::milliseconds(200));
  late->Arm(std::chrono::seconds(20));
  loop_.Run();
  EXPECT_EQ(1, calls);
  ::kill(pid_, calls == 1 ? SIGUSR1 : SIGKILL);
  EXPECT_EQ(0, Status());
}

TEST_F(WatchTest, RefusesWithAnError) {
  UniqueFd watch = Start([] { return long{::munmap(reinterpret_cast<void*>(kGuestWindowBegin), 4096)}; });
  ASSERT_TRUE(watch);
  const SyscallWatch watcher(loop_, std::move(watch), [&](const SyscallWatch::Call&) -> SyscallWatch::Verdict {
    loop_.Stop();
    return {SyscallWatch::Verdict::Kind::kRefuse, ENXIO};
  });
  loop_.Run();
  EXPECT_EQ(ENXIO, WEXITSTATUS(Status()));
}

}  // namespace
}  // namespace vgpud
