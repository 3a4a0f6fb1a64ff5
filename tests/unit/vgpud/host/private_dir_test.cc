// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/private_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSomebody = 54321;

class PrivateDirTest : public testing::Test {
 protected:
  // The error of opening it; empty: it is fine.
  std::string Open(const fs::path& path) {
    const auto opened = OpenPrivateDir(path, 0755, "runtime directory", "--runtime-dir");
    return opened ? "" : opened.error().context;
  }
  fs::path Dir(const char* name, mode_t mode) {
    fs::create_directory(root_ / name);
    EXPECT_EQ(0, ::chmod((root_ / name).c_str(), mode));
    return root_ / name;
  }
  static void GiveAway(const fs::path& path) { ASSERT_EQ(0, ::lchown(path.c_str(), kSomebody, kSomebody)); }
  const ScratchDir scratch_;
  const fs::path root_ = scratch_.path();
};

TEST_F(PrivateDirTest, WhatIsMissingIsMadeWhateverTheUmask) {
  const mode_t before = ::umask(0);
  EXPECT_EQ("", Open(root_ / "a" / "b" / "c"));
  ::umask(before);
  for (const char* made : {"a", "a/b", "a/b/c"})
    EXPECT_EQ(static_cast<fs::perms>(0755), fs::status(root_ / made).permissions()) << made;
  EXPECT_EQ("", Open((root_ / "a" / "b" / "c").string() + "/"));
}

TEST_F(PrivateDirTest, OneThatOthersMayWriteIsRefusedWithTheNextStep) {
  for (const mode_t mode : {0777, 01777, 0775, 0757}) {
    const std::string error = Open(Dir("open", mode));
    EXPECT_NE(std::string::npos, error.find("can be written by others")) << error;
    EXPECT_NE(std::string::npos, error.find("--runtime-dir")) << error;
  }
  EXPECT_EQ("", Open(Dir("open", 0700)));
}

TEST_F(PrivateDirTest, ALinkIsRefusedInItsPlace) {
  Dir("real", 0700);
  fs::create_directory_symlink(root_ / "real", root_ / "link");
  EXPECT_NE(std::string::npos, Open(root_ / "link").find("is a link")) << Open(root_ / "link");
}

TEST_F(PrivateDirTest, ALinkOnTheWayThatOnlyThisUserCanHaveMadeIsFollowed) {
  Dir("real", 0700);
  fs::create_directory_symlink(root_ / "real", root_ / "link");
  EXPECT_EQ("", Open(root_ / "link" / "below"));
  EXPECT_TRUE(fs::is_directory(root_ / "real" / "below"));
}

TEST_F(PrivateDirTest, AWayThroughADirectoryThatAnybodyMayWriteIsRefused) {
  const fs::path open = Dir("open", 0777);
  fs::create_directory(open / "mine");
  EXPECT_NE(std::string::npos, Open(open / "mine").find("can be written by anybody")) << Open(open / "mine");
  Dir("open", 01777);
  EXPECT_EQ("", Open(open / "mine"));
}

TEST_F(PrivateDirTest, OneOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory to another user";
  const fs::path theirs = Dir("theirs", 0755);
  GiveAway(theirs);
  EXPECT_NE(std::string::npos, Open(theirs).find("belongs to uid 54321")) << Open(theirs);
  EXPECT_NE(std::string::npos, Open(theirs / "below").find("belongs to uid 54321")) << Open(theirs / "below");
}

TEST_F(PrivateDirTest, AFileInItIsOnlyOpenedWhenItIsOurOwn) {
  const UniqueFd dir = *OpenPrivateDir(root_ / "d", 0700, "t", "-t");
  EXPECT_TRUE(OpenPrivateFile(dir, "new"));
  EXPECT_EQ(static_cast<fs::perms>(0600), fs::status(root_ / "d" / "new").permissions());
  fs::create_symlink("/etc/passwd", root_ / "d" / "link");
  EXPECT_FALSE(OpenPrivateFile(dir, "link"));
  fs::create_hard_link(root_ / "d" / "new", root_ / "d" / "second");
  EXPECT_FALSE(OpenPrivateFile(dir, "second"));
  ASSERT_EQ(0, ::mkfifo((root_ / "d" / "fifo").c_str(), 0600));
  EXPECT_FALSE(OpenPrivateFile(dir, "fifo"));
}

TEST_F(PrivateDirTest, TheModeIsTheOneThatWasAskedForAndOnlyOfWhatWasMade) {
  ASSERT_TRUE(OpenPrivateDir(root_ / "new", 0750, "t", "-t"));
  EXPECT_EQ(static_cast<fs::perms>(0750), fs::status(root_ / "new").permissions());
  Dir("old", 0700);
  ASSERT_TRUE(OpenPrivateDir(root_ / "old", 0750, "t", "-t"));
  EXPECT_EQ(static_cast<fs::perms>(0700), fs::status(root_ / "old").permissions());
}

TEST_F(PrivateDirTest, AFileInItsPlaceOrOnItsWayIsNoDirectory) {
  std::ofstream(root_ / "file") << "x";
  for (const fs::path& path : {root_ / "file", root_ / "file" / "below"}) {
    const auto opened = OpenPrivateDir(path, 0755, "t", "-t");
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(std::errc::not_a_directory, opened.error().code) << opened.error().context;
  }
}

TEST_F(PrivateDirTest, OnTheWayAGroupMayWriteAndNobodyNeedRead) {
  const fs::path way = Dir("way", 0775);
  EXPECT_EQ("", Open(way / "mine"));
  ASSERT_EQ(0, ::chmod(way.c_str(), 0311));
  EXPECT_EQ("", Open(way / "mine"));
}

TEST_F(PrivateDirTest, TheDescriptorIsOfTheDirectoryAndClosesOnExec) {
  const UniqueFd dir = *OpenPrivateDir(root_ / "d", 0700, "t", "-t");
  EXPECT_EQ(root_ / "d", fs::read_symlink("/proc/self/fd/" + std::to_string(dir.get())));
  EXPECT_NE(0, ::fcntl(dir.get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(PrivateDirTest, AFileOfAnotherUserIsNotOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const UniqueFd dir = *OpenPrivateDir(root_ / "d", 0700, "t", "-t");
  std::ofstream(root_ / "d" / "theirs") << "x";
  GiveAway(root_ / "d" / "theirs");
  const auto opened = OpenPrivateFile(dir, "theirs");
  ASSERT_FALSE(opened);
  EXPECT_EQ("theirs is not a file of vgpud's own (uid 54321, 1 names): remove it", opened.error().context);
}

}  // namespace
}  // namespace vgpud::daemon
