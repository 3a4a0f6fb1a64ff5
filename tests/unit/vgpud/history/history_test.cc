// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/history.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_dir.h"
#include "vgpud/history/day.h"
#include "vgpud/model/uuid.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNoon = 1'795'176'000;  // 2026-11-20 12:00:00 UTC
constexpr int64_t kDay = 24 * 60 * 60;

VfStats Usage(uint64_t received, uint64_t kernels = 0) {
  VfStats usage;
  usage.account.received_ns = received;
  usage.account.entitled_ns = received + 1;
  usage.account.slices = received / 10;
  usage.account.worst_overrun_ns = received / 2;
  usage.work.kernels = kernels;
  for (uint64_t i = 0; i < received / 10; ++i) usage.times.turn_wait.Add(1000 * i);
  return usage;
}

class HistoryTest : public testing::Test {
 protected:
  std::string Path() const { return directory_ + "/usage.db"; }
  std::unique_ptr<History> MustOpen(int max_pages = 0) const {
    auto history = History::Open(Path(), max_pages);
    EXPECT_TRUE(history) << history.error().context;
    return history ? std::move(*history) : nullptr;
  }
  std::string OpenError() const {
    const auto history = History::Open(Path());
    EXPECT_FALSE(history);
    return history ? "" : history.error().context;
  }

  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
};

TEST(DayTest, IsUtcAndEndsAtMidnight) {
  EXPECT_EQ("2026-11-20", DayOf(kNoon));
  EXPECT_EQ("2026-11-20", DayOf(NextDay(kNoon) - 1));
  EXPECT_EQ("2026-11-21", DayOf(NextDay(kNoon)));
  EXPECT_EQ("2024-02-29", *ParseDay("2024-02-29"));
  EXPECT_EQ(1, DaysOf("2024-02-29", "2024-02-29"));
  EXPECT_EQ(366, DaysOf("2024-01-01", "2024-12-31"));
  EXPECT_EQ(0, DaysOf("2024-02-29", "2024-02-28"));
  for (const char* bad : {"", "2026-02-29", "2026-13-01", "2026-1-1", "20261120", "2026-11-20 ", "2026-11-20T00", "x"})
    EXPECT_FALSE(ParseDay(bad)) << bad;
}

TEST(UuidTest, TextAndBack) {
  const Uuid uuid = RandomUuid();
  EXPECT_EQ(uuid, UuidFromText(ToText(uuid)));
  EXPECT_NE(uuid, RandomUuid());
  EXPECT_EQ("00010203-0405-0607-0809-0a0b0c0d0e0f", ToText(*UuidFromText("00010203-0405-0607-0809-0A0b0c0d0e0f")));
  for (const char* bad : {"", "00010203-0405-0607-0809-0a0b0c0d0e0", "00010203x0405-0607-0809-0a0b0c0d0e0f",
                          "0001020g-0405-0607-0809-0a0b0c0d0e0f", "00010203-0405-0607-0809-0a0b0c0d0e0f0"})
    EXPECT_FALSE(UuidFromText(bad)) << bad;
}

