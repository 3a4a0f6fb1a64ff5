// SPDX-License-Identifier: Apache-2.0
// The jail of executors that load somebody else's driver: what it makes of calls that nobody knew of.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <set>
#include <string>

#include "base/jail/refusals.h"
#include "base/message.h"
#include "base/sanitizer.h"
#include "tests/unit/base/jail/in_jail.h"

namespace vgpud {
namespace {

// A closed driver may make a call that no rule names: it gets an error. Only what no driver does is the end.
TEST(DriverJailTest, RefusesWhatItDoesNotKnow) {
  if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
  const auto in_jail = [](long (*call)()) { return InJail(JailKind::kExecDriver, call); };
  const auto allowed = {
      +[] { return long{::dup(0)}; },
      +[] { return long{::fcntl(0, F_SETFL, O_NONBLOCK)}; },
      +[] { return long{::memfd_create("m", MFD_CLOEXEC)}; },
      +[] { return ::syscall(SYS_prlimit64, 0, RLIMIT_AS, nullptr, std::array<uint64_t, 2>{}.data()); },
      +[] { return long{::sched_get_priority_max(SCHED_RR)}; },
      +StartThread,
  };
  for (const auto call : allowed) EXPECT_EQ(0, in_jail(call));
  for (const auto call : {
           +[] { return long{::chdir("/")}; },
           +[] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; },
           +[] { return long{::kill(::getppid(), 0)}; },
           +[] { return ::syscall(SYS_get_mempolicy, nullptr, nullptr, 0, nullptr, 0); },
           +[] { return ::syscall(SYS_mbind, nullptr, 0, 0, nullptr, 0, 0); },
           +[] { return ::syscall(SYS_fork); },
           +[] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); },
           +[] { return Map(PROT_READ | PROT_EXEC, kAnonymous); },
           +[] { return long{::unlink("/nothing")}; },
           +[] { return long{::fcntl(0, F_SETOWN, ::getppid())}; },
           +[] { return ::syscall(SYS_ioctl, 0, 0x5412); },
           +[] { return ::syscall(4000); },
       })
    EXPECT_EQ(EPERM, in_jail(call));
  for (const auto call : {
           +[] { return long{::execl("/bin/true", "true", nullptr)}; },
           +[] { return ::ptrace(PTRACE_SEIZE, ::getppid(), nullptr, nullptr); },
           +[] { return ::syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr); },
           +[] { return ::syscall(SYS_unshare, CLONE_NEWUSER); },
           +[] { return ::syscall(SYS_bpf, 0, nullptr, 0); },
           +[] { return ::syscall(SYS_setresuid, 0, 0, 0); },
           +[] { return ::syscall(SYS_pidfd_getfd, 0, 0, 0); },
           +[] { return ::syscall(SYS_io_uring_setup, 1, nullptr); },
           +[] { return ::syscall(SYS_userfaultfd, 0); },
       })
    EXPECT_EQ(kKilled, in_jail(call));
}

// Of all threads, those that were there before it, too.
TEST(DriverJailTest, WhatItRefusesIsListed) {
  if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
  SocketPair link = *MakeSeqpacketPair();
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::atomic<bool> jailed = false;
    std::atomic<int> wrong = 0;
    std::thread before([&] {
      while (!jailed) ::sched_yield();
      wrong += ::syscall(SYS_getpriority, PRIO_PROCESS, 0) >= 0 || errno != EPERM;
    });
    const auto watch = EnterJail(JailKind::kExecDriver, JailWatch::kAsk);
    const int fds[] = {watch ? watch->get() : -1};
    if (!watch || !*watch || !SendMessage(link.b.get(), std::as_bytes(std::span{"w", 1}), fds)) ::_exit(200);
    jailed = true;
    wrong += ::chdir("/") == 0 || errno != EPERM;
    before.join();
    ::_exit(wrong);
  }
  link.b.Reset();
  pollfd handed{link.a.get(), POLLIN, 0};
  ::poll(&handed, 1, -1);
  auto message = ReceiveMessage(link.a.get());
  if (!message || message->fds.size() != 1) ::kill(pid, SIGKILL);
  ASSERT_TRUE(message && message->fds.size() == 1);
  Refusals refusals(message->fds[0].Trust());
  for (;;) {
    pollfd state{refusals.fd(), POLLIN, 0};
    ASSERT_EQ(1, ::poll(&state, 1, -1));
    if ((state.revents & POLLIN) == 0) break;
    refusals.Answer();
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  EXPECT_EQ((std::set<std::string>{"chdir", "getpriority"}), refusals.names());
}

}  // namespace
}  // namespace vgpud
