// SPDX-License-Identifier: Apache-2.0
// The history's thread, on a disk that can be made to hang: SQLite's writes wait at a gate.
#include "vgpud/history/history_keeper.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int64_t kNoon = 1'795'176'000;  // 2026-11-20 12:00:00 UTC
constexpr char kToday[] = "2026-11-20";

class Disk {
 public:
  static Disk& Instance() {
    static Disk disk;
    return disk;
  }
  void Hang(bool hangs) {
    const std::lock_guard lock{mutex_};
    hangs_ = hangs;
    changed_.notify_all();
  }
  void Fill(bool full) {
    const std::lock_guard lock{mutex_};
    full_ = full;
  }
  void AwaitStuck() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return stuck_ > 0; });
  }

 private:
  Disk() {
    sqlite3_vfs* vfs = ::sqlite3_vfs_find(nullptr);
    for (const char* name : {"pwrite", "pwrite64"})
      vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(&Write));
  }
  static ssize_t Write(int fd, const void* bytes, size_t n, off_t at) {
    Disk& disk = Instance();
    std::unique_lock lock{disk.mutex_};
    ++disk.stuck_;
    disk.changed_.notify_all();
    disk.changed_.wait(lock, [&] { return !disk.hangs_; });
    --disk.stuck_;
    if (disk.full_) {
      errno = ENOSPC;
      return -1;
    }
    return ::pwrite(fd, bytes, n, at);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  bool full_ = false;
  int stuck_ = 0;
};

class HistoryKeeperTest : public testing::Test {
 protected:
  HistoryKeeperTest() {
    disk_.Hang(false);
    MakeKeeper();
    keeper_->Open(1h);
  }
  ~HistoryKeeperTest() override {
    disk_.Hang(false);
    disk_.Fill(false);
    keeper_.reset();
  }
  void MakeKeeper() { keeper_ = std::make_unique<HistoryKeeper>(directory_, replies_); }
  static History::Vf Used(const std::string& uuid, const std::string& name, uint64_t received, bool destroyed = false) {
    History::Vf vf{uuid, name, {}, destroyed};
    vf.usage.account.received_ns = received;
    return vf;
  }
  void Write(std::vector<History::Vf> rows) {
    keeper_->Write(std::move(rows), {}, kNoon, [this](bool all) { written_ += all; });
  }
  template <class Condition>
  void Serve(Condition until) {
    while (!until()) {
      replies_.RunAll();
      std::this_thread::yield();
    }
  }
  void WriteAll(std::vector<History::Vf> rows) {
    Write(std::move(rows));
    Serve([this] { return !keeper_->writing(); });
  }
  using Page = HistoryKeeper::Page;
  static std::string Nothing(const std::vector<History::Day>&) { return ""; }
  std::vector<History::Day> ReadToday() {
    std::vector<History::Day> days;
    std::optional<Result<Page>> page;
    keeper_->Read(
        {kToday, kToday},
        [&](std::vector<History::Day> rows) {
          days = std::move(rows);
          return std::string();
        },
        [&](Result<Page> read) { page = std::move(read); });
    Serve([&] { return page.has_value(); });
    EXPECT_TRUE(*page);
    return days;
  }

  Disk& disk_ = Disk::Instance();
  UniqueFd event_ = *MakeEventFd();
  TaskQueue replies_{event_.get()};
  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  std::unique_ptr<HistoryKeeper> keeper_;
  int written_ = 0;
};

TEST_F(HistoryKeeperTest, ADiskThatHangsDelaysNobody) {
  keeper_->Gone(Used("u", "a", 1000));
  disk_.Hang(true);
  Write({Used("v", "b", 500)});
  disk_.AwaitStuck();
  EXPECT_TRUE(keeper_->writing());
  EXPECT_EQ("u", keeper_->Known("a")->uuid);
  EXPECT_STREQ("on", keeper_->state().name);
  int answers = 0, refused = 0;
  for (size_t i = 0; i < HistoryKeeper::kMostReads + 5; ++i)
    keeper_->Read({kToday, kToday}, &Nothing, [&](const Result<Page>& page) { ++(page ? answers : refused); });
  replies_.RunAll();
  EXPECT_EQ(0, answers);
  EXPECT_EQ(6, refused);  // the write waits as well
  EXPECT_EQ(0, written_);
  disk_.Hang(false);
  Serve([&] { return answers == HistoryKeeper::kMostReads - 1; });
  EXPECT_EQ(1, written_);
  EXPECT_EQ(2u, ReadToday().size());
}

