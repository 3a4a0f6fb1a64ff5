// SPDX-License-Identifier: Apache-2.0
// Which rows the history keeps of which day, and what is in them.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/scratch_dir.h"
#include "vgpud/history/history.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNoon = 1'795'176'000;  // 2026-11-20 12:00:00 UTC
constexpr int64_t kDay = 24 * 60 * 60;
constexpr char kToday[] = "2026-11-20";
constexpr char kTomorrow[] = "2026-11-21";

class HistoryRowsTest : public testing::Test {
 protected:
  HistoryRowsTest() { Reopen(); }
  ~HistoryRowsTest() override { history_.reset(); }
  std::string Path() const { return directory_ + "/usage.db"; }
  void Reopen() {
    history_.reset();
    history_ = *History::Open(Path());
  }
  static History::Vf Vf(const std::string& uuid, const std::string& name, uint64_t value = 1, bool destroyed = false) {
    History::Vf vf{uuid, name, {}, destroyed};
    for (const VfStatistic* row : UsageStatistics()) row->set(vf.usage, value);
    return vf;
  }
  void Write(const std::vector<History::Vf>& rows, int64_t at = kNoon) { ASSERT_TRUE(history_->Write(rows, {}, at)); }
  History::Day Only(const char* day) {
    const auto days = *history_->Report(day, day);
    EXPECT_EQ(1u, days.size());
    return days.empty() ? History::Day{} : days[0];
  }
  // Of the file, which the history has let go of.
  int64_t Number(const char* sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(SQLITE_OK, ::sqlite3_open(Path().c_str(), &database));
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(SQLITE_OK, ::sqlite3_prepare_v2(database, sql, -1, &statement, nullptr)) << ::sqlite3_errmsg(database);
    const int64_t number = ::sqlite3_step(statement) == SQLITE_ROW ? ::sqlite3_column_int64(statement, 0) : -1;
    ::sqlite3_finalize(statement);
    ::sqlite3_close(database);
    return number;
  }

  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  std::unique_ptr<History> history_;
};

TEST_F(HistoryRowsTest, EachDayHasEachFigureThatWasAdded) {
  Write({Vf("u", "a", 100)});
  Write({Vf("u", "a", 130)}, kNoon + kDay);
  for (const VfStatistic* row : UsageStatistics()) {
    EXPECT_EQ(100u, row->get(Only(kToday).vf.usage)) << row->about.column;
    EXPECT_EQ(row->about.worst ? 130u : 30u, row->get(Only(kTomorrow).vf.usage)) << row->about.column;
  }
  Write({Vf("u", "a", 150)}, kNoon + kDay);
  for (const VfStatistic* row : UsageStatistics())
    EXPECT_EQ(row->about.worst ? 150u : 50u, row->get(Only(kTomorrow).vf.usage)) << row->about.column;
}

TEST_F(HistoryRowsTest, AWorstThatIsNotOfThatDayIsNotSaidOfIt) {
  Write({Vf("u", "a", 100)});
  Write({Vf("u", "a", 100)}, kNoon + kDay);
  EXPECT_EQ(0u, Only(kTomorrow).vf.usage.account.worst_overrun_ns);
  EXPECT_EQ(0u, Only(kTomorrow).vf.usage.account.received_ns);
}

TEST_F(HistoryRowsTest, FiguresThatWentBackAddNothing) {
  Write({Vf("u", "a", 100)});
  Write({Vf("u", "a", 40)}, kNoon + kDay);
  EXPECT_EQ(0u, Only(kTomorrow).vf.usage.account.received_ns);
  Write({Vf("u", "a", 45)}, kNoon + kDay);
  EXPECT_EQ(5u, Only(kTomorrow).vf.usage.account.received_ns);
  EXPECT_EQ(45u, (*history_->Find("a"))->usage.account.received_ns);
}

TEST_F(HistoryRowsTest, RowsComeInTheOrderOfDayAndUuidInPagesOfAnySize) {
  Write({Vf("3", "b"), Vf("1", "c"), Vf("2", "a")}, kNoon + kDay);
  Write({Vf("3", "b", 2)}, kNoon + 2 * kDay);
  for (const size_t most : {size_t{1}, size_t{2}, size_t{3}, History::kAll}) {
    std::string order;
    History::Place after;
    for (;;) {
      const auto page = *history_->Report(kToday, "2026-11-22", most, after);
      EXPECT_LE(page.size(), most);
      for (const History::Day& day : page) order += day.day.substr(8) + day.vf.name + day.vf.uuid + " ";
      if (page.size() < most) break;
      after = History::PlaceOf(page.back());
    }
    EXPECT_EQ("21c1 21a2 21b3 22b3 ", order) << most;
  }
  EXPECT_FALSE(history_->Report(kToday, "2026-11-22")->at(0).vf.destroyed);
}

