// SPDX-License-Identifier: Apache-2.0
// The tables of knobs, policies and figures, row by row, as docs/scheduling.md and docs/observability.md have them.
#include <gtest/gtest.h>

#include "sched/account/account.h"
#include "sched/knobs.h"
#include "sched/registry.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

struct KnobCase {
  Knob knob;
  const char* name;
  bool per_vf;
  const char* range;
  const char* policies;
};

TEST(KnobTableTest, EveryRow) {
  const KnobCase cases[] = {
      {Knob::kWeight, "weight", true, "1 to 10000", "strict reserve relaxed "},
      {Knob::kSlice, "slice_us", true, "100 to 1000000 us", "strict reserve relaxed "},
      {Knob::kPriority, "priority", true, "0 to 3", "strict reserve relaxed "},
      {Knob::kGroup, "group", true, "0 to 63", "strict reserve relaxed "},
      {Knob::kGuarantee, "guarantee", true, "0 or 0.001 to 1 of the GPU", "reserve "},
      {Knob::kLimit, "limit", true, "0.001 to 1 of the GPU", "reserve "},
      {Knob::kBurst, "burst_us", true, "0 to 1000000 us", "reserve "},
      {Knob::kWakeFirst, "wake_first", true, "0 to 1", "strict reserve relaxed "},
      {Knob::kBaseSlice, "base_slice_us", false, "100 to 1000000 us", "strict reserve relaxed "},
      {Knob::kMaxWait, "max_wait_us", false, "0 or 1000 to 10000000 us", "strict reserve relaxed "},
      {Knob::kMinSlice, "min_slice_us", false, "100 to 1000000 us", "strict reserve relaxed "},
      {Knob::kMaxSlice, "max_slice_us", false, "100 to 1000000 us", "strict reserve relaxed "},
      {Knob::kAveragingFactor, "averaging_factor", false, "1 to 60", "strict reserve relaxed "},
      {Knob::kFloorPercent, "floor_percent", false, "1 to 25 %", "strict reserve relaxed "},
      {Knob::kIdleGrace, "idle_grace_us", false, "0 to 10000 us", "strict reserve relaxed "},
      {Knob::kAnticipatePercent, "anticipate_percent", false, "0 to 100 %", "strict reserve relaxed "},
      {Knob::kAnticipate, "anticipate_us", false, "10 to 10000 us", "strict reserve relaxed "},
      {Knob::kGroupWeight, "group_weight", false, "1 to 10000", "strict reserve relaxed "},
  };
  ASSERT_EQ(std::size(cases), Knobs().size());
  for (size_t i = 0; i < std::size(cases); ++i) {
    const KnobRow& row = Knobs()[i];
    EXPECT_EQ(cases[i].knob, row.knob);
    EXPECT_EQ(&row, &RowOf(row.knob));
    EXPECT_EQ(cases[i].name, row.name);
    EXPECT_EQ(cases[i].per_vf, row.per_vf) << row.name;
    EXPECT_EQ(cases[i].range, AllowedRange(row)) << row.name;
    EXPECT_FALSE(row.about.empty()) << row.name;
    std::string policies;
    for (const PolicyRow& policy : Policies())
      if (policy.Understands(row.knob)) policies += std::string(policy.name) + " ";
    EXPECT_EQ(cases[i].policies, policies) << row.name;
  }
}

TEST(PolicyTableTest, WhoKeepsIdleTurnsAndWhoEndsTurnsByForce) {
  struct Case {
    const char* name;
    bool holds;
    bool forced;
  };
  const Case cases[] = {{"strict", true, true}, {"reserve", false, true}, {"relaxed", true, false}};
  ASSERT_EQ(std::size(cases), Policies().size());
  for (size_t i = 0; i < std::size(cases); ++i) {
    const PolicyRow& row = Policies()[i];
    EXPECT_EQ(cases[i].name, row.name);
    EXPECT_EQ(cases[i].holds, row.holds) << row.name;
    EXPECT_EQ(cases[i].forced, row.make({})->Forced()) << row.name;
    EXPECT_TRUE(row.make({})->YieldsWhenIdle()) << row.name;
    PolicyOptions hold;
    hold.idle = WhenIdle::kHold;
    EXPECT_EQ(!cases[i].holds, row.make(hold)->YieldsWhenIdle()) << row.name;
    EXPECT_EQ(0u, row.knobs >> kKnobs) << row.name;
  }
}

TEST(PolicyTableTest, OptionsThatAreOutOfRangeMakeNoPolicy) {
  PolicyOptions options;
  options.floor_percent = 26;
  EXPECT_EQ("floor_percent 26 is out of range: allowed is 1 to 25 %", MakePolicy("strict", options).error().context);
}

TEST(KnobTest, TimesAreWholeMicroseconds) {
  VfView vf;
  SetKnob(vf, Knob::kSlice, 1);
  EXPECT_EQ(1us, vf.slice);
  vf.slice = 2'999ns;
  EXPECT_EQ(2u, KnobOf(vf, Knob::kSlice));
  vf.slice = -5us;
  EXPECT_EQ(0u, KnobOf(vf, Knob::kSlice));
}

TEST(KnobTest, RefusalsNameTheFields) {
  using Fields = std::vector<std::string_view>;
  EXPECT_EQ((Fields{"weight"}), CheckKnob(Knob::kWeight, 0).error().fields);
  VfView vf;
  vf.guarantee = kWhole;
  EXPECT_TRUE(CheckVf(**FindPolicy("reserve"), "a", vf));  // as much as its limit
  EXPECT_EQ((Fields{"guarantee", "policy"}), CheckVf(**FindPolicy("strict"), "a", vf).error().fields);
  vf.limit = kWhole - 1;
  EXPECT_EQ((Fields{"guarantee", "limit"}), CheckVf(**FindPolicy("reserve"), "a", vf).error().fields);
  PolicyOptions options;
  options.min_slice = options.max_slice;
  EXPECT_TRUE(CheckOptions(options));
  options.min_slice += 1us;
  EXPECT_EQ((Fields{"min_slice_us", "max_slice_us"}), CheckOptions(options).error().fields);
}

