// SPDX-License-Identifier: Apache-2.0
#include "sched/wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

TEST(ReadySetTest, FindsWhatASetOfNumbersFinds) {
  ReadySet ready;
  std::set<uint32_t> model;
  uint32_t x = 1;
  for (int step = 0; step < 20'000; ++step) {
    x = x * 1'664'525u + 1'013'904'223u;
    const uint32_t id = (x >> 8) % 300;
    const bool in = (x >> 30) == 0;
    EXPECT_EQ(in != model.contains(id), ready.Set(id, in));
    if (in)
      model.insert(id);
    else
      model.erase(id);
    const uint32_t from = (x >> 16) % 400;
    const auto it = model.lower_bound(from);
    EXPECT_EQ(it == model.end() ? ReadySet::kNone : *it, ready.From(from));
    EXPECT_EQ(model.size(), ready.count());
    EXPECT_EQ(model.contains(from), ready.Has(from));
  }
}

TEST(ReadySetTest, GrowsWithItsNumbers) {
  ReadySet ready;
  for (const uint32_t id : {0, 63, 64, 127, 128, 640}) {
    EXPECT_EQ(ReadySet::kNone, ready.From(id));
    EXPECT_TRUE(ready.Set(id, true));
    EXPECT_TRUE(ready.Has(id));
    EXPECT_EQ(id, ready.From(id));
    EXPECT_FALSE(ready.Has(id + 1));
  }
  EXPECT_EQ(6u, ready.count());
}

TEST(ReadySetTest, AnEmptyOneHasNobody) {
  const ReadySet ready;
  EXPECT_FALSE(ready.Has(0));
  EXPECT_EQ(ReadySet::kNone, ready.From(0));
  EXPECT_EQ(0u, ready.count());
}

struct AveragingCase {
  uint32_t factor;
  std::vector<Ns> slices;  // of the turns after one that overran by 1 ms
};
class AveragingTest : public testing::TestWithParam<AveragingCase> {};

// NVIDIA's rule: the next slice is shorter by accrued / factor, and as much leaves the accrued total.
TEST_P(AveragingTest, ATurnRepaysItsPartOfTheDebt) {
  Wheel wheel;
  wheel.Set(0, 100, 0ns, true);
  wheel.Owe(0, 1ms);
  Ns debt = 1ms;
  for (const Ns expected : GetParam().slices) {
    const auto turn = wheel.Next({2ms, GetParam().factor});
    EXPECT_EQ(expected, turn.slice);
    debt -= 2ms - turn.slice;
    EXPECT_EQ(debt, wheel.Debt(0));
  }
}
INSTANTIATE_TEST_SUITE_P(, AveragingTest,
                         testing::ValuesIn(std::vector<AveragingCase>{
                             {1, {1ms, 2ms, 2ms}},
                             {2, {1500us, 1750us, 1875us}},
                             {3, {1666666ns, 1777778ns, 1851852ns}},  // rounded up
                             {4, {1750us, 1812500ns, 1859375ns}},
                         }));

TEST(WheelTest, AverageRepaymentOfAWholeSliceCostsATurn) {
  Wheel wheel;
  wheel.Set(0, 100, 0ns, true);
  wheel.Set(1, 100, 0ns, true);
  wheel.Owe(0, 9ms);
  const Wheel::Pace pace{2ms, 4};
  EXPECT_EQ(1u, wheel.Next(pace).id);  // 9 / 4 > 2: passed over, owes 7
  const auto turn = wheel.Next(pace);
  EXPECT_EQ(0u, turn.id);
  EXPECT_EQ(250us, turn.slice);
  EXPECT_EQ(5250us, wheel.Debt(0));
}

TEST(WheelTest, DebtOfYearsIsRepaidInOneStepWhenAllOwe) {
  for (const uint32_t factor : {1u, 7u, 60u}) {
    Wheel wheel;
    for (uint32_t id = 0; id < 3; ++id) {
      wheel.Set(id, 100, 0ns, true);
      wheel.Owe(id, 24h * 365 * 10 + id * 1ms);
    }
    const auto turn = wheel.Next({100us, factor});
    EXPECT_EQ(0u, turn.id);
    EXPECT_GT(turn.slice, 0ns);
    EXPECT_LE(turn.slice, 100us);
    EXPECT_GT(wheel.round(), 1'000'000u);
  }
}

