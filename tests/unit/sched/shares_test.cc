// SPDX-License-Identifier: Apache-2.0
#include "sched/shares.h"

#include <gtest/gtest.h>

#include <numeric>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

uint64_t Reserve(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice, std::span<uint64_t> out) {
  ShareScratch scratch;
  return ReserveShares(vfs, options, base_slice, out, scratch);
}

constexpr auto kRunnable = true;

VfView Vf(uint32_t vf, uint32_t weight = 100, uint8_t group = kNoGroup, uint8_t priority = kDefaultPriority) {
  VfView view{VfId{vf}, weight, Ns{0}, kRunnable};
  view.group = group;
  view.priority = priority;
  return view;
}
VfView Reserved(uint32_t vf, double guarantee, double limit, uint32_t weight = 100) {
  VfView view = Vf(vf, weight);
  view.guarantee = static_cast<uint32_t>(guarantee * kWhole);
  view.limit = static_cast<uint32_t>(limit * kWhole);
  return view;
}

using Shares = uint64_t (*)(std::span<const VfView>, const PolicyOptions&, Ns, std::span<uint64_t>);

void Expect(const std::vector<double>& expected, Shares shares, const std::vector<VfView>& vfs,
            const PolicyOptions& options = {}) {
  std::vector<uint64_t> out(vfs.size(), 99);
  const auto whole = static_cast<double>(shares(vfs, options, 2ms, out));
  for (size_t i = 0; i < vfs.size(); ++i) EXPECT_NEAR(expected[i], static_cast<double>(out[i]) / whole, 1e-9) << i;
}

TEST(TreeSharesTest, WithoutGroupsAndClassesTheyAreTheSlices) {
  std::vector<VfView> vfs = {Vf(0), Vf(1, 300), Vf(2)};
  vfs[2].slice = 5ms;
  std::vector<uint64_t> out(3);
  EXPECT_EQ(13'000'000u, TreeShares(vfs, {}, 2ms, out));
  EXPECT_EQ((std::vector<uint64_t>{2'000'000, 6'000'000, 5'000'000}), out);
}

TEST(TreeSharesTest, GroupsFirst) {
  PolicyOptions options;
  options.group_weights[7] = 200;
  Expect({0.125, 0.375, 0.25, 0.25}, TreeShares, {Vf(0, 100, 7), Vf(1, 300, 7), Vf(2), Vf(3, 5, 8)}, options);
}

TEST(TreeSharesTest, TheTopClassHasWhatFloorsLeave) {
  Expect({0.05, 0.9, 0.05}, TreeShares, {Vf(0, 100, kNoGroup, 0), Vf(1, 100, kNoGroup, 3), Vf(2, 100, kNoGroup, 1)});
}

TEST(TreeSharesTest, AClassRightBelowHasItsFloorToo) {
  Expect({0.05, 0.95}, TreeShares, {Vf(0, 100, kNoGroup, 1), Vf(1, 100, kNoGroup, 2)});
  Expect({0.05, 0.05, 0.05, 0.85}, TreeShares,
         {Vf(0, 100, kNoGroup, 0), Vf(1, 100, 3, 1), Vf(2, 700, kNoGroup, 2), Vf(3, 100, kNoGroup, 3)});
}

TEST(TreeSharesTest, AGroupCountsWhateverItsMembersHave) {
  VfView least = Vf(0, 100, 63);
  least.slice = 1ns;
  Expect({0.5, 0.5}, TreeShares, {least, Vf(1)});
  Expect({0.5, 0.25, 0.25}, TreeShares, {least, Vf(1, 100, 0), Vf(2, 100, 0)});
}

TEST(TreeSharesTest, ThePartsMakeTheSum) {
  for (const uint8_t group : {uint8_t{5}, kNoGroup}) {
    const std::vector<VfView> vfs = {Vf(0, 100, group), Vf(1, 300), Vf(2, 77)};
    std::vector<uint64_t> out(vfs.size());
    const uint64_t sum = TreeShares(vfs, {}, 2ms, out);
    EXPECT_EQ(sum, std::accumulate(out.begin(), out.end(), uint64_t{0}));
  }
}

// But for what rounding takes from each.
TEST(TreeSharesTest, ThePartsOfATreeMakeTheWhole) {
  VfView least = Vf(0, 100, 63);
  least.slice = 1ns;
  for (const std::vector<VfView>& vfs : {std::vector<VfView>{Vf(0, 100, 0), Vf(1), Vf(2, 300, 0)},
                                         {least, Vf(1)},
                                         {Vf(0, 100, 0, 0), Vf(1, 100, 63, 3), Vf(2)}}) {
    std::vector<uint64_t> out(vfs.size());
    EXPECT_NEAR(static_cast<double>(kShareWhole), static_cast<double>(TreeShares(vfs, {}, 2ms, out)), 4);
  }
}

