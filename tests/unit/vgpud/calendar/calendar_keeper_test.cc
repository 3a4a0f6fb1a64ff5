// SPDX-License-Identifier: Apache-2.0
// What a calendar changes and puts back, on virtual time: also beside other people's changes, over a restart, and when
// it is refused.
#include "vgpud/calendar/calendar_keeper.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

const SettingKey kWeight{"x", "", "weight"}, kSlice{"x", "", "slice_us"}, kPolicy{"", "", "policy"};

class CalendarKeeperTest : public testing::Test {
 protected:
  CalendarKeeperTest() {
    values_ = {{kWeight, "100"}, {kSlice, "0"}, {kPolicy, "strict"}};
    local_.tm_hour = 12;
  }
  void Start(const std::string& kept = "") {
    keeper_ = std::make_unique<CalendarKeeper>(
        loop_, CalendarKeeper::World{
                   .current = [this](const SettingKey& key) -> std::optional<Overlay::Value> {
                     const auto it = values_.find(key);
                     if (it == values_.end()) return std::nullopt;
                     return Overlay::Value{it->second, key.vf.empty() ? std::string() : uuid_};
                   },
                   .change =
                       [this](const SettingsPatch& patch, auto done) {
                         ++changes_;
                         for (const auto& [name, vf] : patch.vfs)
                           if (refused_vf_ == name) return done("not " + name);
                         if (!refusal_.empty()) return done(refusal_);
                         for (const auto& [name, vf] : patch.vfs)
                           for (const KnobValue& knob : vf.knobs)
                             values_[{name, "", std::string(RowOf(knob.knob).name)}] = std::to_string(knob.value);
                         if (patch.gpu && patch.gpu->policy) values_[kPolicy] = *patch.gpu->policy;
                         done("");
                       },
                   .keep =
                       [this](std::string text, auto done) {
                         if (full_) return done("the disk is full");
                         kept_ = std::move(text);
                         done("");
                       },
                   .local_time = [this] { return local_; }});
    keeper_->Begin(calendar_, kept);
  }
  void Put(std::initializer_list<const char*> settings) {
    for (const char* setting : settings) ASSERT_TRUE(SetInCalendar(&calendar_, setting)) << setting;
  }
  void GoTo(int hour) {
    local_.tm_hour = hour;
    keeper_->Look();
  }

  EventLoop loop_;
  SettingValues values_;
  Calendar calendar_;
  std::tm local_{};
  std::string kept_, refusal_, refused_vf_, uuid_ = "u";
  bool full_ = false;
  int changes_ = 0;
  std::unique_ptr<CalendarKeeper> keeper_;
};

TEST_F(CalendarKeeperTest, WhatWasThereComesBack) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800", "night.gpu.policy=reserve"});
  Start();
  EXPECT_EQ(0, changes_);
  GoTo(22);
  EXPECT_EQ("800", values_[kWeight]);
  EXPECT_EQ("reserve", values_[kPolicy]);
  EXPECT_EQ(1, changes_) << "all at once";
  GoTo(23);
  EXPECT_EQ(1, changes_) << "and once only";
  GoTo(6);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("strict", values_[kPolicy]);
  EXPECT_EQ("", kept_);
}

TEST_F(CalendarKeeperTest, AFixedSliceComesBackWithItsWeight) {
  values_[kSlice] = "3000";
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800"});
  Start();
  GoTo(22);
  EXPECT_EQ("0", values_[kSlice]) << "a weight counts only without one";
  GoTo(23);
  EXPECT_EQ("0", values_[kSlice]);
  GoTo(6);
  EXPECT_EQ("3000", values_[kSlice]);
}

TEST_F(CalendarKeeperTest, WhatSomebodyElseChangesMeanwhileStays) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800"});
  Start();
  GoTo(22);
  values_[kWeight] = "555";
  GoTo(23);
  EXPECT_EQ("555", values_[kWeight]);
  GoTo(6);
  EXPECT_EQ("555", values_[kWeight]);
}

TEST_F(CalendarKeeperTest, OnePeriodAfterAnotherPutsBackWhatWasBeforeBoth) {
  Put({"a.from=10:00", "a.to=14:00", "a.vf.x.weight=200", "b.from=14:00", "b.to=18:00", "b.vf.x.weight=300"});
  Start();
  EXPECT_EQ("200", values_[kWeight]);
  GoTo(14);
  EXPECT_EQ("300", values_[kWeight]);
  GoTo(18);
  EXPECT_EQ("100", values_[kWeight]);
}

TEST_F(CalendarKeeperTest, TheNextDaemonPutsBackWhatTheLastOneSet) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800", "night.gpu.policy=reserve"});
  Start();
  GoTo(23);
  const std::string kept = kept_;
  values_[kPolicy] = "strict";  // settings of GPUs begin anew
  Start(kept);
  EXPECT_EQ("reserve", values_[kPolicy]) << "in force again";
  GoTo(6);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("strict", values_[kPolicy]);
  // And one that is started after the end.
  GoTo(23);
  local_.tm_hour = 12;
  Start(kept_);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("strict", values_[kPolicy]);
}

