// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/waiting_room.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vgpud::daemon {
namespace {

// GPUs "a" and "b" with so many places.
struct Hotel {
  std::map<std::string, int> free{{"a", 0}, {"b", 0}};
  std::vector<std::string> came;  // "NAME on GPU"
  WaitingRoom room{{"a", "b"}};

  std::optional<uint64_t> Enter(const std::string& name, uint8_t priority, int places = 1,
                                const std::string& gpu = "") {
    return room.Enter({priority, [gpu](const std::string& each) { return gpu.empty() || each == gpu; },
                       [this, name, places, gpu](const WaitingRoom::Gpus& taken) {
                         for (auto& [each, left] : free) {
                           if ((!gpu.empty() && each != gpu) || taken.contains(each) || left < places) continue;
                           left -= places;
                           came.push_back(name + " on " + each);
                           return true;
                         }
                         return false;
                       }});
  }
};
using Came = std::vector<std::string>;

TEST(WaitingRoom, ByPriorityThenInOrder) {
  Hotel hotel;
  hotel.Enter("first", 1);
  hotel.Enter("second", 1);
  hotel.Enter("urgent", 3);
  hotel.room.LookAgain();
  EXPECT_EQ(Came{}, hotel.came);
  hotel.free["a"] = 2;
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"urgent on a", "first on a"}), hotel.came);
  EXPECT_EQ(1u, hotel.room.size());
}

TEST(WaitingRoom, SmallOnesDoNotOvertakeALargeOneWhereItCouldGo) {
  Hotel hotel;
  hotel.Enter("large", 1, 3, "a");
  hotel.Enter("small", 1, 1, "a");
  hotel.Enter("elsewhere", 0, 1, "b");
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
  hotel.Enter("small", 1);
  hotel.free["b"] = 1;
  hotel.room.LookAgain();
  EXPECT_EQ(Came{}, hotel.came);
  hotel.room.Leave(*large);
  hotel.room.LookAgain();
  EXPECT_EQ((Came{"small on b"}), hotel.came);
  EXPECT_EQ(0u, hotel.room.size());
}

TEST(WaitingRoom, IsBounded) {
  Hotel hotel;
  for (size_t i = 0; i < WaitingRoom::kMost; ++i) EXPECT_TRUE(hotel.Enter("some", 1));
  EXPECT_FALSE(hotel.Enter("one more", 3));
  hotel.free["a"] = 1;
  hotel.room.LookAgain();
  EXPECT_TRUE(hotel.Enter("one more", 3));
}

TEST(WaitingRoom, LookingAgainFromWithinATry) {
  WaitingRoom room({"a"});
  int tries = 0;
  const auto wants = [](const std::string&) { return true; };
  room.Enter({1, wants, [&](const WaitingRoom::Gpus&) {
                room.LookAgain();
                return true;
              }});
  room.Enter({0, wants, [&](const WaitingRoom::Gpus&) { return ++tries == 2; }});
  room.LookAgain();
  EXPECT_EQ(2, tries);
  EXPECT_EQ(0u, room.size());
}

}  // namespace
}  // namespace vgpud::daemon
