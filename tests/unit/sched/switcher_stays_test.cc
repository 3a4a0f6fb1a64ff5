// SPDX-License-Identifier: Apache-2.0
// A VF that nobody waits for keeps the GPU between its slices and while it has nothing to do: what it does is accounted
// as ever, and who comes has it at the end of the slice.
#include <gtest/gtest.h>

#include <optional>

#include "sched/registry.h"
#include "sched/switcher.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};

class Gpu final : public WorldBackend {
 public:
  std::vector<VfView> vfs{{.vf = VfId{0}, .runnable = true}, {.vf = VfId{1}}};
  bool waits_for_boundary = false;
  std::string verbs;
  TimePoint deadline{};
  bool stops = true;

  std::span<const VfView> TurnBoundary(TimePoint) override {
    views_ = vfs;
    return views_;
  }
  bool HasWork(VfId vf) override { return vfs[Raw(vf)].runnable; }
  bool MayStay(VfId vf) override { return !waits_for_boundary && !vfs[1 - Raw(vf)].runnable; }
  void SetDeadline(VfId, TimePoint end, bool stops_there) override {
    deadline = end;
    stops = stops_there;
  }
  void Load(VfId) override {}
  void Run(VfId vf, TimePoint until) override {
    verbs += Raw(vf) == 0 ? 'a' : 'b';
    deadline = until;
    stops = true;
  }
  void Drain(VfId) override { verbs += '-'; }
  void Save(VfId) override {}
  void Flr(VfId) override {}
  void Park(VfId) override {}
  bool Complete(WsState, VfId) override { return true; }
  bool Excused(VfId) override { return false; }

 private:
  std::vector<VfView> views_;
};

struct Bed {
  Gpu gpu;
  std::unique_ptr<Policy> policy;
  SliceTrace trace{64};
  Switcher switcher;
  TimePoint now = kStart;

  explicit Bed(const char* name = "strict", Switcher::Options options = {}, PolicyOptions settings = {})
      : policy(*MakePolicy(name, settings)), switcher(gpu, *policy, options) {
    switcher.SetTrace(&trace);
  }
  void At(Ns since) {
    now = kStart + since;
    switcher.Poll(now);
  }
  VfAccount Of(uint32_t vf) { return switcher.AccountAt(now).Of(VfId{vf}); }
};

TEST(SwitcherStaysTest, SlicesFollowEachOtherWithoutTakingTheGpuBack) {
  Bed bed;
  for (Ns t{0}; t <= 10ms; t += 1ms) bed.At(t);
  EXPECT_EQ("a", bed.gpu.verbs);
  EXPECT_TRUE(bed.switcher.stays());
  EXPECT_EQ(kStart + 12ms, bed.gpu.deadline);
  EXPECT_FALSE(bed.gpu.stops);
  EXPECT_EQ(5u, bed.Of(0).slices);
  EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
  EXPECT_EQ(10'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(10'000'000u, bed.Of(0).entitled_ns);
  EXPECT_EQ(0u, bed.switcher.AccountAt(bed.now).switch_ns());
  EXPECT_EQ(5u, bed.policy->round());
}

TEST(SwitcherStaysTest, ALateLookIsNobodysDebt) {
  Bed bed;
  bed.At(0ms);
  bed.At(7ms);
  EXPECT_EQ(kStart + 8ms, bed.gpu.deadline);
  EXPECT_EQ(3u, bed.Of(0).slices);
  EXPECT_EQ(0ns, bed.policy->Debt(VfId{0}));
  EXPECT_EQ(0u, bed.Of(0).overrun_ns);
}

TEST(SwitcherStaysTest, WhoComesHasTheGpuAtTheEndOfTheSlice) {
  Bed bed;
  bed.At(0ms);
  bed.At(4ms);
  bed.gpu.vfs[1].runnable = true;
  bed.At(4500us);
  EXPECT_FALSE(bed.switcher.stays());
  EXPECT_EQ(kStart + 6ms, bed.gpu.deadline);
  EXPECT_TRUE(bed.gpu.stops) << "the executor stops in time by itself from now on";
  bed.At(6ms - 1ns);
  EXPECT_EQ("a", bed.gpu.verbs);
  bed.At(6ms);
  EXPECT_EQ("a-b", bed.gpu.verbs);
  EXPECT_EQ(1u, bed.Of(0).forced_preemptions);
  bed.At(8ms);
  EXPECT_EQ("a-b-a", bed.gpu.verbs);
}

TEST(SwitcherStaysTest, WhatWaitsForATurnBoundaryHasOne) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.waits_for_boundary = true;
  bed.At(1ms);
  EXPECT_TRUE(bed.gpu.stops);
  bed.At(2ms);
  EXPECT_EQ("a-a", bed.gpu.verbs);
}