// The rule of sched/wheel.h, one pass at a time.
struct SlowWheel {
  struct Entry {
    Ns debt{0};
    Ns full{0};
    bool ready = false;
  };
  std::vector<Entry> entries;
  size_t at = 0;
  uint64_t round = 0;
  Wheel::Turn Next(int64_t factor) {
    for (;; ++at) {
      if (std::none_of(entries.begin() + static_cast<ptrdiff_t>(at), entries.end(), [](auto& e) { return e.ready; })) {
        at = 0;
        ++round;
      }
      Entry& entry = entries[at];
      if (!entry.ready) continue;
      Ns repaid = entry.debt / factor;
      if (entry.debt % factor != Ns{0}) repaid += 1ns;
      entry.debt -= std::min(repaid, entry.full);
      if (repaid < entry.full) return {static_cast<uint32_t>(at++), entry.full - repaid};
    }
  }
};

TEST(WheelTest, TurnsDebtsAndRoundsAreThoseOfPassingOverOneByOne) {
  uint32_t x = 7;
  const auto any = [&](uint32_t below) {
    x = x * 1'664'525u + 1'013'904'223u;
    return (x >> 8) % below;
  };
  for (int sample = 0; sample < 200; ++sample) {
    Wheel wheel;
    SlowWheel slow;
    slow.entries.resize(1 + any(5));
    const uint32_t factor = 1 + any(4);
    for (int step = 0; step < 40; ++step) {
      const uint32_t id = any(static_cast<uint32_t>(slow.entries.size()));
      auto& entry = slow.entries[id];
      entry.ready = any(4) != 0;
      entry.full = Ns{1 + any(12)};
      if (any(2) == 0)
        wheel.Set(id, 1, entry.full, entry.ready);
      else
        wheel.Set(id, static_cast<uint32_t>(entry.full.count()), 0ns, entry.ready);
      const Ns debt{any(3) == 0 ? any(200) : any(12)};
      wheel.Owe(id, debt);
      entry.debt += debt;
      if (any(10) == 0) {
        wheel.Clear(id);
        entry.debt = 0ns;
      }
      if (!wheel.AnyReady()) continue;
      const auto expected = slow.Next(factor);
      const auto turn = wheel.Next({100ns, factor});
      ASSERT_EQ(expected.id, turn.id);
      ASSERT_EQ(expected.slice, turn.slice);
      ASSERT_EQ(slow.round, wheel.round());
      for (uint32_t i = 0; i < slow.entries.size(); ++i) ASSERT_EQ(slow.entries[i].debt, wheel.Debt(i));
    }
  }
}

TEST(WheelTest, ASliceIsFixedOrByWeightAndNeverNothing) {
  EXPECT_EQ(1ns, Wheel::Slice(300, 1ns, 2ms));
  EXPECT_EQ(6ms, Wheel::Slice(300, 0ns, 2ms));
  EXPECT_EQ(1ns, Wheel::Slice(1, 0ns, 99ns));
  EXPECT_EQ(1ns, Wheel::Slice(1, 0ns, 199ns));
  EXPECT_EQ(2ns, Wheel::Slice(1, 0ns, 200ns));
}

TEST(WheelTest, DebtsAreRepaidAtOnceUnlessAFactorIsGiven) {
  Wheel wheel;
  EXPECT_FALSE(wheel.AnyReady());
  EXPECT_EQ(0ns, wheel.Debt(0));
  wheel.Set(0, 100, 0ns, true);
  EXPECT_TRUE(wheel.IsReady(0));
  wheel.Owe(0, 1ms);
  EXPECT_EQ(1ms, wheel.Next({2ms}).slice);
  EXPECT_EQ(0ns, wheel.Debt(0));
}

}  // namespace
}  // namespace vgpud