TEST(RoomForGuaranteesTest, IsWhatASwitchAfterEachSliceLeaves) {
  const GuaranteeRoom none = RoomForGuarantees({}, {}, 1s);
  EXPECT_EQ(0.0, none.asked);
  EXPECT_EQ(1.0, none.available);
  EXPECT_EQ(0ns, none.slice);
  std::vector<VfView> vfs(3);
  vfs[0].guarantee = 400'000;
  vfs[1].guarantee = 100'000;
  vfs[1].weight = 200;
  vfs[2].slice = 100us;  // without a guarantee
  const GuaranteeRoom room = RoomForGuarantees(vfs, {}, 500us);
  EXPECT_DOUBLE_EQ(0.5, room.asked);
  EXPECT_DOUBLE_EQ(0.8, room.available);
  EXPECT_EQ(2ms, room.slice);
  vfs[1].slice = 1ms;
  EXPECT_EQ(1ms, RoomForGuarantees(vfs, {}, 500us).slice);
  PolicyOptions options;
  options.max_wait = 1ns;
  EXPECT_EQ(500us, RoomForGuarantees(vfs, options, 500us).slice);
}

TEST(RoomForGuaranteesTest, TheWholeMayBePromisedIfSwitchesCostNothing) {
  std::vector<VfView> vfs(2);
  for (VfView& vf : vfs) vf.guarantee = kWhole / 2;
  EXPECT_TRUE(CheckGuarantees(vfs, {}, 0ns));
  EXPECT_FALSE(CheckGuarantees(vfs, {}, 1us));
}

struct FigureCase {
  const char* name;
  const char* metric;
  const char* column;  // "": not kept
  bool ns;
  bool worst;  // of one turn; all others are sums
  uint64_t VfAccount::*value;
};

TEST(FigureTableTest, EveryRow) {
  const FigureCase cases[] = {
      {"entitled_ns", "entitled_seconds_total", "entitled_ns", true, false, &VfAccount::entitled_ns},
      {"received_ns", "received_seconds_total", "received_ns", true, false, &VfAccount::received_ns},
      {"borrowed_ns", "borrowed_seconds_total", "borrowed_ns", true, false, &VfAccount::borrowed_ns},
      {"unclaimed_ns", "unclaimed_seconds_total", "unclaimed_ns", true, false, &VfAccount::unclaimed_ns},
      {"runnable_ns", "runnable_seconds_total", "runnable_ns", true, false, &VfAccount::runnable_ns},
      {"waited_ns", "waited_seconds_total", "waited_ns", true, false, &VfAccount::waited_ns},
      {"slices", "slices_total", "turns", false, false, &VfAccount::slices},
      {"forced_preemptions", "forced_preemptions_total", "forced_preemptions", false, false,
       &VfAccount::forced_preemptions},
      {"overrun_ns_total", "overrun_seconds_total", "overrun_ns", true, false, &VfAccount::overrun_ns},
      {"worst_overrun_ns", "worst_overrun_seconds", "worst_overrun_ns", true, true, &VfAccount::worst_overrun_ns},
      {"hangs", "hangs_total", "hangs", false, false, &VfAccount::hangs},
      {"host_stalls", "host_stalls_total", "host_stalls", false, false, &VfAccount::host_stalls},
      {"host_delay_ns_total", "host_delay_seconds_total", "", true, false, &VfAccount::host_delay_ns},
      {"anticipated_ns", "anticipated_seconds_total", "", true, false, &VfAccount::anticipated_ns},
      {"active_ns", "active_seconds_total", "active_ns", true, false, &VfAccount::active_ns},
      {"active_gpu_ns", "active_gpu_seconds_total", "active_gpu_ns", true, false, &VfAccount::active_gpu_ns},
      {"active_thinking_ns", "active_thinking_seconds_total", "active_thinking_ns", true, false,
       &VfAccount::active_thinking_ns},
      {"active_others_ns", "active_others_seconds_total", "active_others_ns", true, false,
       &VfAccount::active_others_ns},
      {"active_switching_ns", "active_switching_seconds_total", "active_switching_ns", true, false,
       &VfAccount::active_switching_ns},
      {"active_stalled_ns", "active_stalled_seconds_total", "active_stalled_ns", true, false,
       &VfAccount::active_stalled_ns},
      {"active_held_ns", "active_held_seconds_total", "active_held_ns", true, false, &VfAccount::active_held_ns},
  };
  ASSERT_EQ(std::size(cases), std::size(kAccountStatistics));
  for (size_t i = 0; i < std::size(cases); ++i) {
    const Statistic& row = kAccountStatistics[i].about;
    EXPECT_STREQ(cases[i].name, row.name);
    EXPECT_STREQ(cases[i].metric, row.metric) << row.name;
    EXPECT_STREQ(cases[i].column, row.column == nullptr ? "" : row.column) << row.name;
    EXPECT_EQ(cases[i].ns, row.ns) << row.name;
    EXPECT_EQ(cases[i].worst, row.worst) << row.name;
    EXPECT_EQ(cases[i].worst, row.gauge) << row.name;
    EXPECT_EQ(!cases[i].worst, row.reported) << row.name;
    EXPECT_EQ(cases[i].value, kAccountStatistics[i].value) << row.name;
  }
}

}  // namespace
}  // namespace vgpud
