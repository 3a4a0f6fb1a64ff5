// SPDX-License-Identifier: Apache-2.0
#include "sched/wheel.h"

#include <gtest/gtest.h>

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
  }
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

}  // namespace
}  // namespace vgpud