TEST(HistogramTextTest, TextAndBack) {
  LatencyHistogram histogram;
  for (const uint64_t ns : {0ull, 300ull, 5'000ull, 5'100ull, 9'000'000'000ull}) histogram.Add(ns);
  const auto back = HistogramFromText(ToText(histogram));
  ASSERT_TRUE(back);
  EXPECT_EQ(histogram.buckets(), back->buckets());
  EXPECT_EQ(5u, back->count());
  EXPECT_EQ(histogram.sum_ns(), back->sum_ns());
  EXPECT_EQ(9'000'000'000u, back->max_ns());
  for (const char* bad : {"", "1", "x 1", "1 2 97:1", "1 2 3", "1 2 3:4:5"}) {
    const auto read = HistogramFromText(bad);
    EXPECT_FALSE(read && read->count() > 0) << bad;
  }
}

TEST_F(HistoryTest, AVfIsFoundAgainWithAllItsFigures) {
  VfStats usage = Usage(1000, 7);
  uint64_t value = 100;
  for (const VfStatistic* row : UsageStatistics()) row->set(usage, ++value);
  for (const VfHistogram& histogram : VfHistograms()) histogram.edit(usage).Add(++value);
  {
    const auto history = MustOpen();
    EXPECT_FALSE(*history->Find("a"));
    ASSERT_TRUE(
        history->Write({{"uuid-a", "a", usage}}, {.run_ns = 5, .switch_ns = 6, .idle_ns = 7, .switches = {}}, kNoon));
  }
  const auto history = MustOpen();
  const auto found = history->Find("a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ("uuid-a", (*found)->uuid);
  for (const VfStatistic* row : UsageStatistics())
    EXPECT_EQ(row->get(usage), row->get((*found)->usage)) << row->about.column;
  for (const VfHistogram& histogram : VfHistograms()) {
    EXPECT_EQ(histogram.get(usage).buckets(), histogram.get((*found)->usage).buckets()) << histogram.column;
    EXPECT_EQ(histogram.get(usage).sum_ns(), histogram.get((*found)->usage).sum_ns());
  }
  EXPECT_EQ(6u, history->ReadGpu()->switch_ns);
  EXPECT_FALSE(*history->Find("b"));
}

TEST_F(HistoryTest, ADestroyedVfIsNotFoundAgainButReported) {
  const auto history = MustOpen();
  ASSERT_TRUE(history->Write({{"uuid-1", "a", Usage(1000), true}}, {}, kNoon));
  EXPECT_FALSE(*history->Find("a"));
  ASSERT_TRUE(history->Write({{"uuid-2", "a", Usage(50)}}, {}, kNoon));
  EXPECT_EQ("uuid-2", (*history->Find("a"))->uuid);
  const auto report = history->Report("2026-11-20", "2026-11-20");
  ASSERT_EQ(2u, report->size());
  EXPECT_TRUE(report->at(0).vf.destroyed);
  EXPECT_EQ(1000u, report->at(0).vf.usage.account.received_ns);
  EXPECT_EQ(50u, report->at(1).vf.usage.account.received_ns);
}

TEST_F(HistoryTest, DaysAreKeptForSoLongAndNoLonger) {
  const auto history = MustOpen();
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1000)}, {"v", "b", Usage(10), true}}, {}, kNoon));
  uint64_t used = 1000;
  for (int64_t day = 1; day < History::kKeepDays; ++day)
    ASSERT_TRUE(history->Write({{"u", "a", Usage(++used)}}, {}, kNoon + day * kDay));
  EXPECT_EQ(2u, history->Report("2026-11-20", "2026-11-20")->size());
  ASSERT_TRUE(history->Write({{"u", "a", Usage(++used)}}, {}, kNoon + History::kKeepDays * kDay));
  EXPECT_TRUE(history->Report("2026-11-20", "2026-11-20")->empty());
  EXPECT_EQ(static_cast<size_t>(History::kKeepDays), history->Report("2026-11-20", "2030-01-01")->size());
  EXPECT_EQ(used, (*history->Find("a"))->usage.account.received_ns);
}

TEST_F(HistoryTest, AClockThatJumpsCostsNoDay) {
  const auto history = MustOpen();
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1000)}}, {}, kNoon));
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1100)}}, {}, kNoon + 80 * 365 * kDay));
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1200)}}, {}, 0));
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1300)}}, {}, kNoon + kDay));
  EXPECT_EQ(1000u, history->Report("2026-11-20", "2026-11-20")->at(0).vf.usage.account.received_ns);
  EXPECT_EQ(100u, history->Report("2026-11-21", "2026-11-21")->at(0).vf.usage.account.received_ns);
  EXPECT_EQ(100u, history->Report("1970-01-01", "1970-01-01")->at(0).vf.usage.account.received_ns);
  EXPECT_EQ(1300u, (*history->Find("a"))->usage.account.received_ns) << "nothing is lost or counted twice";
}

