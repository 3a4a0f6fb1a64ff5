// SPDX-License-Identifier: Apache-2.0
// What a new process finds: its files, environment, signals, user and namespaces, and how its end is told.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

constexpr int kPatienceMs = 20'000;

struct Ran {
  std::string output;
  Child::Ending ending;
};
// What `script` writes to its descriptor 3.
Ran RunScript(const std::string& script, Child::Spec spec = {}) {
  Pipe pipe = *MakePipe();
  spec.program = "/bin/sh";
  spec.arguments = {"sh", "-c", script};
  spec.files.push_back({pipe.write.get(), 3});
  auto child = Child::Spawn(spec);
  EXPECT_TRUE(child) << child.error().context;
  if (!child) return {};
  pollfd ended{child->pidfd(), POLLIN, 0};
  EXPECT_EQ(1, ::poll(&ended, 1, kPatienceMs));
  Ran ran;
  ran.output.resize(60'000);
  const ssize_t n = ::read(pipe.read.get(), ran.output.data(), ran.output.size());
  ran.output.resize(n > 0 ? static_cast<size_t>(n) : 0);
  const auto ending = child->Reap();
  EXPECT_TRUE(ending);
  if (ending) ran.ending = *ending;
  return ran;
}

TEST(SpawnTest, ItsEndIsTold) {
  const struct {
    const char* script;
    bool clean;
    const char* text;
  } kEnds[] = {{"exit 0", true, "exit 0"},
               {"exit 1", false, "exit 1"},
               {"exit 255", false, "exit 255"},
               {"kill -9 $$", false, "signal 9"},
               {"kill -15 $$", false, "signal 15"}};
  for (const auto& end : kEnds) {
    const Ran ran = RunScript(end.script);
    EXPECT_EQ(end.clean, ran.ending.clean) << end.script;
    EXPECT_EQ(end.text, ran.ending.text);
  }
}

TEST(SpawnTest, WhileItRunsItHasNoEndAndAfterwardsOnlyOne) {
  Child child = *Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}, .files = {}});
  EXPECT_GT(child.pid(), 0);
  EXPECT_FALSE(child.Reap());
  child.Kill(SIGTERM);
  pollfd ended{child.pidfd(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&ended, 1, kPatienceMs));
  EXPECT_EQ("signal 15", child.Reap()->text);
  EXPECT_EQ("ended earlier", child.Reap()->text);
  EXPECT_FALSE(child.Reap()->clean);
  EXPECT_EQ(-1, child.pid());
}

TEST(SpawnTest, FilesMayTradePlaces) {
  // Each is meant for the number that the other has.
  Pipe first = *MakePipe(), second = *MakePipe();
  Child::Spec spec;
  spec.files = {{first.write.get(), second.write.get()}, {second.write.get(), first.write.get()}};
  if (first.write.get() >= 10 || second.write.get() >= 10 || first.write.get() == 3 || second.write.get() == 3)
    GTEST_SKIP() << "a shell names numbers below 10 only";
  (void)RunScript(fmt::format("echo one >&{}; echo two >&{}", second.write.get(), first.write.get()), spec);
  char text[8] = {};
  EXPECT_EQ(4, ::read(first.read.get(), text, sizeof text));
  EXPECT_EQ("one\n", std::string(text, 4));
  EXPECT_EQ(4, ::read(second.read.get(), text, sizeof text));
  EXPECT_EQ("two\n", std::string(text, 4));
}

TEST(SpawnTest, InputAndOutputLeadNowhere) {
  EXPECT_EQ("0\n", RunScript("cat | wc -c >&3").output);
  EXPECT_EQ("exit 0", RunScript("echo lost").ending.text) << "writing there is no error";
}

TEST(SpawnTest, OnlyWhatIsForItsKindIsPassedOn) {
  const char* const kPassed[] = {"VGPUD_SPAWN_TEST", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS",
                                 "TSAN_OPTIONS",     "UBSAN_OPTIONS",   "REAL_VGPUD_X"};
  const char* const kKept[] = {"SECRET", "NOT_VGPUD_", "LD_PRELOAD_X", "LD_LIBRARY_PATHS", "HOME"};
  std::vector<std::pair<std::string, std::optional<std::string>>> before;
  for (const auto& names : {std::span<const char* const>(kPassed), std::span<const char* const>(kKept)})
    for (const char* name : names) {
      const char* value = std::getenv(name);
      before.emplace_back(name, value != nullptr ? std::optional<std::string>(value) : std::nullopt);
      ::setenv(name, "/none", 1);
    }
  const std::string all = "\n" + RunScript("/usr/bin/env >&3").output;
  for (const auto& [name, value] : before) value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  for (const char* name : kPassed) EXPECT_NE(std::string::npos, all.find(fmt::format("\n{}=/none\n", name))) << name;
  for (const char* name : kKept) EXPECT_EQ(std::string::npos, all.find(fmt::format("\n{}=", name))) << name;
}