TEST(SwitcherStaysTest, ItRestsOnNobodysAccountAndGoesOnAtOnce) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.vfs[0].runnable = false;
  bed.At(1ms);
  EXPECT_TRUE(bed.switcher.rests());
  EXPECT_EQ(TimePoint::max(), bed.switcher.NextPoll());
  bed.At(50ms);
  EXPECT_EQ(1'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(1'000'000u, bed.Of(0).runnable_ns);
  EXPECT_EQ(0u, bed.Of(0).waited_ns);
  EXPECT_EQ(49'000'000u, bed.switcher.AccountAt(bed.now).idle_ns());
  EXPECT_EQ(1u, bed.Of(0).slices);
  bed.gpu.vfs[0].runnable = true;
  bed.At(51ms);
  EXPECT_FALSE(bed.switcher.rests());
  EXPECT_TRUE(bed.switcher.stays());
  EXPECT_EQ(kStart + 53ms, bed.gpu.deadline);
  bed.At(52ms);
  EXPECT_EQ(2'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ("a", bed.gpu.verbs);
}

TEST(SwitcherStaysTest, WhoComesWhileItRestsHasTheGpuAtOnce) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.vfs[0].runnable = false;
  bed.At(1ms);
  bed.gpu.vfs[1].runnable = true;
  bed.At(20ms);
  EXPECT_EQ("a-b", bed.gpu.verbs);
  EXPECT_FALSE(bed.switcher.rests());
  bed.At(21ms);
  EXPECT_EQ(1'000'000u, bed.Of(1).received_ns);
  EXPECT_EQ(1'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(0ns, bed.policy->Debt(VfId{0}));
}

TEST(SwitcherStaysTest, TheTimeThatItRestedIsNoPartOfTheSwitchThatFollows) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.vfs[0].runnable = false;
  bed.At(1ms);
  bed.gpu.vfs[1].runnable = true;
  bed.At(20ms);
  bed.At(22ms);
  SliceTrace::Reader reader(bed.trace);
  SliceRecord first, second;
  ASSERT_TRUE(reader.Next(&first) && reader.Next(&second));
  EXPECT_EQ(kStart + 1ms, first.end);
  EXPECT_EQ(VfId{1}, second.vf);
  EXPECT_EQ(kStart + 20ms, second.start);
  EXPECT_EQ(0ns, second.switch_time);
}

TEST(SwitcherStaysTest, AGapThatIsWaitedForIsStillTheVfsOwn) {
  PolicyOptions settings;
  settings.idle_grace = 300us;
  Bed bed("strict", {}, settings);
  bed.At(0ms);
  bed.gpu.vfs[0].runnable = false;
  bed.At(1ms);
  EXPECT_FALSE(bed.switcher.rests());
  EXPECT_EQ(kStart + 1300us, bed.switcher.NextPoll());
  bed.At(1300us);
  EXPECT_TRUE(bed.switcher.rests());
  EXPECT_EQ(1'300'000u, bed.Of(0).received_ns);
}

TEST(SwitcherStaysTest, NotWhereTurnsMeanSomethingToOthersOrItIsSwitchedOff) {
  PolicyOptions hold;
  hold.idle = WhenIdle::kHold;
  Bed held("strict", {}, hold), reserved("reserve"), off("strict", {.stays = false});
  for (Bed* bed : {&held, &reserved, &off}) {
    bed->At(0ms);
    EXPECT_FALSE(bed->switcher.stays());
    bed->At(2ms);
    EXPECT_EQ('-', bed->gpu.verbs[1]);
  }
}

}  // namespace
}  // namespace vgpud
