// SPDX-License-Identifier: Apache-2.0
// State files: whole whatever happens, and not believed when somebody else could have written them.
#include "vgpud/state/state_files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <vector>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

class StateFilesTest : public testing::Test {
 protected:
  StateFilesTest() { files_ = Open(); }
  std::unique_ptr<StateFiles> Open() const {
    auto opened = StateFiles::Open(dir(), "state", "--state-dir");
    EXPECT_TRUE(opened) << opened.error().context;
    return opened ? std::move(*opened) : nullptr;
  }
  fs::path dir() const { return root_ / "kept"; }
  std::string Text(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(dir() / name).rdbuf();
    return text.str();
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir())) names.insert(entry.path().filename());
    return names;
  }
  // Of the file "a.json", as it stands there.
  std::string WhyNot() {
    const auto all = files_->ReadAll(".json");
    EXPECT_TRUE(all && all->size() == 1);
    return all && all->size() == 1 && !all->front().text ? all->front().text.error().context : "";
  }

  const ScratchDir scratch_;
  const fs::path root_ = scratch_.path();
  std::unique_ptr<StateFiles> files_;
};

TEST_F(StateFilesTest, WhatIsWrittenIsReadInTheOrderOfNames) {
  EXPECT_EQ(static_cast<fs::perms>(0750), fs::status(dir()).permissions());
  ASSERT_TRUE(files_->Replace("b.json", "two"));
  ASSERT_TRUE(files_->Replace("a.json", "one"));
  ASSERT_TRUE(files_->Replace("a.json", "another"));
  ASSERT_TRUE(files_->Replace("c.txt", "three"));
  EXPECT_EQ(static_cast<fs::perms>(0600), fs::status(dir() / "a.json").permissions());
  const auto all = files_->ReadAll(".json");
  ASSERT_TRUE(all);
  ASSERT_EQ(2u, all->size());
  EXPECT_EQ("a.json", all->at(0).name);
  EXPECT_EQ("another", *all->at(0).text);
  EXPECT_EQ("two", *all->at(1).text);
  ASSERT_TRUE(files_->Remove("a.json"));
  EXPECT_TRUE(files_->Remove("a.json")) << "gone already";
  EXPECT_EQ((std::set<std::string>{"b.json", "c.txt"}), Names());
}

TEST_F(StateFilesTest, OneProcessHasTheDirectory) {
  const auto second = StateFiles::Open(dir(), "state", "--state-dir");
  ASSERT_FALSE(second);
  EXPECT_EQ("state: " + dir().native() +
                " belongs to another vgpud that runs; stop it or name another directory with --state-dir",
            second.error().context);
  files_.reset();
  EXPECT_TRUE(StateFiles::Open(dir(), "state", "--state-dir"));
}

TEST_F(StateFilesTest, WhatOthersCouldHaveWrittenIsNotBelieved) {
  ASSERT_TRUE(files_->Replace("a.json", "one"));
  EXPECT_EQ("", WhyNot());
  for (const fs::perms perms : {fs::perms::others_write, fs::perms::group_write}) {
    fs::permissions(dir() / "a.json", perms, fs::perm_options::add);
    EXPECT_EQ(0u, WhyNot().find("others may write to it (mode 06")) << WhyNot();
    fs::permissions(dir() / "a.json", perms, fs::perm_options::remove);
  }
  fs::create_hard_link(dir() / "a.json", root_ / "second");
  EXPECT_EQ("it has 2 names", WhyNot());
  fs::remove(root_ / "second");
  fs::rename(dir() / "a.json", root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", dir() / "a.json");
  EXPECT_EQ("it is a link", WhyNot());
  fs::remove(dir() / "a.json");
  fs::create_directory(dir() / "a.json");
  EXPECT_EQ("it is no ordinary file", WhyNot());
  fs::remove(dir() / "a.json");
  ASSERT_EQ(0, ::mkfifo((dir() / "a.json").c_str(), 0600));
  EXPECT_EQ("it is no ordinary file", WhyNot());
  fs::remove(dir() / "a.json");
  std::ofstream(dir() / "a.json") << std::string(StateFiles::kMostBytes, ' ');
  fs::permissions(dir() / "a.json", fs::perms::owner_all);
  EXPECT_EQ("", WhyNot());
  std::ofstream(dir() / "a.json", std::ios::app) << ' ';
  EXPECT_EQ("it has more than 65536 bytes", WhyNot());
  if (::geteuid() != 0) return;
  ASSERT_EQ(0, ::chown((dir() / "a.json").c_str(), 12'345, 0));
  EXPECT_EQ("it belongs to uid 12345, vgpud runs as uid 0", WhyNot());
}

TEST_F(StateFilesTest, AWriteThatFailsLeavesTheOldText) {
  ASSERT_TRUE(files_->Replace("a.json", "old"));
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_FSIZE, &before));
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &small));
  const auto written = files_->Replace("a.json", std::string(1000, 'n'));
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &before));
  ASSERT_FALSE(written);
  EXPECT_EQ("cannot write " + (dir() / "a.json").native() + ": write: File too large", written.error().context);
  EXPECT_EQ("old", Text("a.json"));
  EXPECT_EQ(std::set<std::string>{"a.json"}, Names()) << "nothing is left behind";
}

