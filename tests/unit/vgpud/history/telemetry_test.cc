// SPDX-License-Identifier: Apache-2.0
// What goes from one daemon's life to the next, and which day it counts for.
#include "vgpud/history/telemetry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sched/registry.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int64_t kMidnight = 1'795'219'200;  // 2026-11-21 00:00:00 UTC
constexpr VfId kA{0}, kB{1};

class TelemetryTest : public testing::Test {
 protected:
  TelemetryTest() {
    GpuThread::Options options;
    options.waiter.fifo_priority = 0;
    gpu_ = std::make_unique<GpuThread>(
        options, *MakePolicy("strict", {}),
        GpuThread::Events{[](VfId, const std::string&, const SliceWorld::Hang&) {}, [](VfId) {}}, replies_);
    watch_ = loop_.OnReadable(event_.get(), [this] {
      DrainEventFd(event_.get());
      replies_.RunAll();
    });
    Restart();
  }
  ~TelemetryTest() override {
    telemetry_.reset();
    gpu_.reset();
  }
  void Restart() {
    if (telemetry_ != nullptr) {
      telemetry_->Finish([this] { loop_.Stop(); });
      loop_.Run();
      telemetry_->Leave(1h);
    }
    telemetry_.reset();
    telemetry_ = std::make_unique<Telemetry>(loop_, *gpu_, replies_,
                                             Telemetry::Options{.state_dir = directory_ + "/state",
                                                                .write_every = 5s,
                                                                .write_spacing = spacing_,
                                                                .unix_seconds = [this] { return now_; }});
  }
  static VfStats Used(uint64_t received) {
    VfStats stats;
    stats.account.received_ns = received;
    return stats;
  }
  std::string Join(VfId vf, const std::string& name) {
    const Uuid uuid = telemetry_->UuidFor(name);
    telemetry_->Joined(vf, name, uuid);
    return ToText(uuid);
  }
  uint64_t Past(VfId vf) {
    GpuStats stats;
    stats.vfs.resize(1);
    telemetry_->AddPast({vf}, &stats);
    return stats.vfs[0].account.received_ns;
  }
  std::vector<History::Day> Report(const std::string& day) {
    std::vector<History::Day> days;
    telemetry_->Refresh([&] {
      telemetry_->Read(
          {day, day},
          [&](std::vector<History::Day> rows) {
            days = std::move(rows);
            return std::string();
          },
          [&](const Result<HistoryKeeper::Page>& page) {
            EXPECT_TRUE(page);
            loop_.Stop();
          });
    });
    loop_.Run();
    return days;
  }

  EventLoop loop_;
  UniqueFd event_ = *MakeEventFd();
  TaskQueue replies_{event_.get()};
  EventLoop::WatchPtr watch_;
  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  int64_t now_ = kMidnight - 3'600;
  Ns spacing_{0};
  std::unique_ptr<GpuThread> gpu_;
  std::unique_ptr<Telemetry> telemetry_;
};

TEST_F(TelemetryTest, AVfThatComesBackCountsOn) {
  const std::string uuid = Join(kA, "a");
  EXPECT_EQ(0u, Past(kA));
  telemetry_->Left(kA, Used(1000));
  EXPECT_EQ(1000u, Past(kA));
  telemetry_->Removed(kA, false);
  EXPECT_EQ(0u, Past(kA)) << "nobody has that number now";
  EXPECT_EQ(uuid, Join(kA, "a"));
  EXPECT_EQ(1000u, Past(kA));
  telemetry_->Left(kA, Used(500));
  telemetry_->Removed(kA, false);
  Restart();
  EXPECT_EQ(uuid, Join(kB, "a"));
  EXPECT_EQ(1500u, Past(kB));
  EXPECT_NE(uuid, Join(kA, "b"));
  EXPECT_EQ(0u, Past(kA));
  const auto days = Report("2026-11-20");
  ASSERT_EQ(2u, days.size());
  for (const History::Day& row : days)
    EXPECT_EQ(row.vf.name == "a" ? 1500u : 0u, row.vf.usage.account.received_ns) << row.vf.name;
}

