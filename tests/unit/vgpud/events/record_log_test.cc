// SPDX-License-Identifier: Apache-2.0
#include "vgpud/events/record_log.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "base/exec_link.h"
#include "vgpud/events/chronicle.h"

namespace vgpud::daemon {
namespace {

using Page = RecordLog::Page;

Record Of(const std::string& vf, std::string text = {}) {
  return {.kind = event_kind::kReset, .vf = vf, .text = std::move(text)};
}

struct Bed {
  explicit Bed(const RecordLog::Limits& limits = {.each = 1 << 20, .all = 1 << 20})
      : log(std::make_shared<RecordLog>(limits, *Dup(wake.get()))) {}
  const UniqueFd wake = *MakeEventFd();
  std::shared_ptr<RecordLog> log;
};

std::vector<uint64_t> Numbers(const Page& page) {
  std::vector<uint64_t> numbers;
  for (const Record& record : page.records) numbers.push_back(record.number);
  return numbers;
}

using Some = std::vector<uint64_t>;

TEST(RecordLogTest, RecordsOfAllVfsComeInTheirOrder) {
  Bed bed;
  for (const char* vf : {"b", "a", "", "b"}) bed.log->Add(Of(vf));
  EXPECT_EQ((Some{1, 2, 3, 4}), Numbers(bed.log->Read({})));
  EXPECT_EQ((Some{3, 4}), Numbers(bed.log->Read({.after = 2})));
  EXPECT_EQ((Some{1, 4}), Numbers(bed.log->Read({.vf = "b"})));
  EXPECT_EQ((Some{4}), Numbers(bed.log->Read({.after = 1, .vf = "b"})));
  EXPECT_EQ(4u, bed.log->Read({.vf = "a"}).next);
  EXPECT_EQ(Some{}, Numbers(bed.log->Read({.after = 99})));
  EXPECT_EQ(0u, bed.log->Read({.after = 99}).missed);
  EXPECT_NE(0u, bed.log->Read({}).records[0].unix_ms);
  EXPECT_EQ(2u, bed.log->LatestOf("b", 5).size());
  EXPECT_EQ(4u, bed.log->LatestOf("b", 1).front().number);
  EXPECT_TRUE(bed.log->LatestOf("c", 1).empty());
}

TEST(RecordLogTest, ATextStaysOneLine) {
  Bed bed;
  bed.log->Add(Of("a", "x\ny\x1b[2J" + std::string(5000, 'z')));
  const std::string text = bed.log->Read({}).records[0].text;
  EXPECT_TRUE(text.starts_with("x\\ny\\x1b[2Jzzz")) << text.substr(0, 40);
  EXPECT_LT(text.size(), 2200u);
}

TEST(RecordLogTest, OneVfPushesOutItsOwn) {
  Bed bed({.each = 2000, .all = 1 << 20});
  bed.log->Add(Of("quiet"));
  for (int i = 0; i < 1000; ++i) bed.log->Add(Of("loud", "text"));
  const Page all = bed.log->Read({});
  EXPECT_EQ(1u, all.records.front().number);
  EXPECT_EQ(1001u, all.records.back().number);
  EXPECT_LT(all.records.size(), 20u);
  EXPECT_EQ(1001 - all.records.size(), all.missed);
  EXPECT_EQ(0u, bed.log->Read({.vf = "quiet"}).missed);
  EXPECT_EQ(all.missed, bed.log->Read({.vf = "loud"}).missed);
  // Of what it has not seen, the last that was pushed out is the bound.
  const uint64_t oldest = all.records[1].number;
  EXPECT_EQ(0u, bed.log->Read({.after = oldest - 1, .vf = "loud"}).missed);
  EXPECT_EQ(1u, bed.log->Read({.after = oldest - 2, .vf = "loud"}).missed);
  EXPECT_EQ(2u, bed.log->Read({.after = oldest - 3}).missed);
}

TEST(RecordLogTest, WhereAllIsTakenTheVfThatHasMostLosesItsOldest) {
  Bed bed({.each = 1 << 20, .all = 20'000});
  for (int i = 0; i < 5; ++i) bed.log->Add(Of("modest"));
  for (int i = 0; i < 1000; ++i) bed.log->Add(Of("loud"));
  EXPECT_EQ((Some{1, 2, 3, 4, 5}), Numbers(bed.log->Read({.vf = "modest"})));
  // A crowd of others takes from the loudest until all have about the same.
  for (int i = 0; i < 2000; ++i) bed.log->Add(Of(fmt::format("vf-{}", i)));
  EXPECT_LE(bed.log->Read({}).records.size(), 20'000 / sizeof(Record));
  EXPECT_LE(bed.log->Read({.vf = "loud"}).records.size(), 1u);
}

TEST(RecordLogTest, AReaderGetsEachOnceAndLearnsWhatItMissed) {
  Bed bed({.each = 3000, .all = 1 << 20});
  bed.log->Add(Of("a"));
  RecordLog::Reader all(bed.log, {}), only_b(bed.log, {.after = 1, .vf = "b"});
  EXPECT_EQ((Some{1}), Numbers(all.Next(1 << 20)));
  EXPECT_EQ(Some{}, Numbers(all.Next(1 << 20)));
  for (int i = 0; i < 3; ++i) bed.log->Add(Of("a"));
  EXPECT_EQ((Some{2}), Numbers(all.Next(1)));
  EXPECT_EQ((Some{3, 4}), Numbers(all.Next(1 << 20)));
  uint64_t seen = 0, missed = 0;
  for (int i = 0; i < 100; ++i) bed.log->Add(Of("a"));
  const Page late = all.Next(1 << 20);
  seen += late.records.size();
  missed += late.missed;
  EXPECT_GT(missed, 50u);
  EXPECT_EQ(100u, seen + missed);
  EXPECT_EQ(0u, all.Next(1 << 20).missed);
  // The other VF's are none that it wants.
  EXPECT_EQ(0u, only_b.Next(1 << 20).missed);
  bed.log->Add(Of("b"));
  EXPECT_EQ((Some{105}), Numbers(only_b.Next(1 << 20)));
}

TEST(RecordLogTest, WhoeverAddsWakesTheReaders) {
  Bed bed;
  RecordLog::Reader reader(bed.log, {});
  int woken = 0;
  reader.OnAdded([&] { ++woken; });
  {
    RecordLog::Reader gone(bed.log, {});
    gone.OnAdded([] { FAIL() << "it is gone"; });
  }
  std::thread other([&] { bed.log->Add(Of("a")); });
  pollfd readable{bed.wake.get(), POLLIN, 0};
  EXPECT_EQ(1, ::poll(&readable, 1, 20'000));
  other.join();
  bed.log->WakeReaders();
  EXPECT_EQ(1, woken);
  EXPECT_EQ((Some{1}), Numbers(reader.Next(1 << 20)));
}

TEST(ChronicleTest, TheLineOfAFailedKernelIsAnEventToo) {
  const auto chronicle = *Chronicle::Make();
  chronicle->Heard("a", "soft0", 7, "vgpud-exec[a]: info: ready");
  chronicle->Heard("a", "soft0", 7,
                   fmt::format("vgpud-exec[a]: warning: {}error=700 kernel k, store of 4 bytes", kKernelFaultMark));
  EXPECT_EQ(2u, chronicle->lines()->Read({}).records.size());
  const Page events = chronicle->events()->Read({});
  ASSERT_EQ(1u, events.records.size());
  const Record& fault = events.records[0];
  EXPECT_STREQ("fault", fault.kind);
  EXPECT_EQ("a", fault.vf);
  EXPECT_EQ("soft0", fault.gpu);
  EXPECT_EQ(7, fault.pid);
  EXPECT_EQ("error=700 kernel k, store of 4 bytes", fault.text);
}

}  // namespace
}  // namespace vgpud::daemon
