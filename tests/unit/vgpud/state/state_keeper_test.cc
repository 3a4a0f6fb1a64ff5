// SPDX-License-Identifier: Apache-2.0
// Keeping state files without waiting for the disk.
#include "vgpud/state/state_keeper.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class StateKeeperTest : public testing::Test {
 protected:
  StateKeeperTest() { keeper_ = std::make_unique<StateKeeper>(dir(), ".json", replies_); }
  std::string dir() const { return root_ / "kept"; }
  std::vector<StateFiles::File> Open() { return keeper_->Open(10s, "state", "--state-dir"); }
  StateKeeper::Done Note(const std::string& what) {
    return [this, what](const Result<void>& result) {
      said_.push_back(what + (result ? "" : ": " + result.error().context));
    };
  }
  // Runs answers until the keeper has nothing left to do.
  void Finish() {
    bool idle = false;
    keeper_->WhenIdle([&] { idle = true; });
    while (!idle) {
      std::unique_lock lock{mutex_};
      woken_.wait(lock, [&] { return std::exchange(wake_, false); });
      lock.unlock();
      replies_.RunAll();
    }
  }
  std::string Text(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(fs::path(dir()) / name).rdbuf();
    return text.str();
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
  TaskQueue replies_{[this] {
    const std::lock_guard lock{mutex_};
    wake_ = true;
    woken_.notify_all();
  }};
  const ScratchDir scratch_;
  const fs::path root_ = scratch_.path();
  std::vector<std::string> said_;
  std::unique_ptr<StateKeeper> keeper_;
};

TEST_F(StateKeeperTest, AnswersWhenTheDiskHasIt) {
  EXPECT_TRUE(Open().empty());
  EXPECT_EQ("", keeper_->problem());
  std::string text_then;
  keeper_->Put("a.json", "one", [&](const Result<void>& result) {
    EXPECT_TRUE(result);
    text_then = Text("a.json");
  });
  EXPECT_EQ("", text_then) << "it does not wait";
  Finish();
  EXPECT_EQ("one", text_then);
  keeper_->Put("a.json", "one", Note("same"));
  EXPECT_EQ(std::vector<std::string>{"same"}, said_) << "the disk has it";
  keeper_->Remove("a.json", Note("removed"));
  Finish();
  EXPECT_EQ("", Text("a.json"));
  EXPECT_EQ((std::vector<std::string>{"same", "removed"}), said_);
}

TEST_F(StateKeeperTest, OfManyChangesOfOneFileTheLastCountsAndAllAreAnswered) {
  Open();
  for (int i = 0; i < 1000; ++i) keeper_->Put("a.json", fmt::format("{}", i), Note("put"));
  keeper_->Put("b.json", "b", Note("b"));
  keeper_->Remove("b.json", Note("b gone"));
  keeper_->Put("b.json", "again", Note("b again"));
  EXPECT_TRUE(said_.empty());
  Finish();
  EXPECT_EQ(1003u, said_.size());
  EXPECT_EQ("999", Text("a.json"));
  EXPECT_EQ("again", Text("b.json"));
}

TEST_F(StateKeeperTest, OfWhatIsRemovedNothingIsRemembered) {
  Open();
  keeper_->Put("a.json", "one", Note("put"));
  for (int i = 0; i < 100; ++i) {
    const std::string name = fmt::format("{}.json", i);
    keeper_->Put(name, "short", Note("put"));
    Finish();
    keeper_->Remove(name, Note("removed"));
    Finish();
  }
  EXPECT_EQ(1u, keeper_->remembered());
}

TEST_F(StateKeeperTest, WhatIsThereIsReadOnceAndNotWrittenAgain) {
  Open();
  keeper_->Put("a.json", "one", Note("put"));
  Finish();
  keeper_ = std::make_unique<StateKeeper>(dir(), ".json", replies_);
  const auto files = Open();
  ASSERT_EQ(1u, files.size());
  EXPECT_EQ("one", *files[0].text);
  keeper_->Put("a.json", "one", Note("same"));
  EXPECT_EQ((std::vector<std::string>{"put", "same"}), said_);
}

TEST_F(StateKeeperTest, AFailedWriteIsSaidAndTriedAgainWithTheNextChange) {
  Open();
  fs::create_directories(fs::path(dir()) / "a.json" / "in the way");
  keeper_->Put("a.json", "one", Note("put"));
  Finish();
  ASSERT_EQ(1u, said_.size());
  EXPECT_EQ("put: cannot write " + dir() + "/a.json: rename: Is a directory", said_[0]);
  fs::remove_all(fs::path(dir()) / "a.json");
  keeper_->Put("a.json", "one", Note("again"));
  Finish();
  EXPECT_EQ("again", said_.back());
  EXPECT_EQ("one", Text("a.json"));
}

TEST_F(StateKeeperTest, WithoutADirectoryEverythingIsRefused) {
  std::ofstream(dir()) << "a file";
  EXPECT_TRUE(Open().empty());
  EXPECT_NE(std::string::npos, keeper_->problem().find("is a link or no directory")) << keeper_->problem();
  keeper_->Put("a.json", "one", Note("put"));
  EXPECT_EQ(std::vector<std::string>{"put: " + keeper_->problem()}, said_);
}

}  // namespace
}  // namespace vgpud::daemon