// The number of the call that `child` is about to make; -1: it has just made one.
int64_t CallOf(pid_t child) {
  __ptrace_syscall_info info{};
  EXPECT_LT(0, ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info));
  return info.op == PTRACE_SYSCALL_INFO_ENTRY ? static_cast<int64_t>(info.entry.nr) : -1;
}

// Runs `change` in a child that is killed at its system call number `at`; false: it has fewer, which are in `calls`.
bool KilledAt(int at, const std::function<void()>& change, std::vector<int64_t>* calls = nullptr) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::raise(SIGSTOP);
    change();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
  // A stop before and one after each call.
  for (int stop = 0; WIFSTOPPED(status); ++stop) {
    if (stop == at) {
      ::kill(child, SIGKILL);
      EXPECT_EQ(child, ::waitpid(child, &status, 0));
      return true;
    }
    if (const int64_t call = stop == 0 ? -1 : CallOf(child); call >= 0 && calls != nullptr) calls->push_back(call);
    EXPECT_EQ(0, ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr));
    EXPECT_EQ(child, ::waitpid(child, &status, 0));
  }
  EXPECT_EQ(0, WEXITSTATUS(status));
  return false;
}

bool MayTrace() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 77);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(StateFilesTest, KilledAtAnyMomentAFileIsOldOrNew) {
  if (!MayTrace()) GTEST_SKIP() << "no process may be traced here";
  const std::string texts[] = {std::string(3000, 'o'), std::string(5000, 'n')};
  std::set<std::string> seen;
  int moments = 0;
  for (bool killed = true; killed; ++moments) {
    ASSERT_TRUE(files_->Replace("a.json", texts[0]));
    killed = KilledAt(moments, [&] { (void)files_->Replace("a.json", texts[1]); });
    const std::string text = Text("a.json");
    EXPECT_TRUE(text == texts[0] || text == texts[1]) << "killed at stop " << moments << ": " << text.size();
    seen.insert(text);
    const auto all = files_->ReadAll(".json");
    ASSERT_TRUE(all && all->size() == 1);
    EXPECT_EQ(std::set<std::string>{"a.json"}, Names()) << "what was left behind is removed";
  }
  EXPECT_EQ(2u, seen.size());
  EXPECT_GT(moments, 12) << "at least six calls, each before and after";
}

TEST_F(StateFilesTest, TheTextIsOnTheDiskBeforeItsNameAndBothBeforeTheAnswer) {
  if (!MayTrace()) GTEST_SKIP() << "no process may be traced here";
  std::vector<int64_t> calls, order;
  ASSERT_FALSE(KilledAt(
      -1, [&] { (void)files_->Replace("a.json", "text"); }, &calls));
  ASSERT_FALSE(KilledAt(
      -1, [&] { (void)files_->Remove("a.json"); }, &calls));
  for (const int64_t call : calls)
    if (call == SYS_write || call == SYS_fsync || call == SYS_renameat || call == SYS_renameat2) order.push_back(call);
  ASSERT_EQ(5u, order.size());
  EXPECT_EQ(SYS_write, order[0]);
  EXPECT_EQ(SYS_fsync, order[1]) << "its text";
  EXPECT_NE(SYS_fsync, order[2]) << "its name";
  EXPECT_EQ(SYS_fsync, order[3]) << "the directory";
  EXPECT_EQ(SYS_fsync, order[4]) << "the directory without it";
}

TEST_F(StateFilesTest, KilledAtAnyMomentOfARemovalAFileIsWholeOrGone) {
  if (!MayTrace()) GTEST_SKIP() << "no process may be traced here";
  std::set<std::string> seen;
  int moment = 0;
  for (bool killed = true; killed; ++moment) {
    ASSERT_TRUE(files_->Replace("a.json", "old"));
    killed = KilledAt(moment, [&] { (void)files_->Remove("a.json"); });
    seen.insert(Text("a.json"));
  }
  EXPECT_EQ((std::set<std::string>{"", "old"}), seen);
}

}  // namespace
}  // namespace vgpud::daemon