TEST_F(HistoryRowsTest, TheVfsThatWereThereLastAreKnownTheLastAtTheEnd) {
  Write({Vf("u", "a")}, kNoon);
  Write({Vf("v", "b")}, kNoon + 1);
  Write({Vf("w", "c"), Vf("x", "d", 1, true)}, kNoon + 2);
  const auto names = [&](size_t most) {
    std::string all;
    const auto vfs = history_->ReadKnown(most);
    EXPECT_TRUE(vfs);
    for (const History::Vf& vf : *vfs) all += vf.name;
    return all;
  };
  EXPECT_EQ("abc", names(10));
  EXPECT_EQ("bc", names(2));
  EXPECT_EQ("", names(0));
  Write({Vf("u", "a", 2)}, kNoon + 3);
  EXPECT_EQ("bca", names(10));
}

TEST_F(HistoryRowsTest, OfTwoOfANameTheOneThatWasThereLastIsFound) {
  Write({Vf("u", "a")}, kNoon + 1);
  Write({Vf("v", "a")}, kNoon);
  EXPECT_EQ("u", (*history_->Find("a"))->uuid);
  Write({Vf("v", "a", 2)}, kNoon + 2);
  EXPECT_EQ("v", (*history_->Find("a"))->uuid);
}

TEST_F(HistoryRowsTest, TheGpusFiguresComeBack) {
  History::Gpu gpu{.run_ns = 5, .switch_ns = 6, .idle_ns = 7, .switches = {}};
  gpu.switches.Add(1'000);
  const History::Gpu first = *history_->ReadGpu();
  EXPECT_EQ(0u, first.run_ns + first.switch_ns + first.idle_ns + first.switches.count());
  ASSERT_TRUE(history_->Write({}, gpu, kNoon));
  Reopen();
  const History::Gpu back = *history_->ReadGpu();
  EXPECT_EQ(5u, back.run_ns);
  EXPECT_EQ(6u, back.switch_ns);
  EXPECT_EQ(7u, back.idle_ns);
  EXPECT_EQ(gpu.switches.buckets(), back.switches.buckets());
}

// A VF that is destroyed is kept as long as its days.
TEST_F(HistoryRowsTest, OldDaysAndTheVfsThatHadOnlyThoseAreDropped) {
  Write({Vf("u", "a"), Vf("v", "b", 1, true), Vf("w", "c", 1, true)});
  Write({Vf("w", "c", 2, true)}, kNoon + kDay);
  for (int64_t day = 2; day <= History::kKeepDays; ++day) Write({Vf("x", "d", day)}, kNoon + day * kDay);
  history_.reset();
  EXPECT_EQ(History::kKeepDays, Number("SELECT count(*) FROM day"));
  EXPECT_EQ(3, Number("SELECT count(*) FROM vf"));
  EXPECT_EQ(0, Number("SELECT count(*) FROM vf WHERE uuid = 'v'"));
}

TEST_F(HistoryRowsTest, OldDaysAreDroppedOnceADay) {
  for (int64_t day = 1; day <= History::kKeepDays; ++day) Write({Vf("u", "a", day)}, kNoon + day * kDay);
  Write({Vf("v", "b")}, kNoon);
  Write({Vf("v", "b", 2)}, kNoon);
  EXPECT_EQ(1u, history_->Report(kToday, kToday)->size()) << "it is not too old for its own day";
  Write({}, kNoon + History::kKeepDays * kDay);
  EXPECT_TRUE(history_->Report(kToday, kToday)->empty());
}

TEST_F(HistoryRowsTest, TheFileIsForTheDaemonAndItsGroup) {
  EXPECT_EQ(static_cast<fs::perms>(0640), fs::status(Path()).permissions());
  ::chmod(Path().c_str(), 0666);
  Reopen();
  EXPECT_EQ(static_cast<fs::perms>(0640), fs::status(Path()).permissions());
}

TEST_F(HistoryRowsTest, TheFileSaysWhoseItIs) {
  history_.reset();
  EXPECT_EQ(0x76475055, Number("PRAGMA application_id"));
  EXPECT_EQ(5, Number("PRAGMA user_version"));
  EXPECT_EQ(5, History::kSchemaVersion);
  EXPECT_EQ(400, History::kKeepDays);
  (void)Number("PRAGMA user_version = 0");
  const auto opened = History::Open(Path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(std::errc::not_supported, opened.error().code);
  EXPECT_NE(std::string::npos, opened.error().context.find("it has version 0")) << opened.error().context;
}

TEST_F(HistoryRowsTest, ALinkIsNotFollowed) {
  history_.reset();
  fs::rename(Path(), directory_ + "/elsewhere");
  fs::create_symlink(directory_ + "/elsewhere", Path());
  const auto opened = History::Open(Path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(std::errc::too_many_symbolic_link_levels, opened.error().code);
  EXPECT_NE(std::string::npos, opened.error().context.find("it is a link")) << opened.error().context;
}

TEST_F(HistoryRowsTest, WhatIsNegativeInTheFileIsNothing) {
  Write({Vf("u", "a", 7)});
  history_.reset();
  (void)Number("UPDATE vf SET received_ns = -5");
  Reopen();
  EXPECT_EQ(0u, (*history_->Find("a"))->usage.account.received_ns);
  EXPECT_EQ(7u, (*history_->Find("a"))->usage.account.entitled_ns);
}

}  // namespace
}  // namespace vgpud::daemon
