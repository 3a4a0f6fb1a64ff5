// SPDX-License-Identifier: Apache-2.0
// The arena: what an allocation takes, where it lies, what is inside one, and which allocations a file may name.
#include "gpu/soft/memory/arena.h"

#include <gmock/gmock.h>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/memory/pinned_blocks.h"
#include "tests/unit/soft/rig/state_fields.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kPage = 2 * kMiB;

GpuVa At(uint64_t offset) { return GpuVa{0x700000000000 + offset}; }

TEST(Arena, IsWholePagesAndNeverNothing) {
  const std::pair<uint64_t, uint64_t> sizes[] = {
      {0, kPage}, {1, kPage}, {kPage - 1, kPage}, {kPage, kPage}, {kPage + 1, 2 * kPage}, {5 * kMiB, 3 * kPage}};
  for (const auto& [asked, bytes] : sizes) {
    Arena arena(asked);
    EXPECT_EQ(arena.bytes(), bytes) << asked;
    EXPECT_TRUE(arena.Alloc(bytes, false)) << "all of it can be used";
  }
  EXPECT_EQ(Raw(At(0)), Arena::first_va() + ReachSpace::kBytes);
}

TEST(Arena, GrowsWhenAnAllocationNeedsItAsFarAsItMay) {
  Arena arena({kPage, 4 * kPage});
  const GpuVa first = *arena.Alloc(kPage, false);
  EXPECT_THAT(arena.Alloc(512, false).error().text, HasSubstr("no free range of 512 bytes"));
  arena.SetLimit(3 * kPage);
  EXPECT_EQ(arena.bytes(), kPage) << "nothing has needed it";
  const GpuVa second = *arena.Alloc(2 * kPage, false);
  EXPECT_EQ(second, At(kPage));
  EXPECT_EQ(arena.bytes(), 3 * kPage);
  for (const uint64_t offset : {uint64_t{0}, 2 * kPage - 1}) {
    std::byte* const byte = arena.Host(GpuVa{Raw(second) + offset});
    EXPECT_EQ(*byte, std::byte{0});
    *byte = std::byte{7};
  }
  EXPECT_TRUE(arena.Contains(second, 2 * kPage));
  EXPECT_FALSE(arena.Contains(second, 2 * kPage + 1));
  arena.SetLimit(kPage);
  EXPECT_TRUE(arena.Contains(second, 2 * kPage)) << "what is there stays";
  EXPECT_FALSE(arena.Alloc(512, false));
  arena.SetLimit(UINT64_MAX);
  EXPECT_TRUE(arena.Alloc(kPage, false)) << "all that was reserved";
  EXPECT_EQ(arena.bytes(), 4 * kPage);
  EXPECT_FALSE(arena.Alloc(512, false));
  EXPECT_TRUE(arena.Free(first, false));
  EXPECT_TRUE(arena.Free(second, false));
  EXPECT_EQ(*arena.Alloc(3 * kPage, false), At(0)) << "what was open and what was not are one";
}

TEST(Arena, GrowsByAPartOfAPageAsOne) {
  Arena arena({kPage, 4 * kPage});
  arena.SetLimit(kPage + 1);
  EXPECT_TRUE(arena.Alloc(kPage, false));
  EXPECT_TRUE(arena.Alloc(1, false));
}

TEST(Arena, PagesThatAreMappedLaterMakeItGrow) {
  Arena arena({kPage, 4 * kPage});
  if (!arena.mappable().possible()) GTEST_SKIP() << "this build maps nothing later";
  arena.SetLimit(3 * kPage);
  EXPECT_TRUE(arena.CreateMappable(3 * kPage));
  EXPECT_FALSE(arena.CreateMappable(kPage));
}

TEST(Arena, TakesMultiplesOf512) {
  const std::pair<uint64_t, uint64_t> sizes[] = {{0, 0}, {1, 512}, {511, 512}, {512, 512}, {513, 1024}, {1024, 1024}};
  for (const auto& [asked, taken] : sizes) EXPECT_EQ(Arena::Rounded(asked), taken) << asked;
  Arena arena(kPage);
  EXPECT_EQ(*arena.Alloc(1, false), At(0));
  EXPECT_EQ(*arena.Alloc(512, false), At(512));
  EXPECT_EQ(*arena.Alloc(513, true), At(1024));
  EXPECT_EQ(*arena.Alloc(1, false), At(2048));
  EXPECT_EQ(*arena.Free(At(0), false), 512u);
  EXPECT_EQ(*arena.Free(At(1024), true), 1024u);
}

