// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace vgpud::daemon {
namespace {

constexpr int kPatienceMs = 20'000;

void AwaitEnd(const Child& child) {
  pollfd ended{child.pidfd(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&ended, 1, kPatienceMs));
}

bool NumberIsTaken(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

TEST(ChildTest, ItsNumberStaysTakenAsLongAsSomebodyHoldsIt) {
  pid_t pid = 0;
  std::shared_ptr<const UniqueFd> held;
  {
    Child child = *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "exit 3"}, .files = {}});
    pid = child.pid();
    held = child.HoldPid();
    AwaitEnd(child);
    EXPECT_EQ("exit 3", child.Reap()->text);
  }
  EXPECT_TRUE(NumberIsTaken(pid));
  held.reset();
  EXPECT_FALSE(NumberIsTaken(pid));
}

TEST(ChildTest, OneThatIsGivenUpIsKilledAndNotWaitedFor) {
  pid_t pid = 0;
  std::shared_ptr<const UniqueFd> held;
  {
    Child child = *Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}, .files = {}});
    pid = child.pid();
    held = child.HoldPid();
    child.Abandon();
  }
  pollfd ended{held->get(), POLLIN, 0};
  EXPECT_EQ(1, ::poll(&ended, 1, kPatienceMs));
  held.reset();
  EXPECT_FALSE(NumberIsTaken(pid));
}

// Whatever numbers its files get: what it needs to start, and to say why it can't, is not among them.
TEST(ChildTest, FilesOnAllNumbersAreInNobodysWay) {
  char path[] = "/tmp/child_test_XXXXXX";
  const UniqueFd garbage{::mkstemp(path)};
  ASSERT_TRUE(garbage);
  ASSERT_EQ(4, ::write(garbage.get(), "\0\1\2\3", 4));
  ASSERT_EQ(0, ::fchmod(garbage.get(), 0755));
  const Pipe pipe = *MakePipe();
  Child::Spec spec{.program = path, .arguments = {"garbage"}, .files = {}};
  for (int number = 3; number < 32; ++number) spec.files.push_back({pipe.write.get(), number});
  EXPECT_FALSE(Child::Spawn(spec)) << "a file of four bytes is no program";
  ::unlink(path);
}

// Whoever started vgpud may have left files open for it that are nobody else's business.
TEST(ChildTest, FilesThatWeInheritedAreNotPassedOn) {
  constexpr int kLow = 20, kHigh = 200;
  Pipe pipe = *MakePipe();
  for (const int number : {kLow, kHigh}) ASSERT_EQ(number, ::dup2(pipe.read.get(), number));
  Child child =
      *Child::Spawn({.program = "/bin/sh",
                     .arguments = {"sh", "-c", "cd /proc/self/fd && for f in *; do [ $f = 255 ] || echo n$f; done >&7"},
                     .files = {{pipe.write.get(), 7}}});
  for (const int number : {kLow, kHigh}) ::close(number);
  AwaitEnd(child);
  EXPECT_EQ("exit 0", child.Reap()->text);
  char text[400] = {};
  ASSERT_GT(::read(pipe.read.get(), text, sizeof text - 1), 0);
  // The shell opens one of its own for the folder.
  for (const char* other : {"n20\n", "n200\n", "n4\n", "n5\n", "n6\n", "n8\n", "n9\n"})
    EXPECT_EQ(std::string::npos, std::string(text).find(other)) << text;
  EXPECT_NE(std::string::npos, std::string(text).find("n7\n")) << text;
}

TEST(ChildTest, OfTheEnvironmentItGetsWhatItReads) {
  ASSERT_EQ(0, ::setenv("VGPUD_CHILD_TEST", "1", 1));
  ASSERT_EQ(0, ::setenv("SECRET_OF_THE_OPERATOR", "1", 1));
  Pipe pipe = *MakePipe();
  Child child = *Child::Spawn(
      {.program = "/bin/sh", .arguments = {"sh", "-c", "/usr/bin/env >&3"}, .files = {{pipe.write.get(), 3}}});
  AwaitEnd(child);
  EXPECT_EQ("exit 0", child.Reap()->text);
  std::string text(60'000, '\0');
  const ssize_t n = ::read(pipe.read.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  EXPECT_NE(std::string::npos, text.find("VGPUD_CHILD_TEST=1")) << text;
  EXPECT_EQ(std::string::npos, text.find("SECRET_OF_THE_OPERATOR")) << text;
}

}  // namespace
}  // namespace vgpud::daemon