TEST_F(HistoryTest, EachDayHasWhatWasUsedInIt) {
  {
    const auto history = MustOpen();
    ASSERT_TRUE(history->Write({{"u", "a", Usage(1000, 3)}}, {}, kNoon));
    ASSERT_TRUE(history->Write({{"u", "a", Usage(1500, 3)}}, {}, kNoon + 5));
    ASSERT_TRUE(history->Write({{"u", "a", Usage(1700, 9)}, {"v", "b", Usage(40)}}, {}, kNoon + kDay));
  }
  // A restarted daemon goes on where the one before stopped, on whatever day that is.
  const auto history = MustOpen();
  ASSERT_TRUE(*history->Find("a"));
  ASSERT_TRUE(history->Write({{"u", "a", Usage(2000, 9)}}, {}, kNoon + 3 * kDay));
  const auto all = history->Report("2026-11-01", "2026-12-01");
  ASSERT_TRUE(all);
  struct {
    const char* day;
    const char* name;
    uint64_t received, kernels, turns;
  } const expected[] = {{"2026-11-20", "a", 1500, 3, 150},
                        {"2026-11-21", "a", 200, 6, 20},
                        {"2026-11-21", "b", 40, 0, 4},
                        {"2026-11-23", "a", 300, 0, 30}};
  ASSERT_EQ(std::size(expected), all->size());
  for (size_t i = 0; i < all->size(); ++i) {
    EXPECT_EQ(expected[i].day, (*all)[i].day);
    EXPECT_EQ(expected[i].name, (*all)[i].vf.name);
    EXPECT_EQ(expected[i].received, (*all)[i].vf.usage.account.received_ns);
    EXPECT_EQ(expected[i].kernels, (*all)[i].vf.usage.work.kernels);
    EXPECT_EQ(expected[i].turns, (*all)[i].vf.usage.account.slices);
  }
  EXPECT_EQ(2u, history->Report("2026-11-21", "2026-11-21")->size());
  EXPECT_TRUE(history->Report("2026-11-22", "2026-11-22")->empty());
}

TEST_F(HistoryTest, WhatWasWrittenSurvivesADeathWithoutAGoodbye) {
  const auto history = MustOpen();
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1000)}}, {}, kNoon));
  // What a killed process leaves: the file and its log as they are on the disk now.
  const std::string left = directory_ + "/left.db";
  fs::copy_file(Path(), left);
  fs::copy_file(Path() + "-wal", left + "-wal");
  const auto again = History::Open(left);
  ASSERT_TRUE(again) << again.error().context;
  EXPECT_EQ(1000u, (*(*again)->Find("a"))->usage.account.received_ns);
}

TEST_F(HistoryTest, TheFileBelongsToOneDaemon) {
  const auto history = MustOpen();
  EXPECT_NE(std::string::npos, OpenError().find("another vgpud or program has it open")) << OpenError();
}