TEST_F(HistoryKeeperTest, WhatGoesWhileTheDiskHangsIsWrittenAfterwards) {
  disk_.Hang(true);
  keeper_->Gone(Used("u", "a", 1000, true));
  Write({});
  disk_.AwaitStuck();
  keeper_->Gone(Used("v", "b", 70, true));
  disk_.Hang(false);
  Serve([this] { return !keeper_->writing(); });
  EXPECT_TRUE(keeper_->anything_gone());
  WriteAll({});
  EXPECT_FALSE(keeper_->anything_gone());
  const auto days = ReadToday();
  ASSERT_EQ(2u, days.size());
  EXPECT_EQ(1000u, days[0].vf.usage.account.received_ns);
  EXPECT_EQ(70u, days[1].vf.usage.account.received_ns);
}

TEST_F(HistoryKeeperTest, AVfThatWentAndCameBackCountsOnce) {
  keeper_->Gone(Used("u", "a", 1000));
  keeper_->Back("u");
  WriteAll({Used("u", "a", 1500)});
  keeper_->Gone(Used("u", "a", 1600));
  keeper_->Gone(Used("u", "a", 1700, true));
  WriteAll({});
  const auto days = ReadToday();
  ASSERT_EQ(1u, days.size());
  EXPECT_EQ(1700u, days[0].vf.usage.account.received_ns);
  EXPECT_TRUE(days[0].vf.destroyed);
}

TEST_F(HistoryKeeperTest, WhatIsGivenUpIsCounted) {
  disk_.Hang(true);
  Write({Used("v", "b", 500)});
  disk_.AwaitStuck();
  for (size_t i = 0; i < HistoryKeeper::kMostVfs + 3; ++i)
    keeper_->Gone(Used(std::to_string(i), std::to_string(i), 1, true));
  EXPECT_EQ(3u, keeper_->state().lost_vfs);
  disk_.Hang(false);
  Serve([this] { return !keeper_->writing(); });
  WriteAll({});
  EXPECT_EQ(HistoryKeeper::kMostVfs + 1, ReadToday().size());
}

TEST_F(HistoryKeeperTest, VfsThatWereNotDestroyedAreKnownToTheNextDaemon) {
  keeper_->Gone(Used("u", "a", 1000));
  keeper_->Gone(Used("v", "b", 1000, true));
  WriteAll({Used("w", "c", 5)});
  ASSERT_TRUE(keeper_->Leave(1h));
  MakeKeeper();
  keeper_->Open(1h);
  ASSERT_TRUE(keeper_->Known("a"));
  EXPECT_EQ(1000u, keeper_->Known("a")->usage.account.received_ns);
  EXPECT_EQ("w", keeper_->Known("c")->uuid);
  EXPECT_FALSE(keeper_->Known("b"));
  // What it writes on counts from where the one before stopped.
  WriteAll({Used("u", "a", 1200)});
  EXPECT_EQ(1200u, ReadToday()[0].vf.usage.account.received_ns);
}

TEST_F(HistoryKeeperTest, WithADiskThatDoesNotAnswerAtTheStartItRunsWithout) {
  ASSERT_TRUE(keeper_->Leave(1h));
  fs::remove(directory_ + "/usage.db");
  disk_.Hang(true);
  MakeKeeper();
  keeper_->Open(1ms);
  EXPECT_STREQ("off", keeper_->state().name);
  EXPECT_NE(std::string::npos, keeper_->state().error.find("did not answer within 1 ms")) << keeper_->state().error;
  EXPECT_FALSE(keeper_->Known("a"));
  Write({Used("u", "a", 1)});
  EXPECT_FALSE(keeper_->writing());
  EXPECT_EQ(1, written_) << "there is nothing to wait for";
  EXPECT_FALSE(keeper_->on());
  keeper_->Gone(Used("u", "a", 1));
  EXPECT_FALSE(keeper_->anything_gone());
  std::string refused;
  keeper_->Read({kToday, kToday}, &Nothing,
                [&](const Result<Page>& page) { refused = page ? "" : page.error().context; });
  EXPECT_EQ(keeper_->state().error, refused);
}

TEST_F(HistoryKeeperTest, AThreadThatHangsIsLeftBehind) {
  disk_.Hang(true);
  Write({Used("u", "a", 1)});
  disk_.AwaitStuck();
  EXPECT_FALSE(keeper_->Leave(1ms));
  disk_.Hang(false);
  // It closes the file when it can.
  Serve([this] { return History::Open(directory_ + "/usage.db").has_value(); });
  EXPECT_EQ(0, written_);
}

