// SPDX-License-Identifier: Apache-2.0
// The queues that `reserve` keeps its VFs in, against std::set.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "sched/alarms.h"
#include "sched/earliest.h"

namespace vgpud {
namespace {

int64_t Any(int64_t low, int64_t high) { return *rc::gen::inRange<int64_t>(low, high); }
TimePoint At(int64_t ns) { return TimePoint{Ns{ns}}; }

// What both queues do, done slowly.
class Model {
 public:
  void Set(uint32_t id, TimePoint at) {
    Remove(id);
    queue_.insert({at, id});
  }
  void Remove(uint32_t id) {
    std::erase_if(queue_, [&](const auto& entry) { return entry.second == id; });
  }
  bool Has(uint32_t id) const {
    return std::any_of(queue_.begin(), queue_.end(), [&](const auto& entry) { return entry.second == id; });
  }
  std::set<uint32_t> Ring(TimePoint now) {
    std::set<uint32_t> rung;
    while (!queue_.empty() && queue_.begin()->first <= now) {
      rung.insert(queue_.begin()->second);
      queue_.erase(queue_.begin());
    }
    return rung;
  }
  bool empty() const { return queue_.empty(); }
  std::pair<TimePoint, uint32_t> first() const { return *queue_.begin(); }

 private:
  std::set<std::pair<TimePoint, uint32_t>> queue_;
};

// A distance in time: any order of magnitude up to 2^60 ns.
int64_t AnyDistance() { return Any(0, int64_t{1} << Any(0, 61)); }

RC_GTEST_PROP(EarliestProperty, IsTheFirstOfASet, ()) {
  Earliest earliest;
  Model model;
  uint32_t count = 0;
  for (int64_t step = Any(1, 300); step > 0; --step) {
    if (count == 0 || Any(0, 20) == 0) earliest.Grow(count += static_cast<uint32_t>(Any(1, 40)));
    const auto id = static_cast<uint32_t>(Any(0, count));
    if (Any(0, 3) == 0) {
      earliest.Remove(id);
      model.Remove(id);
    } else {
      const TimePoint at = At(Any(0, 2) == 0 ? Any(-3, 4) : AnyDistance() - AnyDistance());
      earliest.Set(id, at);
      model.Set(id, at);
    }
    RC_ASSERT(earliest.Has(id) == model.Has(id));
    RC_ASSERT(earliest.empty() == model.empty());
    if (!model.empty()) RC_ASSERT(earliest.first() == model.first().second);
  }
}

RC_GTEST_PROP(AlarmsProperty, RingWhenASetSays, ()) {
  Alarms alarms;
  Model model;
  const auto count = static_cast<uint32_t>(Any(1, 100));
  alarms.Grow(count);
  TimePoint now = At(Any(0, 3) == 0 ? AnyDistance() : -AnyDistance());
  for (int64_t step = Any(1, 300); step > 0; --step) {
    const auto id = static_cast<uint32_t>(Any(0, count));
    switch (Any(0, 4)) {
      case 0:
        alarms.Remove(id);
        model.Remove(id);
        break;
      case 1: {
        now += Ns{AnyDistance() >> Any(0, 30)};
        if (now > At(int64_t{1} << 61)) now = At(int64_t{1} << 61);
        std::set<uint32_t> rung;
        alarms.Ring(now, [&](uint32_t vf) { RC_ASSERT(rung.insert(vf).second); });
        RC_ASSERT(rung == model.Ring(now));
        break;
      }
      default: {
        const TimePoint at = now + Ns{Any(0, 10) == 0 ? -Any(0, 100) : AnyDistance()};
        alarms.Set(id, at);
        model.Set(id, at);
        break;
      }
    }
    RC_ASSERT(alarms.Has(id) == model.Has(id));
    RC_ASSERT(alarms.empty() == model.empty());
    RC_ASSERT(alarms.Earliest() == (model.empty() ? TimePoint::max() : model.first().first));
  }
}

// What rings may be set again while others still ring.
RC_GTEST_PROP(AlarmsProperty, ManyThatRingAndAreSetAgainMissNoMoment, ()) {
  Alarms alarms;
  const auto count = static_cast<uint32_t>(Any(1, 70));
  alarms.Grow(count);
  std::vector<Ns> period;
  std::vector<TimePoint> next;
  for (uint32_t id = 0; id < count; ++id) {
    period.push_back(Ns{1 + AnyDistance() % 1'000'000'000});
    next.push_back(At(0) + period[id]);
    alarms.Set(id, next[id]);
  }
  TimePoint now = At(0);
  for (int step = 0; step < 100; ++step) {
    now += Ns{Any(1, 5'000'000)};
    alarms.Ring(now, [&](uint32_t id) {
      RC_ASSERT(next[id] <= now);
      next[id] = now + period[id];
      alarms.Set(id, next[id]);
      if (Any(0, 4) == 0 && next[id / 2] > now) alarms.Set(id / 2, next[id / 2]);
    });
    for (uint32_t id = 0; id < count; ++id) RC_ASSERT(next[id] > now);
  }
}

TEST(AlarmsTest, TheEndsOfTimeRing) {
  Alarms alarms;
  alarms.Grow(3);
  alarms.Set(0, TimePoint::max());
  alarms.Set(1, TimePoint::min());
  alarms.Set(2, At(0));
  EXPECT_EQ(alarms.Earliest(), TimePoint::min());
  std::vector<uint32_t> rung;
  const auto note = [&](uint32_t id) { rung.push_back(id); };
  alarms.Ring(TimePoint::min(), note);
  EXPECT_EQ(rung, (std::vector<uint32_t>{1}));
  alarms.Ring(At(1), note);
  alarms.Ring(TimePoint::max() - Ns{1}, note);
  EXPECT_EQ(rung, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(alarms.Earliest(), TimePoint::max());
  EXPECT_FALSE(alarms.empty());
  alarms.Ring(TimePoint::max(), note);
  EXPECT_EQ(rung, (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_TRUE(alarms.empty());
}

TEST(EarliestTest, OfEqualMomentsTheLeastNumberIsFirst) {
  Earliest earliest;
  EXPECT_TRUE(earliest.empty());
  earliest.Grow(1'024);
  for (uint32_t id = 1'024; id-- > 0;) {
    earliest.Set(id, TimePoint::max());
    EXPECT_EQ(earliest.first(), id);
  }
  for (uint32_t id = 0; id < 1'024; ++id) {
    EXPECT_EQ(earliest.first(), id);
    earliest.Remove(id);
  }
  EXPECT_TRUE(earliest.empty());
}

TEST(EarliestTest, MomentsAreToldApartFor146YearsAroundZero) {
  constexpr int64_t kLast = (int64_t{1} << 62) - 2;
  for (const int64_t later : {kLast, int64_t{1}, 1 - kLast}) {
    Earliest earliest;
    earliest.Grow(2);
    earliest.Set(0, At(later));
    earliest.Set(1, At(later - 1));
    EXPECT_EQ(earliest.first(), 1u) << later;
  }
  Earliest earliest;
  earliest.Grow(2);
  earliest.Set(1, TimePoint::max());
  EXPECT_TRUE(earliest.Has(1));
  EXPECT_EQ(earliest.first(), 1u);
  earliest.Set(0, At(kLast));
  EXPECT_EQ(earliest.first(), 0u);
  earliest.Set(1, TimePoint::min());
  EXPECT_EQ(earliest.first(), 1u);
}

TEST(EarliestTest, GrowingKeepsWhoIsInIt) {
  Earliest earliest;
  for (uint32_t id = 0; id < 200; ++id) {
    earliest.Grow(id + 1);
    EXPECT_FALSE(earliest.Has(id));
    earliest.Set(id, At(1'000 - id));
    EXPECT_EQ(earliest.first(), id);
  }
  earliest.Grow(1);
  for (uint32_t id = 200; id-- > 0;) {
    EXPECT_EQ(earliest.first(), id);
    earliest.Remove(id);
  }
}

}  // namespace
}  // namespace vgpud