TEST(Arena, RefusesNothingAndTooMuchEachWithItsReason) {
  Arena arena(kPage);
  EXPECT_EQ(arena.Alloc(0, false).error().status, CuStatus::kInvalidValue);
  const auto more = arena.Alloc(kPage + 1, false);
  EXPECT_EQ(more.error().status, CuStatus::kOutOfMemory);
  EXPECT_THAT(more.error().text, HasSubstr("2097153 bytes asked, the device has 2097152"));
  ASSERT_TRUE(arena.Alloc(kPage - 1024, false));
  EXPECT_THAT(arena.Alloc(1025, false).error().text, HasSubstr("no free range of 1536 bytes"));
  EXPECT_EQ(*arena.Alloc(1024, false), At(kPage - 1024));
  EXPECT_THAT(arena.Alloc(1, false).error().text, HasSubstr("no free range of 512 bytes"));
}

TEST(Arena, TheFirstRangeThatIsLargeEnoughIsTaken) {
  Arena arena(kPage);
  for (int n = 0; n < 6; ++n) ASSERT_TRUE(arena.Alloc(1024, false));
  ASSERT_TRUE(arena.Free(At(1024), false));
  ASSERT_TRUE(arena.Free(At(3072), false));
  EXPECT_EQ(*arena.Alloc(1025, false), At(6144)) << "none of the two holds it";
  EXPECT_EQ(*arena.Alloc(512, false), At(1024));
  EXPECT_EQ(*arena.Alloc(1024, false), At(3072)) << "the rest of the first one is too small";
  EXPECT_EQ(*arena.Alloc(100, false), At(1536));
}

TEST(Arena, NeighboursThatAreFreeBecomeOneRange) {
  constexpr uint64_t kThird = 1024;
  const std::array<uint64_t, 3> orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    Arena arena(kPage);
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(arena.Alloc(kThird, false));
    const uint64_t rest = kPage - 3 * kThird;
    ASSERT_TRUE(arena.Alloc(rest, false));
    for (const uint64_t n : order) EXPECT_EQ(*arena.Free(At(n * kThird), false), kThird);
    EXPECT_EQ(*arena.Alloc(3 * kThird, false), At(0)) << order[0] << order[1] << order[2];
    EXPECT_FALSE(arena.Alloc(1, false));
  }
}

TEST(Arena, OnlyTheStartOfAnAllocationOfThatKindIsFreed) {
  Arena arena(kPage);
  EXPECT_TRUE(arena.empty());
  ASSERT_TRUE(arena.Alloc(1024, false));
  ASSERT_TRUE(arena.Alloc(512, true));
  EXPECT_FALSE(arena.empty());
  EXPECT_FALSE(arena.Free(At(512), false)) << "the middle";
  EXPECT_FALSE(arena.Free(At(1024), false)) << "pinned";
  EXPECT_FALSE(arena.Free(At(0), true)) << "not pinned";
  EXPECT_FALSE(arena.Free(GpuVa{0}, false));
  EXPECT_THAT(arena.Pinned(), ElementsAre(std::pair(Raw(At(1024)), 512)));
  EXPECT_TRUE(arena.Free(At(1024), true));
  EXPECT_TRUE(arena.Free(At(0), false));
  EXPECT_FALSE(arena.Free(At(0), false)) << "twice";
  EXPECT_TRUE(arena.empty());
  EXPECT_TRUE(arena.Pinned().empty());
}

TEST(Arena, WhatWasAskedForIsInsideAndNothingElse) {
  Arena arena(kPage);
  ASSERT_TRUE(arena.Alloc(1024, false));
  ASSERT_TRUE(arena.Alloc(600, false));  // from 1024
  ASSERT_TRUE(arena.Alloc(512, false));  // from 2048
  ASSERT_TRUE(arena.Free(At(0), false));
  struct Case {
    uint64_t offset, bytes;
    bool inside;
  };
  const Case cases[] = {{1024, 600, true},         {1024, 601, false}, {1024, 0, true},   {1023, 1, false},
                        {1623, 1, true},           {1624, 1, false},   {1624, 0, true},   {1625, 0, false},
                        {2048, 512, true},         {2559, 1, true},    {2560, 1, false},  {0, 1, false},
                        {1024, UINT64_MAX, false}, {kPage, 0, false},  {kPage, 1, false}, {kPage - 1, 1, false}};
  for (const Case& c : cases) EXPECT_EQ(arena.Contains(At(c.offset), c.bytes), c.inside) << c.offset << ", " << c.bytes;
  EXPECT_FALSE(arena.Contains(GpuVa{0}, 1));
  EXPECT_FALSE(arena.Contains(GpuVa{Arena::first_va() - 1}, 1));
}

