// SPDX-License-Identifier: Apache-2.0
// What VFs that are gone leave in the history, and how large that gets.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>

#include "tests/scratch_dir.h"
#include "vgpud/history/history.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int64_t kNoon = 1'795'176'000;  // 2026-11-20 12:00:00 UTC
constexpr int64_t kDay = 24 * 60 * 60;
constexpr char kToday[] = "2026-11-20";
constexpr char kTomorrow[] = "2026-11-21";

class HistoryBoundsTest : public testing::Test {
 protected:
  HistoryBoundsTest() { Reopen(); }
  ~HistoryBoundsTest() override { history_.reset(); }
  std::string Path() const { return directory_ + "/usage.db"; }
  void Reopen(int max_pages = 0) {
    history_.reset();
    auto opened = History::Open(Path(), max_pages);
    ASSERT_TRUE(opened) << opened.error().context;
    history_ = std::move(*opened);
  }
  static History::Vf Vf(const std::string& uuid, uint64_t received, Ns lived = 1h, const std::string& tenant = "",
                        bool destroyed = true) {
    History::Vf vf{uuid, "vf-" + uuid, {}, destroyed, {}, tenant, lived, tenant};
    vf.usage.account.received_ns = received;
    vf.usage.account.worst_overrun_ns = received;
    return vf;
  }
  void Write(const std::vector<History::Vf>& rows, int64_t at = kNoon) {
    const auto written = history_->Write(rows, {}, at);
    ASSERT_TRUE(written) << written.error().context;
  }
  // "NAME received/VFs " of each row.
  std::string Rows(const std::string& day, const std::string& tenant = "") {
    std::string text;
    const auto rows = *history_->Report(day, day);
    for (const History::Day& row : rows)
      if (row.vf.tenant == tenant)
        text += fmt::format("{} {}/{} ", row.vf.name, row.vf.usage.account.received_ns, row.vfs);
    return text;
  }
  // Of the file, which the history has let go of.
  int64_t Number(const std::string& sql) {
    history_.reset();
    sqlite3* database = nullptr;
    EXPECT_EQ(SQLITE_OK, ::sqlite3_open(Path().c_str(), &database));
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(SQLITE_OK, ::sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr));
    const int64_t number = ::sqlite3_step(statement) == SQLITE_ROW ? ::sqlite3_column_int64(statement, 0) : -1;
    ::sqlite3_finalize(statement);
    ::sqlite3_close(database);
    return number;
  }

  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  std::unique_ptr<History> history_;
};

TEST_F(HistoryBoundsTest, AVfThatNeverRanLeavesNothing) {
  Write({Vf("a", 0, 1s), Vf("b", 0, 1h, "", false), Vf("c", 0, 1h, "", false)});
  EXPECT_EQ("vf-b 0/1 vf-c 0/1 ", Rows(kToday)) << "while it is there it is reported";
  Write({Vf("b", 0, 1h)});
  Write({Vf("c", 0, Ns::max())}, kNoon + 3 * kDay);
  EXPECT_EQ("", Rows(kToday));
  EXPECT_EQ(0, Number("SELECT (SELECT count(*) FROM vf) + (SELECT count(*) FROM day)"));
}

TEST_F(HistoryBoundsTest, ThoseOfATenantThatLivedForAMomentAreAddedUpPerDay) {
  Write({Vf("a", 10, 9s, "team-a"), Vf("b", 5, 1s, "team-a"), Vf("c", 7, 1s, "team-b"), Vf("d", 100, 10s, "team-a")});
  Write({Vf("e", 3, 2s, "team-a")});
  Write({Vf("f", 4, 2s, "team-a")}, kNoon + kDay);
  EXPECT_EQ("vf-d 100/1 (short-lived) 18/3 ", Rows(kToday, "team-a"));
  EXPECT_EQ("(short-lived) 7/1 ", Rows(kToday, "team-b"));
  EXPECT_EQ("(short-lived) 4/1 ", Rows(kTomorrow, "team-a"));
  EXPECT_EQ(10u, history_->Report(kToday, kToday)->at(1).vf.usage.account.worst_overrun_ns) << "the worst, not the sum";
  EXPECT_EQ(3, Number("SELECT count(*) FROM vf")) << "d and a sum for each tenant";
}

TEST_F(HistoryBoundsTest, OneWithoutATenantHasARowHoweverShortItLived) {
  Write({Vf("job", 10, 1s)});
  EXPECT_EQ("vf-job 10/1 ", Rows(kToday));
}

TEST_F(HistoryBoundsTest, WhatOneOfThemUsedBeforeMidnightStaysOfThatDay) {
  Write({Vf("a", 10, 1s, "team-a", false)});
  Write({Vf("a", 13, 9s, "team-a")}, kNoon + kDay);
  EXPECT_EQ("(short-lived) 10/1 ", Rows(kToday, "team-a"));
  EXPECT_EQ("(short-lived) 3/1 ", Rows(kTomorrow, "team-a"));
}