struct BadFile {
  const char* name;
  std::string content;
  const char* says;
};
class BadFileTest : public HistoryTest, public testing::WithParamInterface<BadFile> {};
TEST_P(BadFileTest, IsNotTouchedAndTheErrorSaysWhatToDo) {
  std::ofstream(Path()) << GetParam().content;
  EXPECT_NE(std::string::npos, OpenError().find(GetParam().says)) << OpenError();
  EXPECT_NE(std::string::npos, OpenError().find("move it away")) << OpenError();
  EXPECT_EQ(GetParam().content.size(), fs::file_size(Path()));
}
INSTANTIATE_TEST_SUITE_P(, BadFileTest,
                         testing::ValuesIn(std::vector<BadFile>{
                             {"text", std::string(10'000, 'x'), "not a database"},
                             {"short", "SQLite format 3 and no more", "not a database"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_F(HistoryTest, DamageInTheMiddleIsFound) {
  {
    const auto history = MustOpen();
    std::vector<History::Vf> many;
    for (int i = 0; i < 300; ++i) many.push_back({std::to_string(i), "vf", Usage(1000)});
    ASSERT_TRUE(history->Write(many, {}, kNoon));
  }
  std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
  for (int page = 2; page < 9; ++page) {
    file.seekp(page * 4096);
    file << std::string(4096, '\xa5');
  }
  file.close();
  EXPECT_NE(std::string::npos, OpenError().find("damaged")) << OpenError();
}

TEST_F(HistoryTest, OthersFilesAndLaterVersionsAreLeftAlone) {
  MustOpen();
  {
    std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60);  // user_version, big endian
    file.write("\0\0\0\x09", 4);
  }
  EXPECT_NE(std::string::npos, OpenError().find("version 9, this vgpud knows version 5")) << OpenError();
  {
    std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(68);  // application_id
    file.write("abcd", 4);
  }
  EXPECT_NE(std::string::npos, OpenError().find("database of another program")) << OpenError();
}

// What an earlier version lacked.
void MakeOlder(const std::string& path, int version, const std::vector<const char*>& columns) {
  sqlite3* database = nullptr;
  ASSERT_EQ(SQLITE_OK, ::sqlite3_open(path.c_str(), &database));
  std::string sql = fmt::format("PRAGMA user_version = {};", version);
  for (const char* column : columns)
    for (const char* table : {"vf", "day"}) sql += fmt::format("ALTER TABLE {} DROP COLUMN {};", table, column);
  sql += "ALTER TABLE vf DROP COLUMN tenant; ALTER TABLE day DROP COLUMN vfs;";
  if (version < 4) sql += "ALTER TABLE vf DROP COLUMN domain; ALTER TABLE vf DROP COLUMN domain_uuid;";
  EXPECT_EQ(SQLITE_OK, ::sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr)) << ::sqlite3_errmsg(database);
  ::sqlite3_close(database);
}

TEST_F(HistoryTest, FilesOfEarlierVersionsAreTakenOver) {
  std::vector<const char*> lacks;
  for (const int version : {4, 3, 2, 1}) {
    const std::string name = std::to_string(version);
    ASSERT_TRUE(MustOpen()->Write({{name, name, Usage(1000)}}, {}, kNoon));
    if (version == 2)
      lacks = {"active_ns",           "active_gpu_ns",     "active_thinking_ns", "active_others_ns",
               "active_switching_ns", "active_stalled_ns", "active_held_ns"};
    if (version == 1) lacks.push_back("unclaimed_ns");
    MakeOlder(Path(), version, lacks);
    const auto history = MustOpen();
    VfStats more = Usage(1500);
    more.account.unclaimed_ns = 70;
    more.account.active_held_ns = 80;
    EXPECT_EQ(1000u, (*history->Find(name))->usage.account.received_ns);
    ASSERT_TRUE(history->Write({{name, name, more, false, {"guest", "u-u"}, "team-a"}}, {}, kNoon));
    EXPECT_EQ("guest", (*history->Find(name))->domain.name);
    EXPECT_EQ(70u, (*history->Find(name))->usage.account.unclaimed_ns);
    EXPECT_EQ(80u, (*history->Find(name))->usage.account.active_held_ns);
    const auto report = history->Report("2026-11-20", "2026-11-20");
    EXPECT_EQ(80u, report->at(0).vf.usage.account.active_held_ns);
    EXPECT_EQ("u-u", report->at(0).vf.domain.uuid);
    EXPECT_EQ("team-a", report->at(0).vf.tenant);
    EXPECT_EQ(1u, report->at(0).vfs);
  }
}

TEST_F(HistoryTest, AFullDiskLosesNothingThatIsStillKnown) {
  const auto history = MustOpen(16);
  ASSERT_TRUE(
      history->Write({{"u", "a", Usage(1000)}}, {.run_ns = 1000, .switch_ns = 0, .idle_ns = 0, .switches = {}}, kNoon));
  std::vector<History::Vf> many = {{"u", "a", Usage(1500)}};
  for (int i = 0; i < 500; ++i) many.push_back({std::to_string(i), std::to_string(i), Usage(1000)});
  const auto full = history->Write(many, {.run_ns = 9000, .switch_ns = 0, .idle_ns = 0, .switches = {}}, kNoon);
  ASSERT_FALSE(full);
  EXPECT_EQ(std::errc::no_space_on_device, full.error().code) << full.error().context;
  EXPECT_EQ(1000u, history->ReadGpu()->run_ns);  // nothing of it
  ASSERT_TRUE(history->Write({{"u", "a", Usage(1700)}}, {}, kNoon));
  const auto report = history->Report("2026-11-20", "2026-11-20");
  ASSERT_EQ(1u, report->size());
  EXPECT_EQ(1700u, report->at(0).vf.usage.account.received_ns);
}

TEST_F(HistoryTest, ADirectoryThatIsNotThereIsSaid) {
  const auto history = History::Open(directory_ + "/nowhere/usage.db");
  ASSERT_FALSE(history);
  EXPECT_NE(std::string::npos, history.error().context.find("check that the directory is there"))
      << history.error().context;
}

}  // namespace
}  // namespace vgpud::daemon