TEST(Arena, TheLastAllocationUpToAnAddress) {
  Arena arena(kPage);
  ASSERT_TRUE(arena.Alloc(512, false));
  ASSERT_TRUE(arena.Alloc(600, false));
  ASSERT_TRUE(arena.Alloc(100, false));  // from 1536
  ASSERT_TRUE(arena.Free(At(0), false));
  EXPECT_FALSE(arena.LastUpTo(GpuVa{Arena::first_va() - 1}));
  EXPECT_FALSE(arena.LastUpTo(At(0)));
  EXPECT_FALSE(arena.LastUpTo(At(511)));
  for (const uint64_t offset : {512, 513, 1535}) {
    EXPECT_EQ(arena.LastUpTo(At(offset))->address, At(512));
    EXPECT_EQ(arena.LastUpTo(At(offset))->bytes, 600u);
  }
  EXPECT_EQ(arena.LastUpTo(At(1536))->address, At(1536));
  EXPECT_EQ(arena.LastUpTo(At(100 * kMiB))->bytes, 100u);
}

// Those of device memory.
std::vector<int> Pages(const Arena& arena) {
  const uint8_t* const first = arena.pages() + ReachSpace::kBytes / kPage;
  return {first, first + arena.bytes() / kPage};
}

TEST(Arena, PagesAreThereWhileAnAllocationLiesOnThem) {
  Arena arena(4 * kPage);
  EXPECT_THAT(Pages(arena), ElementsAre(0, 0, 0, 0));
  ASSERT_EQ(*arena.Alloc(kPage, false), At(0));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 0, 0, 0));
  ASSERT_EQ(*arena.Alloc(512, false), At(kPage));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 1, 0, 0));
  ASSERT_EQ(*arena.Alloc(kPage, false), At(kPage + 512));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 1, 1, 0));
  ASSERT_TRUE(arena.Free(At(kPage), false));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 1, 1, 0)) << "the other one lies on it, too";
  ASSERT_TRUE(arena.Free(At(kPage + 512), false));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 0, 0, 0));
  ASSERT_EQ(*arena.Alloc(3 * kPage, false), At(kPage));
  EXPECT_THAT(Pages(arena), ElementsAre(1, 1, 1, 1));
}

TEST(Arena, AFreedPageIsZeroWhenItIsUsedAgainAndItsNeighboursStay) {
  Arena arena(3 * kPage);
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(arena.Alloc(kPage, false));
  for (uint64_t n = 0; n < 3; ++n) {
    *arena.Host(At(n * kPage)) = std::byte{1};
    *arena.Host(At(n * kPage + kPage - 1)) = std::byte{2};
  }
  ASSERT_TRUE(arena.Free(At(kPage), false));
  ASSERT_EQ(*arena.Alloc(kPage, false), At(kPage));
  EXPECT_EQ(*arena.Host(At(kPage - 1)), std::byte{2});
  EXPECT_EQ(*arena.Host(At(kPage)), std::byte{0});
  EXPECT_EQ(*arena.Host(At(2 * kPage - 1)), std::byte{0});
  EXPECT_EQ(*arena.Host(At(2 * kPage)), std::byte{1});
}

struct Range {
  uint64_t offset, asked;
  uint8_t pinned = 0;
};
StateFields Blocks(uint64_t bytes, std::initializer_list<Range> ranges) {
  StateFields fields;
  fields.U64(bytes).U64(ranges.size());
  for (const Range& r : ranges) fields.U64(r.offset).U64(r.asked).U8(r.pinned);
  return fields;
}