TEST_F(HistoryBoundsTest, ATenantHasSoManyRowsOfItsOwnPerDay) {
  std::vector<History::Vf> many;
  for (uint32_t i = 0; i < History::kMostOfATenant + 5; ++i)
    many.push_back(Vf(fmt::format("{:03}", i), 1, 1min, "team-a"));
  Write(many);
  EXPECT_EQ(History::kMostOfATenant + 1, history_->Report(kToday, kToday)->size());
  EXPECT_NE(std::string::npos, Rows(kToday, "team-a").find("(short-lived) 5/5 "));
  Reopen();
  Write({Vf("x", 1, 1min, "team-a"), Vf("y", 1, 1min, "team-b"), Vf("z", 1, 48h, "team-a")});
  EXPECT_NE(std::string::npos, Rows(kToday, "team-a").find("(short-lived) 6/6 ")) << "counted from the file";
  EXPECT_EQ("vf-y 1/1 ", Rows(kToday, "team-b")) << "the others have their own";
  EXPECT_NE(std::string::npos, Rows(kToday, "team-a").find("vf-z ")) << "nobody has many that lived so long";
  Write({Vf("v", 1, 1min, "team-a")}, kNoon + kDay);
  EXPECT_EQ("vf-v 1/1 ", Rows(kTomorrow, "team-a"));
}

TEST_F(HistoryBoundsTest, AUserWithoutATenantHasSoManyRowsOfItsOwnPerDay) {
  const auto of = [](const std::string& users, const std::string& uuid, Ns lived) {
    History::Vf vf = Vf(uuid, 1, lived);
    vf.users = users;
    return vf;
  };
  std::vector<History::Vf> many{of("user 1000", "brief", 1s)};
  for (uint32_t i = 0; i < History::kMostOfATenant + 5; ++i)
    many.push_back(of("user 1000", fmt::format("{:03}", i), 1min));
  many.push_back(of("user 1001", "other", 1min));
  Write(many);
  EXPECT_EQ(History::kMostOfATenant + 2, history_->Report(kToday, kToday)->size());
  EXPECT_NE(std::string::npos, Rows(kToday).find("(short-lived) 6/6 "));
  EXPECT_NE(std::string::npos, Rows(kToday).find("vf-other ")) << "the others have their own";
}

TEST_F(HistoryBoundsTest, AWriteThatFailsCountsNothingTwice) {
  std::vector<History::Vf> many;
  for (int i = 0; i < 500; ++i) many.push_back(Vf(std::to_string(i), 1, 1min, "team-a", false));
  Reopen(16);
  many.push_back(Vf("a", 1, 1s, "team-a"));
  EXPECT_FALSE(history_->Write(many, {}, kNoon));
  Write({Vf("a", 1, 1s, "team-a")});
  EXPECT_EQ("(short-lived) 1/1 ", Rows(kToday, "team-a"));
}

TEST_F(HistoryBoundsTest, TheOldestDaysGoWhenTheFileGetsTooLarge) {
  constexpr int kPages = 24, kDays = 60;
  Reopen(kPages);
  for (int day = 0; day < kDays; ++day) {
    std::vector<History::Vf> rows;
    for (int i = 0; i < 20; ++i) rows.push_back(Vf(fmt::format("{}-{}", day, i), 1, 1h));
    Write(rows, kNoon + day * kDay);
  }
  EXPECT_EQ("", Rows(kToday));
  EXPECT_EQ(20u, history_->Report("2027-01-18", "2027-01-18")->size()) << "the last day is whole";
  EXPECT_EQ(0, Number("SELECT count(*) FROM vf WHERE uuid NOT IN (SELECT uuid FROM day)"));
  EXPECT_LE(fs::file_size(Path()), kPages * 4096u);
}

TEST_F(HistoryBoundsTest, AFileThatIsTooLargeIsLoadedAndGetsSmallAgain) {
  constexpr int kPages = 32;
  for (int day = 0; day < 50; ++day) {
    std::vector<History::Vf> rows;
    for (int i = 0; i < 50; ++i) rows.push_back(Vf(fmt::format("{}-{}", day, i), 1, 1h));
    Write(rows, kNoon + day * kDay);
  }
  history_.reset();
  ASSERT_GT(fs::file_size(Path()), 2 * kPages * 4096u);
  Reopen(kPages);
  for (int day = 50; day < 53; ++day) Write({Vf(fmt::format("{}", day), 1, 1h)}, kNoon + day * kDay);
  EXPECT_FALSE(history_->Report("2027-01-11", "2027-01-11")->empty());
  history_.reset();
  EXPECT_LE(fs::file_size(Path()), kPages * 4096u);
}

}  // namespace
}  // namespace vgpud::daemon
