// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/waiting_room.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vgpud::daemon {
namespace {

// GPUs "a" and "b" with so many places.
struct Hotel {
  std::map<std::string, int> free{{"a", 0}, {"b", 0}};
  std::vector<std::string> came;     // "NAME on GPU"
  std::vector<std::string> refused;  // while they waited
  WaitingRoom room{{"a", "b"}};

  Result<uint64_t> Enter(const std::string& name, uint8_t priority, int places = 1, const std::string& gpu = "",
                         const Sharer& whose = {"user 0", true}) {
    return room.Enter({priority, [gpu](const std::string& each) { return gpu.empty() || each == gpu; },
                       [this, name, places, gpu](const WaitingRoom::Gpus& taken) {
                         for (auto& [each, left] : free) {
                           if ((!gpu.empty() && each != gpu) || taken.contains(each) || left < places) continue;
                           left -= places;
                           came.push_back(name + " on " + each);
                           return true;
                         }
                         return false;
                       },
                       whose, [this, name] { refused.push_back(name); }});
  }
};
using Came = std::vector<std::string>;

TEST(WaitingRoom, ByPriorityThenInOrder) {
  Hotel hotel;
  (void)hotel.Enter("first", 1);
  (void)hotel.Enter("second", 1);
  (void)hotel.Enter("urgent", 3);
  hotel.room.LookAgain();
  EXPECT_EQ(Came{}, hotel.came);
  hotel.free["a"] = 2;
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"urgent on a", "first on a"}), hotel.came);
  EXPECT_EQ(1u, hotel.room.size());
}

TEST(WaitingRoom, SmallOnesDoNotOvertakeALargeOneWhereItCouldGo) {
  Hotel hotel;
  (void)hotel.Enter("large", 1, 3, "a");
  (void)hotel.Enter("small", 1, 1, "a");
  (void)hotel.Enter("elsewhere", 0, 1, "b");
  hotel.free = {{"a", 2}, {"b", 1}};
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"elsewhere on b"}), hotel.came);
  hotel.free["a"] = 4;
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"elsewhere on b", "large on a", "small on a"}), hotel.came);
}

TEST(WaitingRoom, WhoLeavesIsNotTriedAndBlocksNobody) {
  Hotel hotel;
  const auto large = hotel.Enter("large", 3, 9);
  (void)hotel.Enter("small", 1);
  hotel.free["b"] = 1;
  hotel.room.LookAgain();
  EXPECT_EQ(Came{}, hotel.came);
  hotel.room.Leave(*large);
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"small on b"}), hotel.came);
  EXPECT_EQ(0u, hotel.room.size());
}

const Sharer kTenant{"tenant a"}, kOther{"tenant b"}, kRoot{"user 0", true};

TEST(WaitingRoom, ATenantHasSoManyPlacesAndSomeAreRoots) {
  Hotel hotel;
  const PlaceLimit& limit = share_limits::kWaitingVfs;
  for (uint32_t i = 0; i < limit.each; ++i) EXPECT_TRUE(hotel.Enter("some", 1, 1, "", kTenant));
  const auto refused = hotel.Enter("one more", 3, 1, "", kTenant);
  ASSERT_FALSE(refused);
  EXPECT_EQ("tenant a has 8 VFs that wait for room already, the most that one may have: wait until one of them ends",
            refused.error().context);
  EXPECT_EQ(limit.each, hotel.room.size()) << "it does not wait";
  EXPECT_TRUE(hotel.Enter("other", 1, 1, "", kOther)) << "others have their own";
  for (uint32_t i = limit.each + 1; i < limit.all; ++i) EXPECT_TRUE(hotel.Enter("root's", 1, 1, "", kRoot));
  EXPECT_FALSE(hotel.Enter("one more", 1, 1, "", kRoot));
  hotel.free["a"] = 1;
  hotel.room.LookAgain();
  EXPECT_TRUE(hotel.Enter("one more", 3, 1, "", kRoot));
}

TEST(WaitingRoom, ATenantWithMostGivesAPlaceToOneWithFewer) {
  Hotel hotel;
  const PlaceLimit& limit = share_limits::kWaitingVfs;
  const uint32_t colluders = (limit.all - limit.reserved) / limit.each;
  for (uint32_t tenant = 0; tenant < colluders; ++tenant)
    for (uint32_t i = 0; i < limit.each; ++i)
      EXPECT_TRUE(hotel.Enter(fmt::format("{}-{}", tenant, i), 1, 1, "", {fmt::format("tenant {}", tenant)}));
  EXPECT_TRUE(hotel.Enter("polite", 1, 1, "", kOther));
  EXPECT_EQ((std::vector<std::string>{fmt::format("0-{}", limit.each - 1)}), hotel.refused) << "its last";
  EXPECT_EQ(limit.all - limit.reserved, hotel.room.size());
  EXPECT_FALSE(hotel.Enter("again", 1, 1, "", {"tenant 1"})) << "has all that one may have";
}

TEST(WaitingRoom, WhoNeedNotWaitNeedsNoPlace) {
  Hotel hotel;
  for (uint32_t i = 0; i < share_limits::kWaitingVfs.each; ++i) EXPECT_TRUE(hotel.Enter("a", 1, 1, "a", kTenant));
  hotel.free["b"] = 1;
  EXPECT_TRUE(hotel.Enter("at once", 1, 1, "b", kTenant));
  EXPECT_EQ((Came{"at once on b"}), hotel.came);
}

TEST(WaitingRoom, WhoHasToWaitDoesNotOvertake) {
  Hotel hotel;
  EXPECT_TRUE(hotel.Enter("large", 1, 3, "a", kTenant));
  hotel.free["a"] = 2;
  EXPECT_TRUE(hotel.Enter("small", 1, 1, "a", kOther));
  EXPECT_EQ(Came{}, hotel.came);
}

TEST(WaitingRoom, LookingAgainFromWithinATry) {
  WaitingRoom room({"a"});
  int tries = 0;
  const auto wants = [](const std::string&) { return true; };
  bool free = false;
  EXPECT_TRUE(room.Enter({1, wants, [&](const WaitingRoom::Gpus&) {
                            if (free) room.LookAgain();
                            return free;
                          }}));
  EXPECT_TRUE(room.Enter({0, wants, [&](const WaitingRoom::Gpus&) { return free && ++tries == 2; }}));
  free = true;
  room.LookAgain();
  EXPECT_EQ(2, tries);
  EXPECT_EQ(0u, room.size());
}

}  // namespace
}  // namespace vgpud::daemon