TEST_F(CalendarKeeperTest, WhatIsRefusedChangesNothingAndIsTriedAgain) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800"});
  Start();
  refusal_ = "no room";
  GoTo(22);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("no room", keeper_->problem());
  EXPECT_EQ("", kept_);
  refusal_.clear();
  GoTo(23);
  EXPECT_EQ("800", values_[kWeight]);
  EXPECT_EQ("", keeper_->problem());
}

TEST_F(CalendarKeeperTest, AVfThatComesLaterGetsItsSettings) {
  Put({"always.vf.y.weight=800"});
  Start();
  EXPECT_EQ(0, changes_);
  const SettingKey weight{"y", "", "weight"}, slice{"y", "", "slice_us"};
  values_[weight] = "100";
  values_[slice] = "0";
  keeper_->Look();
  EXPECT_EQ("800", values_[weight]);
  // Another one of its name comes while the period holds.
  uuid_ = "v";
  values_[weight] = "100";
  keeper_->Look();
  EXPECT_EQ("800", values_[weight]);
  // And one that has that weight by itself, after the period.
  uuid_ = "w";
  keeper_->SetCalendar({});
  EXPECT_EQ("800", values_[weight]);
  EXPECT_EQ("", kept_);
}

TEST_F(CalendarKeeperTest, OneThatIsRefusedKeepsNoOtherAway) {
  const SettingKey weight{"y", "", "weight"};
  values_[weight] = "100";
  values_[{"y", "", "slice_us"}] = "0";
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800", "night.vf.y.weight=700",
       "night.gpu.policy=reserve"});
  Start();
  refused_vf_ = "x";
  GoTo(22);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("700", values_[weight]);
  EXPECT_EQ("reserve", values_[kPolicy]);
  EXPECT_EQ("not x", keeper_->problem());
  refused_vf_ = "y";
  GoTo(6);
  EXPECT_EQ("700", values_[weight]) << "is put back when it can be";
  EXPECT_EQ("strict", values_[kPolicy]);
  refused_vf_.clear();
  GoTo(7);
  EXPECT_EQ("100", values_[weight]);
  EXPECT_EQ("", keeper_->problem());
}

TEST_F(CalendarKeeperTest, WhatCannotBeWrittenDownIsNotSetButPutBack) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800"});
  Start();
  full_ = true;
  GoTo(22);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_NE("", keeper_->problem());
  full_ = false;
  GoTo(23);
  EXPECT_EQ("800", values_[kWeight]);
  full_ = true;
  GoTo(6);
  EXPECT_EQ("100", values_[kWeight]);
}

TEST_F(CalendarKeeperTest, ASliceThatSomebodyFixesMeanwhileStays) {
  Put({"night.from=22:00", "night.to=06:00", "night.vf.x.weight=800"});
  Start();
  GoTo(22);
  values_[kSlice] = "5000";
  GoTo(6);
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_EQ("5000", values_[kSlice]);
}

TEST_F(CalendarKeeperTest, AHandChangeLastsOverARestartWithinThePeriod) {
  Put({"always.vf.x.weight=800"});
  Start();
  values_[kWeight] = "50";
  Start(kept_);
  EXPECT_EQ("50", values_[kWeight]);
}

TEST_F(CalendarKeeperTest, AReloadTakesAPeriodAway) {
  Put({"always.vf.x.weight=800"});
  Start();
  EXPECT_EQ("800", values_[kWeight]);
  keeper_->SetCalendar({});
  EXPECT_EQ("100", values_[kWeight]);
  EXPECT_TRUE(keeper_->Report().empty());
}

// A file that was damaged, or of another release.
TEST_F(CalendarKeeperTest, WhatWasBeforeAndCannotBePutBackIsSaid) {
  for (const char* before : {"many", "", "99999999999999999999", "0"}) {
    values_[kWeight] = "800";
    Start(Overlay::Write({{kWeight, {before, "800", uuid_}}}));
    EXPECT_EQ("800", values_[kWeight]) << before;
    EXPECT_NE(std::string::npos, keeper_->problem().find("vf x weight can't be")) << keeper_->problem();
  }
}

TEST_F(CalendarKeeperTest, WhatIsKeptIsReadWithCare) {
  for (const char* text :
       {"", "\n", "x\t\tweight\t100", "x\t\tweight\n", "a\tb\tc\td\te\tf\tg\n", "\t\t\t\t\t\n", "\xff\xfe\n"})
    EXPECT_TRUE(Overlay::Read(text).held().empty()) << text;
  const std::map<SettingKey, Overlay::Held> held = {{kWeight, {"100", "800", "u"}}, {kPolicy, {"strict", "reserve"}}};
  EXPECT_EQ(held, Overlay::Read(Overlay::Write(held)).held());
  EXPECT_EQ(held, Overlay::Read(Overlay::Write(held) + "cut off\t").held());
}

}  // namespace
}  // namespace vgpud::daemon
