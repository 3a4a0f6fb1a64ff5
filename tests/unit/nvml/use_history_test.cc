// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libnvidia-ml/use_history.h"

#include <gtest/gtest.h>

namespace vgpud::nvml {
namespace {

constexpr uint64_t kMs = 1'000;  // in us

struct Channel {
  uint64_t id;
  unsigned pid;
  uint64_t gpu_ms;
};

struct Seen {
  UseHistory history;
  // The host's clock has another beginning than the system's.
  void Look(uint64_t ms, std::vector<Channel> channels) {
    vgpu_status status{};
    status.now_ns = 77 + ms * 1'000'000;
    size_t at = 0;
    for (const Channel& c : channels)
      status.channel[at++] = {
          .id = c.id, .pid = c.pid, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 0, .gpu_ns = c.gpu_ms * 1'000'000};
    history.Add(status, (5'000 + ms) * kMs);
  }
  std::string Since(uint64_t ms) {
    std::string text;
    for (const auto& use : history.Since((5'000 + ms) * kMs))
      text += std::to_string(use.pid) + ":" + std::to_string(use.percent) + " ";
    return text;
  }
};

TEST(UseHistory, TwoLooksSayHowBusyAProcessWasBetweenThem) {
  Seen seen;
  EXPECT_EQ("", seen.Since(0));
  EXPECT_EQ(0u, seen.history.last_us());
  seen.Look(0, {{1, 10, 400}, {2, 20, 0}});
  EXPECT_EQ("", seen.Since(0)) << "one look says nothing";
  seen.Look(200, {{1, 10, 450}, {2, 20, 150}});
  EXPECT_EQ("10:25 20:75 ", seen.Since(0));
  EXPECT_EQ(5'200 * kMs, seen.history.last_us());
  EXPECT_EQ("", seen.Since(1)) << "nothing before the last look is as young as that";
  seen.Look(400, {{1, 10, 650}, {2, 20, 150}});
  EXPECT_EQ("10:100 20:0 ", seen.Since(200));
  EXPECT_EQ("10:63 20:38 ", seen.Since(0));
}

TEST(UseHistory, ProcessesThatCameOrWentAreNotGuessedAt) {
  Seen seen;
  seen.Look(0, {{1, 10, 0}, {2, 20, 0}});
  seen.Look(100, {{2, 20, 50}, {3, 30, 90}});
  EXPECT_EQ("20:50 ", seen.Since(0));
  seen.Look(200, {{4, 20, 0}, {3, 30, 140}});
  EXPECT_EQ("30:50 ", seen.Since(0))
      << "since it came; another channel of a process with the same number is another process";
  EXPECT_EQ("30:50 ", seen.Since(100));
}

TEST(UseHistory, WhoHasNoContextIsNoProcess) {
  UseHistory history;
  vgpu_status status{};
  status.now_ns = 1;
  status.channel[0] = {.id = 1, .pid = 10, .flags = 0, .vram_bytes = 0, .gpu_ns = 0};
  status.channel[1] = {.id = 2, .pid = 20, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 0, .gpu_ns = 0};
  history.Add(status, 1);
  status.now_ns += 100;
  history.Add(status, 100 * kMs);
  ASSERT_EQ(1u, history.Since(0).size());
  EXPECT_EQ(20u, history.Since(0)[0].pid);
}

TEST(UseHistory, AProcessWithSeveralChannelsIsAsBusyAsTheBusiest) {
  Seen seen;
  seen.Look(0, {{1, 10, 0}, {2, 10, 0}});
  seen.Look(100, {{1, 10, 30}, {2, 10, 80}});
  EXPECT_EQ("10:80 ", seen.Since(0));
}

TEST(UseHistory, WhatAnExecutorSaysIsNeverMoreThanAllNorLessThanNothing) {
  Seen seen;
  seen.Look(0, {{1, 10, 500}, {2, 20, 0}});
  seen.Look(100, {{1, 10, 400}, {2, 20, 5'000}});
  EXPECT_EQ("20:100 ", seen.Since(0));
}

TEST(UseHistory, ForgetsWhatIsOldAndWhatClocksThatGoBackMadeWorthless) {
  Seen seen;
  for (uint64_t ms = 0; ms <= 4'000; ms += 100) seen.Look(ms, {{1, 10, ms / 2}});
  EXPECT_EQ("10:50 ", seen.Since(0)) << "of the time that is remembered";
  seen.Look(3'000, {{1, 10, 0}});
  EXPECT_EQ("", seen.Since(0));
  seen.Look(3'100, {{1, 10, 10}});
  EXPECT_EQ("10:10 ", seen.Since(0));
}

TEST(UseHistory, LooksInQuickSuccessionDoNotShortenTheTimeJudged) {
  Seen seen;
  seen.Look(0, {{1, 10, 0}});
  seen.Look(100, {{1, 10, 50}});
  for (uint64_t ms = 101; ms < 104; ++ms) seen.Look(ms, {{1, 10, 50}});
  EXPECT_EQ("10:49 ", seen.Since(0));
  EXPECT_EQ("10:0 ", seen.Since(100));
}

}  // namespace
}  // namespace vgpud::nvml