TEST(ArenaState, AllocationsThatCannotBeAreRefused) {
  struct Case {
    StateFields fields;
    const char* text;  // "": it can be
  };
  const Case cases[] = {
      {Blocks(kPage, {}), ""},
      {Blocks(kPage, {{0, kPage}}), ""},
      {Blocks(kPage, {{0, 1}, {512, 513}, {1536, 1, 1}}), ""},
      {Blocks(kPage, {{kPage - 512, 512}}), ""},
      {Blocks(kPage, {{kPage - 512, 1}}), ""},
      {Blocks(2 * kPage, {}), "of a device with 4194304 bytes of memory, this one has 2097152"},
      {Blocks(kPage, {{kPage, 1}}), "bad place of an allocation"},
      {Blocks(kPage, {{0, kPage + 1}}), "bad size of an allocation"},
      {Blocks(kPage, {{kPage - 512, 513}}), "bad size of an allocation"},
      {Blocks(kPage, {{0, 1, 2}}), "bad kind of an allocation"},
      {Blocks(kPage, {{511, 1}}), "bad allocation (0x1ff)"},
      {Blocks(kPage, {{513, 1}}), "bad allocation (0x201)"},
      {Blocks(kPage, {{0, 0}}), "bad allocation (0x0)"},
      {Blocks(kPage, {{0, 513}, {512, 1}}), "bad allocation (0x200)"},
      {Blocks(kPage, {{512, 1}, {0, 1}}), "bad allocation (0x0)"},
      {Blocks(kPage, {{512, 1}, {512, 1}}), "bad allocation (0x200)"},
      {StateFields().U64(kPage).U64(kPage / 512 + 1), "bad number of allocations (0x1001)"},
      {StateFields().U64(kPage).U64(kPage / 512), "it ends after 16 bytes"},
  };
  for (size_t n = 0; n < std::size(cases); ++n) {
    Arena arena(kPage);
    const GpuError error = ErrorOfReading(cases[n].fields.bytes(), [&](StateReader& in) { arena.LoadBlocks(in); });
    if (*cases[n].text == '\0') {
      EXPECT_EQ(error.text, "") << n;
    } else {
      EXPECT_THAT(error.text, HasSubstr(cases[n].text)) << n;
    }
  }
}

TEST(ArenaState, WhatIsBetweenAllocationsIsFree) {
  Arena arena(kPage);
  const auto fields = Blocks(kPage, {{512, 600, 1}, {2048, 512}, {kPage - 1024, 512}});
  ASSERT_EQ(ErrorOfReading(fields.bytes(), [&](StateReader& in) { arena.LoadBlocks(in); }).text, "");
  EXPECT_THAT(arena.Pinned(), ElementsAre(std::pair(Raw(At(512)), 600)));
  EXPECT_TRUE(arena.Contains(At(512), 600));
  EXPECT_FALSE(arena.Contains(At(512), 601));
  EXPECT_EQ(*arena.Alloc(1024, false), At(2560)) << "neither before the first nor before the second is room for it";
  EXPECT_EQ(*arena.Alloc(512, false), At(0));
  EXPECT_EQ(*arena.Alloc(512, false), At(1536));
  EXPECT_EQ(*arena.Alloc(kPage - 1024 - 3584, false), At(3584));
  EXPECT_EQ(*arena.Alloc(512, false), At(kPage - 512));
  EXPECT_FALSE(arena.Alloc(1, false));
}

TEST(ArenaState, ContentsAreThoseOfPagesWithAllocations) {
  Arena arena(3 * kPage);
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(arena.Alloc(kPage, false));
  ASSERT_TRUE(arena.Free(At(kPage), false));
  *arena.Host(At(5000)) = std::byte{7};
  *arena.Host(At(3 * kPage - 1)) = std::byte{8};
  const auto blocks = Written([&](StateWriter& out) { arena.SaveBlocks(out); });
  const auto contents = Written([&](StateWriter& out) { arena.SaveContents(out); });
  EXPECT_EQ(contents.size(), 2 * (8 + 4096 + 8));
  Arena other(3 * kPage);
  ASSERT_EQ(ErrorOfReading(blocks, [&](StateReader& in) { other.LoadBlocks(in); }).text, "");
  EXPECT_THAT(Pages(other), ElementsAre(1, 0, 1));
  ASSERT_EQ(ErrorOfReading(contents, [&](StateReader& in) { other.LoadContents(in); }).text, "");
  EXPECT_EQ(*other.Host(At(5000)), std::byte{7});
  EXPECT_EQ(*other.Host(At(3 * kPage - 1)), std::byte{8});
}

TEST(PinnedBlocks, EachHasOneOwnerThatKnowsItsSize) {
  Arena arena(kPage);
  const GpuVa first = *arena.Alloc(600, true);
  const GpuVa second = *arena.Alloc(512, true);
  const GpuVa other = *arena.Alloc(512, false);
  PinnedBlocks pinned(arena);
  EXPECT_FALSE(pinned.Take(first, 599));
  EXPECT_FALSE(pinned.Take(first, 1024)) << "as it was asked for";
  EXPECT_FALSE(pinned.Take(other, 512));
  EXPECT_TRUE(pinned.Take(first, 600));
  EXPECT_FALSE(pinned.Take(first, 600));
  EXPECT_FALSE(pinned.all_taken());
  EXPECT_TRUE(pinned.Take(second, 512));
  EXPECT_TRUE(pinned.all_taken());
}

}  // namespace
}  // namespace vgpud::soft
