// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>

namespace vgpud::daemon {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

GpuRoom Room(const std::string& name, uint64_t gib, uint64_t promised_gib, uint32_t vfs, std::optional<int> node = {}) {
  GpuRoom room;
  room.name = name;
  room.vram_bytes = gib * kGiB;
  room.promised_bytes = promised_gib * kGiB;
  room.vfs = vfs;
  room.node = node;
  return room;
}

GpuRoom Full(GpuRoom room, const std::string& why = "full") {
  room.refusal = why;
  return room;
}

struct Choice {
  std::string gpu;
  std::string why;
  bool operator==(const Choice&) const = default;
};
void PrintTo(const Choice& choice, std::ostream* out) { *out << choice.gpu << ": " << choice.why; }
Choice Chosen(Placement how, const std::vector<GpuRoom>& rooms, std::optional<int> node = {}) {
  const auto placed = Place(how, node, rooms);
  return placed ? Choice{rooms[placed->gpu].name, placed->why} : Choice{"", placed.error().context};
}

const std::vector<GpuRoom> kThree = {Room("gpu0", 16, 12, 1, 0), Room("gpu1", 16, 4, 3, 1), Room("gpu2", 16, 0, 0, 1)};

TEST(Placement, SpreadTakesTheFewestVfs) {
  EXPECT_EQ((Choice{"gpu2", "fewest VFs (0)"}), Chosen(Placement::kSpread, kThree));
}

TEST(Placement, PackLeavesEmptyOnesEmpty) {
  EXPECT_EQ((Choice{"gpu0", "the fullest with room (1 VFs, VRAM 4GiB of 16GiB)"}), Chosen(Placement::kPack, kThree));
  EXPECT_EQ("gpu2", Chosen(Placement::kPack, {Full(kThree[0]), Full(kThree[1]), kThree[2]}).gpu);
}

TEST(Placement, MostFreeVram) {
  EXPECT_EQ((Choice{"gpu1", "most free VRAM (12GiB of 16GiB)"}),
            Chosen(Placement::kMostFreeVram, {kThree[0], kThree[1], Full(kThree[2])}));
}

TEST(Placement, NumaPrefersTheNodeOfTheVm) {
  EXPECT_EQ((Choice{"gpu0", "at NUMA node 0, most free VRAM (4GiB of 16GiB)"}), Chosen(Placement::kNuma, kThree, 0));
  EXPECT_EQ("gpu2", Chosen(Placement::kNuma, kThree, 1).gpu);
  EXPECT_EQ((Choice{"gpu2", "no GPU at NUMA node 0 has room, this one is at node 1: most free VRAM (16GiB of 16GiB)"}),
            Chosen(Placement::kNuma, {Full(kThree[0]), kThree[1], kThree[2]}, 0));
}

TEST(Placement, WithoutALimitWhatIsPromisedCounts) {
  const std::vector<GpuRoom> rooms = {Room("gpu0", 0, 5, 1), Room("gpu1", 0, 2, 1)};
  EXPECT_EQ((Choice{"gpu1", "most free VRAM (2GiB promised, no limit)"}), Chosen(Placement::kMostFreeVram, rooms));
  EXPECT_EQ("gpu0", Chosen(Placement::kPack, rooms).gpu);
}

TEST(Placement, TheOnlyGpuIsNoChoice) {
  EXPECT_EQ((Choice{"gpu0", "the only GPU"}), Chosen(Placement::kNuma, {kThree[0]}, 5));
}

TEST(Placement, ARefusalHasTheFiguresOfEachGpu) {
  GpuRoom first = Full(kThree[0], "wants 8GiB");
  first.guaranteed = 0.25;
  EXPECT_EQ((Choice{"",
                    "no GPU has room: gpu0 (4GiB of 16GiB free, 1 VFs, 25% guaranteed): wants 8GiB; gpu1 "
                    "(12GiB of 16GiB free, 3 VFs, 0% guaranteed): too much guaranteed"}),
            Chosen(Placement::kSpread, {first, Full(kThree[1], "too much guaranteed")}));
}

TEST(Placement, NamesAreFoundAgain) {
  for (const std::string& name : PlacementNames()) EXPECT_EQ(name, NameOf(*FindPlacement(name)));
  EXPECT_EQ("there is no placement \"spred\": did you mean spread?", FindPlacement("spred").error().context);
}

std::vector<GpuRoom> AnyRooms() {
  const auto count = *rc::gen::inRange<size_t>(1, 9);
  std::vector<GpuRoom> rooms;
  for (size_t i = 0; i < count; ++i) {
    // Small numbers: many are as good as others.
    GpuRoom room = Room("gpu" + std::to_string(i), *rc::gen::inRange<uint64_t>(0, 4), *rc::gen::inRange<uint64_t>(0, 4),
                        *rc::gen::inRange<uint32_t>(0, 4));
    if (*rc::gen::arbitrary<bool>()) room.node = *rc::gen::inRange(0, 3);
    if (*rc::gen::inRange(0, 3) == 0) room.refusal = "no";
    rooms.push_back(room);
  }
  return rooms;
}
Placement AnyPlacement() { return *FindPlacement(*rc::gen::elementOf(PlacementNames())); }
std::optional<int> AnyNode() {
  return *rc::gen::arbitrary<bool>() ? std::optional<int>(*rc::gen::inRange(0, 3)) : std::nullopt;
}
bool AnyTakes(const std::vector<GpuRoom>& rooms) {
  return std::any_of(rooms.begin(), rooms.end(), [](const GpuRoom& room) { return room.takes(); });
}

RC_GTEST_PROP(PlacementProperty, OneThatTakesItExactlyIfThereIsOne, ()) {
  const auto rooms = AnyRooms();
  const auto placed = Place(AnyPlacement(), AnyNode(), rooms);
  RC_ASSERT(placed.has_value() == AnyTakes(rooms));
  if (placed) RC_ASSERT(rooms.at(placed->gpu).takes());
}

// By words of each policy, not by its key.
RC_GTEST_PROP(PlacementProperty, NobodyWhoTakesItIsBetter, ()) {
  const auto rooms = AnyRooms();
  const auto how = AnyPlacement();
  const auto node = AnyNode();
  const auto placed = Place(how, node, rooms);
  if (!placed) return;
  const GpuRoom& best = rooms[placed->gpu];
  const bool limits = std::all_of(rooms.begin(), rooms.end(), [](const GpuRoom& r) { return r.vram_bytes != 0; });
  for (const GpuRoom& other : rooms) {
    if (!other.takes()) continue;
    if (how == Placement::kSpread) RC_ASSERT(best.vfs <= other.vfs);
    if (how == Placement::kPack && other.vfs != 0) RC_ASSERT(best.vfs != 0u);
    if (how == Placement::kPack && limits && other.vfs != 0) RC_ASSERT(best.free_bytes() <= other.free_bytes());
    if (how == Placement::kMostFreeVram && limits) RC_ASSERT(best.free_bytes() >= other.free_bytes());
    if (how == Placement::kNuma && node && other.node == node) RC_ASSERT(best.node == node);
    if (how == Placement::kNuma && limits && best.node == other.node)
      RC_ASSERT(best.free_bytes() >= other.free_bytes());
  }
}

RC_GTEST_PROP(PlacementProperty, GpusThatRefuseChangeNothing, ()) {
  const auto rooms = AnyRooms();
  const auto how = AnyPlacement();
  const auto node = AnyNode();
  std::vector<GpuRoom> without;
  std::copy_if(rooms.begin(), rooms.end(), std::back_inserter(without), [](const GpuRoom& r) { return r.takes(); });
  const auto placed = Place(how, node, rooms);
  if (!placed) return;
  RC_ASSERT(without[Place(how, node, without)->gpu].name == rooms[placed->gpu].name);
}

}  // namespace
}  // namespace vgpud::daemon