TEST_F(TelemetryTest, WhatWasUsedIsOfTheDomainThatHadTheVfLast) {
  (void)Join(kA, "a");
  telemetry_->SetDomain(kA, {"guest-a", "u-a"});
  telemetry_->SetDomain(kA, {"guest-b", "u-b"});
  telemetry_->SetDomain(kA, {});
  telemetry_->SetDomain(kB, {"guest-c", "u-c"});  // there is none
  telemetry_->Left(kA, Used(1000));
  telemetry_->Removed(kA, false);
  for (int lives = 0; lives < 2; ++lives) {
    const auto days = Report("2026-11-20");
    ASSERT_EQ(1u, days.size());
    EXPECT_EQ("guest-b", days[0].vf.domain.name);
    EXPECT_EQ("u-b", days[0].vf.domain.uuid);
    Restart();
    (void)Join(kA, "a");
  }
  std::string trace;
  const auto dump = telemetry_->DumpTrace("soft0", 1h);
  while (dump->Next(&trace)) {
  }
  EXPECT_NE(std::string::npos, trace.find("VF 0 a, domain guest-b u-b\"")) << trace;
}

TEST_F(TelemetryTest, AfterItWasDestroyedANameBeginsAnew) {
  const std::string uuid = Join(kA, "a");
  telemetry_->Left(kA, Used(1000));
  telemetry_->Removed(kA, true);
  EXPECT_NE(uuid, Join(kA, "a"));
  EXPECT_EQ(0u, Past(kA));
  Restart();
  EXPECT_NE(uuid, ToText(telemetry_->UuidFor("a")));
  const auto days = Report("2026-11-20");
  ASSERT_EQ(2u, days.size());
  EXPECT_EQ(1000u, days[0].vf.usage.account.received_ns + days[1].vf.usage.account.received_ns);
}

TEST_F(TelemetryTest, TheFirstWriteAfterMidnightIsAboutTheDayBefore) {
  const struct {
    int64_t after;
    const char* day;
  } kTimes[] = {{-1, "2026-11-20"}, {0, "2026-11-20"}, {6, "2026-11-20"}, {7, "2026-11-21"}};
  for (const auto& [after, day] : kTimes) {
    now_ = kMidnight - 1;
    Restart();
    fs::remove_all(directory_ + "/state");
    Restart();
    Join(kA, "a");
    telemetry_->Left(kA, Used(7));
    now_ = kMidnight + after;
    EXPECT_EQ(1u, Report(day).size()) << after;
    EXPECT_EQ(0u, Report(std::string(day) == "2026-11-20" ? "2026-11-21" : "2026-11-20").size()) << after;
    telemetry_->Removed(kA, true);
  }
}

TEST_F(TelemetryTest, WritesThatSomebodyAsksForAreNotCloserThanTheirSpacing) {
  spacing_ = 300ms;
  Restart();
  Join(kA, "a");
  const TimePoint start = Now();
  (void)Report("2026-11-20");
  telemetry_->Left(kA, Used(7));
  EXPECT_EQ(7u, Report("2026-11-20").at(0).vf.usage.account.received_ns) << "up to now all the same";
  EXPECT_GE(Now() - start, spacing_);
}

TEST_F(TelemetryTest, AVfThatNeverRanIsGoneWithoutATrace) {
  Join(kA, "a");
  EXPECT_EQ(1u, Report("2026-11-20").size());
  telemetry_->Removed(kA, true);
  EXPECT_TRUE(Report("2026-11-20").empty());
}

TEST_F(TelemetryTest, EachLifeHasAKeyOfItsOwn) {
  EXPECT_EQ(0u, telemetry_->KeyOf(kA));
  Join(kA, "a");
  Join(kB, "b");
  EXPECT_EQ(1u, telemetry_->KeyOf(kA));
  EXPECT_EQ(2u, telemetry_->KeyOf(kB));
  telemetry_->Removed(kA, false);
  EXPECT_EQ(0u, telemetry_->KeyOf(kA));
  Join(kA, "a");
  EXPECT_EQ(3u, telemetry_->KeyOf(kA));
}

TEST_F(TelemetryTest, OfAVfThatThereIsNotNothingIsKept) {
  telemetry_->Left(kA, Used(7));
  telemetry_->Removed(kA, true);
  EXPECT_TRUE(Report("2026-11-20").empty());
}

TEST_F(TelemetryTest, FairnessIsOfASecondAndOfAMinute) {
  const auto windows = telemetry_->Fairness();
  ASSERT_EQ(2u, windows.size());
  EXPECT_STREQ("1s", windows[0].name);
  EXPECT_STREQ("60s", windows[1].name);
  for (const auto& window : windows) {
    EXPECT_FALSE(window.figures.jain);
    EXPECT_EQ(0ns, window.figures.length);
  }
}

TEST_F(TelemetryTest, TheUsualTimes) {
  const Telemetry::Options options;
  EXPECT_EQ(5s, options.write_every);
  EXPECT_EQ(1s, options.write_spacing);
  EXPECT_EQ(10s, options.open_limit);
  EXPECT_EQ(3s, options.finish_limit);
}

}  // namespace
}  // namespace vgpud::daemon
