// SPDX-License-Identifier: Apache-2.0
// Stop words that change in the middle of running kernels, 10^5 times and more: the results are the same.
#include <random>
#include <thread>

#include "tests/unit/soft/state/soft_works.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kCutsInAll = 100'000;

class SoftCuts : public testing::TestWithParam<const WorkRow*> {};

// The word changes while an instruction chosen at random is in flight; that one is the last.
TEST_P(SoftCuts, ResultsAreThoseOfAnUndisturbedRun) {
  const WorkRow& row = *GetParam();
  uint64_t whole = 0;
  const uint64_t answer = Undisturbed(row, BestIsa(), &whole);
  const uint64_t wanted = kCutsInAll / Works().size() + 1;
  std::mt19937 random(3);
  uint64_t cuts = 0;
  for (const Isa isa : AvailableIsas()) {
    for (uint64_t before = cuts; cuts - before < wanted / AvailableIsas().size() + 1;) {
      SoftMachine m(isa);
      const Work work = row.make(m);
      std::atomic<uint32_t> word{0};
      InstructionTrip trip{&word, {UINT64_MAX}};
      m.gpu.SetTrip(&trip);
      for (uint32_t expected = 0;; ++expected) {
        const uint64_t left = 1 + random() % 12;
        trip.left.store(left);
        const uint64_t ran_before = work.grid->warp_instructions();
        const auto ran = work.grid->Run({&word, expected}, UINT64_MAX);
        ASSERT_TRUE(ran) << ran.error().text;
        if (*ran == GpuGrid::Progress::kDone) break;
        ASSERT_EQ(*ran, GpuGrid::Progress::kStopped);
        ASSERT_EQ(work.grid->warp_instructions() - ran_before, left) << "something ran after the request";
        ++cuts;
      }
      EXPECT_EQ(work.grid->warp_instructions(), whole);
      EXPECT_EQ(Answer(m, work), answer) << NameOf(isa);
    }
  }
  EXPECT_GE(cuts, wanted);
}

// Another thread changes the word whenever it likes.
TEST_P(SoftCuts, AnotherThreadMayChangeTheWordAtAnyTime) {
  const WorkRow& row = *GetParam();
  const uint64_t answer = Undisturbed(row, BestIsa());
  SoftMachine m;
  const Work work = row.make(m);
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> runs{0};
  std::atomic<bool> over{false};
  std::thread revoker([&] {
    std::mt19937 random(9);
    for (uint32_t seen = 0; !over.load(std::memory_order_relaxed);) {
      const uint32_t now = runs.load(std::memory_order_relaxed);
      if (now == seen) continue;
      seen = now;
      for (volatile uint32_t wait = random() % 3000; wait != 0;) wait = wait - 1;
      word.fetch_add(1, std::memory_order_relaxed);
    }
  });
  for (;;) {
    const uint32_t expected = word.load();
    runs.fetch_add(1, std::memory_order_relaxed);
    const auto ran = work.grid->Run({&word, expected}, 500);
    if (!ran || *ran == GpuGrid::Progress::kDone) {
      EXPECT_TRUE(ran) << ran.error().text;
      break;
    }
  }
  over = true;
  revoker.join();
  EXPECT_EQ(Answer(m, work), answer);
}

INSTANTIATE_TEST_SUITE_P(, SoftCuts, testing::ValuesIn([] {
                           std::vector<const WorkRow*> rows;
                           for (const WorkRow& row : Works()) rows.push_back(&row);
                           return rows;
                         }()),
                         [](const auto& p) { return std::string(p.param->name); });

}  // namespace
}  // namespace vgpud::soft