TEST(TreeSharesTest, BesideAGroupOnlyWhoTakesPart) {
  std::vector<VfView> vfs = {Vf(0, 100, 5), Vf(1), Vf(2), Vf(3)};
  vfs[1].runnable = false;
  vfs[3].runnable = false;
  vfs[3].paused = true;
  Expect({0.5, 0, 0.5, 0}, TreeShares, vfs);
  PolicyOptions hold;
  hold.idle = WhenIdle::kHold;
  Expect({1 / 3.0, 1 / 3.0, 1 / 3.0, 0}, TreeShares, vfs, hold);
}

TEST(TreeSharesTest, TheIdleOfAnotherClassOrGroupChangeNothing) {
  std::vector<VfView> vfs = {Vf(0), Vf(1, 300), Vf(2, 100, 5), Vf(3, 100, kNoGroup, 3)};
  vfs[2].runnable = vfs[3].runnable = false;
  std::vector<uint64_t> out(4, 99);
  EXPECT_EQ(8'000'000u, TreeShares(vfs, {}, 2ms, out));
  EXPECT_EQ((std::vector<uint64_t>{2'000'000, 6'000'000, 0, 0}), out);
}

TEST(TreeSharesTest, OnlyWhoTakesPart) {
  std::vector<VfView> vfs = {Vf(0), Vf(1), Vf(2)};
  vfs[1].runnable = false;
  vfs[2].runnable = false;
  vfs[2].paused = true;
  Expect({1, 0, 0}, TreeShares, vfs);
  PolicyOptions hold;
  hold.idle = WhenIdle::kHold;
  Expect({0.5, 0.5, 0}, TreeShares, vfs, hold);
}

TEST(ReserveSharesTest, GuaranteeFirstThenTheRestByWeight) {
  Expect({0.25 + 0.75 / 4, 0.75 / 4 * 3}, Reserve, {Reserved(0, 0.25, 1), Reserved(1, 0, 1, 300)});
}

TEST(ReserveSharesTest, WhatALimitCutsOffGoesToTheOthers) {
  Expect({0.3, 0.35, 0.35}, Reserve, {Reserved(0, 0.25, 0.3), Reserved(1, 0, 1), Reserved(2, 0, 1)});
  Expect({0.25, 0.5}, Reserve, {Reserved(0, 0.25, 0.25), Reserved(1, 0, 0.5)});
}

TEST(ReserveSharesTest, LimitsThatAreReachedOneAfterTheOther) {
  // 1/4 each; the first leaves 0.15 to three, which lets the second reach its limit, and so on.
  Expect({0.1, 0.27, 0.315, 0.315}, Reserve,
         {Reserved(0, 0, 0.1), Reserved(1, 0, 0.27), Reserved(2, 0, 1), Reserved(3, 0, 0.9)});
  Expect({0.1, 0.2, 0.3}, Reserve, {Reserved(0, 0.1, 0.1), Reserved(1, 0.05, 0.2), Reserved(2, 0, 0.3)});
}

TEST(ReserveSharesTest, TheWholeMayBeGuaranteed) {
  Expect({0.6, 0.4, 0}, Reserve, {Reserved(0, 0.6, 1), Reserved(1, 0.4, 1), Reserved(2, 0, 1)});
  Expect({1}, Reserve, {Reserved(0, 0.6, 1)});
}

TEST(ReserveSharesTest, HandOver) {
  const VfView a = Reserved(0, 0.25, 0.75), b = Reserved(1, 0.25, 0.75);
  VfView idle = b;
  idle.runnable = false;
  Expect({0.5, 0.5}, Reserve, {a, b});
  Expect({0.75, 0}, Reserve, {a, idle});
}

TEST(SharesTest, NobodyRunnableIsNothing) {
  std::vector<VfView> vfs = {Vf(0), Vf(1, 100, 3)};
  for (VfView& vf : vfs) vf.runnable = false;
  std::vector<uint64_t> out(2, 99);
  EXPECT_EQ(0u, TreeShares(vfs, {}, 2ms, out));
  EXPECT_EQ(0u, Reserve(vfs, {}, 2ms, out));
  EXPECT_EQ((std::vector<uint64_t>{0, 0}), out);
}

}  // namespace
}  // namespace vgpud