TEST_F(HistoryKeeperTest, AFullDiskIsTriedAgainAndLosesNothing) {
  keeper_->Gone(Used("u", "a", 1000, true));
  disk_.Fill(true);
  for (int attempt = 0; attempt < 2; ++attempt) {
    WriteAll({Used("v", "b", 5)});
    EXPECT_EQ(0, written_);
    EXPECT_STREQ("failing", keeper_->state().name);
    EXPECT_NE("", keeper_->state().error);
    EXPECT_TRUE(keeper_->on());
    EXPECT_TRUE(keeper_->anything_gone());
  }
  disk_.Fill(false);
  WriteAll({Used("v", "b", 6)});
  EXPECT_EQ(1, written_);
  EXPECT_STREQ("on", keeper_->state().name);
  EXPECT_EQ("", keeper_->state().error);
  EXPECT_FALSE(keeper_->anything_gone());
  const auto days = ReadToday();
  ASSERT_EQ(2u, days.size());
  EXPECT_EQ(1000u, days[0].vf.usage.account.received_ns);
  EXPECT_EQ(6u, days[1].vf.usage.account.received_ns);
}

TEST_F(HistoryKeeperTest, OfWhatIsKnownTheLastOfANameCounts) {
  EXPECT_FALSE(keeper_->Known("a"));
  keeper_->Gone(Used("u", "a", 1));
  EXPECT_EQ("u", keeper_->Known("a")->uuid);
  keeper_->Gone(Used("v", "a", 2));
  EXPECT_EQ("v", keeper_->Known("a")->uuid);
  WriteAll({});
  EXPECT_EQ("v", keeper_->Known("a")->uuid) << "written, and not forgotten";
  keeper_->Back("v");
  EXPECT_FALSE(keeper_->Known("a")) << "it is there";
  keeper_->Gone(Used("w", "b", 3));
  keeper_->Gone(Used("w", "b", 4, true));
  EXPECT_FALSE(keeper_->Known("b"));
  WriteAll({});
  EXPECT_FALSE(keeper_->Known("b"));
}

TEST_F(HistoryKeeperTest, NoMoreNamesAreKnownThanTwoThousand) {
  EXPECT_EQ(2'000u, HistoryKeeper::kMostVfs);
  EXPECT_EQ(64u, HistoryKeeper::kMostReads);
  EXPECT_EQ(Ns{2s}, HistoryKeeper::kHangs);
  for (size_t i = 0; i < 2'001; ++i) keeper_->Gone(Used(std::to_string(i), std::to_string(i), 1));
  EXPECT_EQ(1u, keeper_->state().lost_vfs);
  WriteAll({});
  EXPECT_FALSE(keeper_->Known("0"));
  EXPECT_TRUE(keeper_->Known("1"));
  EXPECT_TRUE(keeper_->Known("2000"));
  EXPECT_EQ(1u, keeper_->state().lost_vfs);
}

TEST_F(HistoryKeeperTest, APageSaysWhereTheNextOneBegins) {
  WriteAll({Used("u", "a", 1), Used("v", "b", 2), Used("w", "c", 3)});
  const auto names = [](const std::vector<History::Day>& rows) {
    std::string text;
    for (const History::Day& row : rows) text += row.vf.name;
    return text;
  };
  HistoryKeeper::Query query{kToday, kToday, {}, 2};
  for (const char* expected : {"ab", "c"}) {
    std::optional<Result<Page>> page;
    keeper_->Read(query, names, [&](Result<Page> read) { page = std::move(read); });
    Serve([&] { return page.has_value(); });
    ASSERT_TRUE(*page);
    EXPECT_EQ(expected, (*page)->text);
    EXPECT_EQ(std::string(expected) == "ab", (*page)->next.has_value());
    query.after = (*page)->next.value_or(History::Place());
  }
}

TEST_F(HistoryKeeperTest, AtRestItIsOnAndDoesNotHang) {
  EXPECT_TRUE(keeper_->on());
  EXPECT_FALSE(keeper_->hangs());
  EXPECT_FALSE(keeper_->writing());
  EXPECT_FALSE(keeper_->anything_gone());
  const HistoryState state = keeper_->state();
  EXPECT_EQ("", state.error);
  EXPECT_EQ(directory_ + "/usage.db", state.path);
  EXPECT_EQ(0u, state.lost_vfs);
  EXPECT_EQ(0u, keeper_->past_gpu().run_ns);
  EXPECT_STREQ("off", HistoryState{}.name);
}

}  // namespace
}  // namespace vgpud::daemon