TEST(SpawnTest, SignalsDoWhatTheyUsuallyDoButForSigpipe) {
  const auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
  const auto usr_before = ::signal(SIGUSR1, SIG_IGN), last_before = ::signal(SIGRTMAX, SIG_IGN),
             hup_before = ::signal(SIGHUP, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const std::string status = RunScript("exec grep -E '^Sig(Blk|Ign)' /proc/self/status >&3").output;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  ::signal(SIGPIPE, pipe_before), ::signal(SIGUSR1, usr_before), ::signal(SIGRTMAX, last_before),
      ::signal(SIGHUP, hup_before);
  EXPECT_EQ("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001000\n", status);
  EXPECT_TRUE(::sigismember(&after, SIGTERM)) << "ours are as they were";
  EXPECT_FALSE(::sigismember(&after, SIGINT));
}

TEST(SpawnTest, AProgramThatCannotBeRunIsSaidWithTheReason) {
  const auto missing = Child::Spawn({.program = "/nowhere/x", .arguments = {"x"}, .files = {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(std::errc::no_such_file_or_directory, missing.error().code);
  EXPECT_NE(std::string::npos, missing.error().context.find("cannot start /nowhere/x")) << missing.error().context;
  const auto no_program = Child::Spawn({.program = "/etc/passwd", .arguments = {"x"}, .files = {}});
  ASSERT_FALSE(no_program);
  EXPECT_EQ(std::errc::permission_denied, no_program.error().code);
  EXPECT_NE(std::string::npos, no_program.error().context.find("may everybody read and execute it?"))
      << no_program.error().context;
  const auto bad_file = Child::Spawn({.program = "/bin/true", .arguments = {"true"}, .files = {{999'999, 3}}});
  ASSERT_FALSE(bad_file);
  EXPECT_EQ(std::errc::bad_file_descriptor, bad_file.error().code);
}

TEST(SpawnTest, WithoutConfinementItIsAProcessLikeOurs) {
  EXPECT_EQ(fmt::format("{}\n", ::geteuid()), RunScript("id -u >&3").output);
  char own[64] = {};
  ASSERT_LT(0, ::readlink("/proc/self/ns/pid", own, sizeof own - 1));
  EXPECT_EQ(std::string(own) + "\n", RunScript("readlink /proc/self/ns/pid >&3").output);
}

TEST(SpawnTest, NamespacesAreItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may make them without a user namespace";
  Child::Spec spec;
  spec.confinement = Confinement::kNamespaces;
  const auto probe =
      Child::Spawn({.program = "/bin/true", .arguments = {"true"}, .files = {}, .confinement = spec.confinement});
  if (!probe) GTEST_SKIP() << probe.error().context;
  EXPECT_EQ("1\n", RunScript("echo $$ >&3", spec).output) << "the first process of its own";
  for (const char* kind : {"pid", "net", "mnt", "ipc", "uts"}) {
    char own[64] = {};
    ASSERT_LT(0, ::readlink(fmt::format("/proc/self/ns/{}", kind).c_str(), own, sizeof own - 1));
    // /proc is still that of the host: there it has another number.
    const Ran ran =
        RunScript(fmt::format("readlink /proc/thread-self/ns/{0} >&3 || readlink /proc/self/ns/{0} >&3", kind), spec);
    EXPECT_NE(std::string(own) + "\n", ran.output) << kind;
  }
  EXPECT_EQ(0, ::access("/proc/self/ns/user", F_OK));
}

TEST(SpawnTest, BehindAUserNamespaceItIsTheUserThatItWasGiven) {
  Child::Spec spec;
  spec.confinement = Confinement::kUserNamespace;
  spec.user = ::geteuid() == 0 ? 54'321 : ::geteuid();
  const auto probe = Child::Spawn(
      {.program = "/bin/true", .arguments = {"true"}, .files = {}, .confinement = spec.confinement, .user = spec.user});
  if (!probe) GTEST_SKIP() << probe.error().context;
  EXPECT_EQ("0 0\n", RunScript("echo $(id -u) $(id -g) >&3", spec).output) << "which it knows as 0";
  Child sleeper = *Child::Spawn({.program = "/bin/sleep",
                                 .arguments = {"sleep", "1000"},
                                 .files = {},
                                 .confinement = spec.confinement,
                                 .user = spec.user});
  for (const char* map : {"uid_map", "gid_map"}) {
    UniqueFd file{::open(fmt::format("/proc/{}/{}", sleeper.pid(), map).c_str(), O_RDONLY | O_CLOEXEC)};
    char text[128] = {};
    ASSERT_LT(0, ::read(file.get(), text, sizeof text - 1));
    std::istringstream words(text);
    uint64_t inside = 9, outside = 0, count = 0;
    words >> inside >> outside >> count;
    EXPECT_EQ(0u, inside);
    EXPECT_EQ(::geteuid() == 0 ? 54'321u : map[0] == 'u' ? ::geteuid() : ::getegid(), outside) << map;
    EXPECT_EQ(1u, count);
  }
}

}  // namespace
}  // namespace vgpud::daemon
