// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/last_second.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint kStart{1h};
constexpr uint64_t kMs = 1'000'000;

FairnessWindow::Sample Had(uint64_t key, uint64_t received_ms, uint64_t kept_ms = 0) {
  FairnessWindow::Sample sample{.key = key, .account = {}};
  sample.account.received_ns = received_ms * kMs;
  sample.account.anticipated_ns = kept_ms * kMs;
  return sample;
}

// Looks every 100 ms, at which VF 1 had the GPU all the time.
void Busy(LastSecond& seconds, TimePoint from, int looks, uint64_t received_ms) {
  for (int i = 0; i < looks; ++i) {
    const uint64_t passed = static_cast<uint64_t>(i) * 100;
    seconds.Look(from + 100ms * i, {.run_ns = passed * kMs, .switch_ns = 0, .idle_ns = 0, .stall_ns = 0},
                 std::vector{Had(1, received_ms + passed)});
  }
}

TEST(LastSecond, SaysNothingBeforeTheSecondLook) {
  LastSecond seconds;
  EXPECT_EQ(0u, seconds.OfGpu().window_ns);
  EXPECT_EQ(0.0, seconds.Of(1).utilization());
  seconds.Look(kStart, {}, std::vector{Had(1, 500)});
  EXPECT_EQ(0u, seconds.Of(1).window_ns);
  EXPECT_EQ(0.0, seconds.Of(1).utilization()) << "what was before is no part of it";
}

TEST(LastSecond, ForgetsWhatWasBefore) {
  LastSecond seconds;
  Busy(seconds, kStart, 100, 0);  // ten seconds
  EXPECT_EQ(1'000 * kMs, seconds.Of(1).window_ns);
  EXPECT_EQ(1'000 * kMs, seconds.Of(1).account.received_ns);
  EXPECT_EQ(1'000 * kMs, seconds.OfGpu().use.run_ns);
  EXPECT_EQ(1.0, seconds.Of(1).utilization());
  // Half of the next second.
  for (int i = 0; i < 5; ++i)
    seconds.Look(kStart + 10s + 100ms * i, {.run_ns = 9'900 * kMs, .switch_ns = 0, .idle_ns = 0, .stall_ns = 0},
                 std::vector{Had(1, 9'900)});
  EXPECT_DOUBLE_EQ(0.5, seconds.Of(1).utilization());
}

TEST(LastSecond, TheLongestOverrunSoFarIsNoPartOfASecond) {
  LastSecond seconds;
  for (const uint64_t worst : {3u, 5u}) {
    FairnessWindow::Sample sample = Had(1, worst);
    sample.account.worst_overrun_ns = worst;
    seconds.Look(kStart + 100ms * worst, {}, std::vector{sample});
  }
  EXPECT_EQ(0u, seconds.Of(1).account.worst_overrun_ns);
  EXPECT_EQ(2 * kMs, seconds.Of(1).account.received_ns);
}

TEST(LastSecond, FindsEachVfInWhateverOrderTheyCome) {
  LastSecond seconds;
  const auto look = [&seconds](TimePoint at, std::vector<FairnessWindow::Sample> vfs) { seconds.Look(at, {}, vfs); };
  look(kStart, {Had(9, 0), Had(2, 0), Had(5, 0)});
  look(kStart + 100ms, {Had(5, 50), Had(9, 90), Had(2, 20)});
  for (const uint64_t key : {2u, 5u, 9u}) EXPECT_EQ(key * 10 * kMs, seconds.Of(key).account.received_ns) << key;
  for (const uint64_t nobody : {1u, 3u, 7u, 10u}) EXPECT_EQ(0u, seconds.Of(nobody).window_ns) << nobody;
}

TEST(LastSecond, AYoungVfIsJudgedByItsLife) {
  LastSecond seconds;
  for (int i = 0; i < 11; ++i) {
    std::vector<FairnessWindow::Sample> vfs{Had(1, 0)};
    if (i >= 8) vfs.push_back(Had(2, static_cast<uint64_t>(i - 8) * 50));
    seconds.Look(kStart + 100ms * i, {}, vfs);
  }
  EXPECT_EQ(200 * kMs, seconds.Of(2).window_ns);
  EXPECT_DOUBLE_EQ(0.5, seconds.Of(2).utilization());
  EXPECT_EQ(1'000 * kMs, seconds.Of(1).window_ns);
  EXPECT_EQ(0u, seconds.Of(3).window_ns) << "there is no such VF";
}

TEST(LastSecond, ATurnThatIsKeptWithoutWorkIsNoUse) {
  LastSecond seconds;
  seconds.Look(kStart, {}, std::vector{Had(1, 0)});
  seconds.Look(kStart + 1s, {}, std::vector{Had(1, 800, 300)});
  EXPECT_DOUBLE_EQ(0.5, seconds.Of(1).utilization());
}

TEST(LastSecond, BeginsAnewAfterATimeWithoutLooks) {
  LastSecond seconds;
  Busy(seconds, kStart, 20, 0);
  seconds.Look(kStart + 1h, {.run_ns = 5'000 * kMs, .switch_ns = 0, .idle_ns = 0, .stall_ns = 0},
               std::vector{Had(1, 5'000)});
  EXPECT_EQ(0u, seconds.Of(1).window_ns);
  EXPECT_EQ(0u, seconds.OfGpu().window_ns);
}

TEST(LastSecond, ACounterThatBeginsAnewCountsNothing) {
  LastSecond seconds;
  seconds.Look(kStart, {}, std::vector{Had(1, 900)});
  seconds.Look(kStart + 1s, {}, std::vector{Had(1, 100)});
  EXPECT_EQ(0.0, seconds.Of(1).utilization());
}

}  // namespace
}  // namespace vgpud::daemon
