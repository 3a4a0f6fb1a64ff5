// SPDX-License-Identifier: Apache-2.0
// Access lists of sockets: the kernel lets those in whom they name, and no others.
#include "vgpud/host/let_in.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

constexpr uid_t kAlice = 61001, kBob = 61002;
constexpr gid_t kTeam = 61101, kOtherTeam = 61102;

class LetInTest : public testing::Test {
 protected:
  void SetUp() override {
    ::chmod(directory_.c_str(), 0755);
    listener_ = std::move(*ListenUnix(path_, SOCK_STREAM));
  }
  // Of a process with these rights.
  bool Connects(uid_t user, gid_t group) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is = ::setgroups(0, nullptr) == 0 && ::setgid(group) == 0 && ::setuid(user) == 0;
      ::_exit(is && ConnectUnix(path_, SOCK_STREAM) ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }
  const ScratchDir scratch_;
  const std::string& directory_ = scratch_.path();
  const std::string path_ = directory_ + "/a.channel.sock";
  UniqueFd listener_;
};

TEST_F(LetInTest, WhoIsNamedAndNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  EXPECT_FALSE(Connects(kAlice, kTeam));
  ASSERT_TRUE(LetIn(path_, {.user = kAlice, .group = {}}));
  EXPECT_TRUE(Connects(kAlice, kTeam));
  EXPECT_FALSE(Connects(kBob, kTeam));
  ASSERT_TRUE(LetIn(path_, {.user = {}, .group = kTeam}));
  EXPECT_FALSE(Connects(kAlice, kOtherTeam)) << "of an earlier list";
  EXPECT_TRUE(Connects(kBob, kTeam));
  ASSERT_TRUE(LetIn(path_, {.user = kAlice, .group = kTeam}));
  EXPECT_TRUE(Connects(kAlice, kOtherTeam));
  EXPECT_TRUE(Connects(kBob, kTeam));
  EXPECT_FALSE(Connects(kBob, kOtherTeam));
}

TEST_F(LetInTest, TheGroupOfTheFileKeepsWhatItsModeSays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(0, ::chown(path_.c_str(), 0, kOtherTeam));
  for (const mode_t mode : {0600, 0660}) {
    ASSERT_EQ(0, ::chmod(path_.c_str(), mode));
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_TRUE(LetIn(path_, {.user = {}, .group = kTeam}));
      EXPECT_EQ(mode == 0660, Connects(kAlice, kOtherTeam)) << mode;
      EXPECT_TRUE(Connects(kAlice, kTeam));
    }
    ASSERT_EQ(0, ::unlink(path_.c_str()));
    listener_ = std::move(*ListenUnix(path_, SOCK_STREAM));
    ASSERT_EQ(0, ::chown(path_.c_str(), 0, kOtherTeam));
  }
}

TEST_F(LetInTest, NobodyOrTheOwnerChangesNothing) {
  struct stat before {
  }, after{};
  ::stat(path_.c_str(), &before);
  ASSERT_TRUE(LetIn(path_, {}));
  ASSERT_TRUE(LetIn(path_, {.user = ::geteuid(), .group = {}}));
  ::stat(path_.c_str(), &after);
  EXPECT_EQ(before.st_mode, after.st_mode);
  EXPECT_EQ(std::nullopt, GroupLetIn(path_));
}

TEST_F(LetInTest, TheGroupIsThatOfTheListElseOfTheFile) {
  EXPECT_EQ(std::nullopt, GroupLetIn(directory_ + "/no"));
  ASSERT_EQ(0, ::chmod(path_.c_str(), 0660));
  EXPECT_EQ(::getegid(), GroupLetIn(path_));
  ASSERT_TRUE(LetIn(path_, {.user = {}, .group = kTeam}));
  EXPECT_EQ(kTeam, GroupLetIn(path_));
}

TEST_F(LetInTest, AFileOfSomebodyElseIsAnError) {
  EXPECT_FALSE(LetIn(directory_ + "/no", {.user = kAlice, .group = {}}));
  if (::geteuid() == 0) return;
  EXPECT_FALSE(LetIn("/etc/passwd", {.user = kAlice, .group = {}}));
}

}  // namespace
}  // namespace vgpud::daemon
