// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/shares.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{100s};
const Sharer kRoot{"user 0", true}, kA{"user 1"}, kB{"user 2"}, kC{"user 3"};

TEST(PlacesTest, NobodyHasMoreThanItsShareAndSomeAreKeptForRoot) {
  Places places({.what = "seats", .each = 2, .all = 5, .reserved = 2});
  std::vector<Places::Place> held;
  const auto take = [&](const Sharer& who) {
    if (auto place = places.Take(who)) held.push_back(std::move(place));
    return places.held(who);
  };
  EXPECT_EQ(1u, take(kA));
  EXPECT_EQ(2u, take(kA));
  EXPECT_EQ(2u, take(kA));
  EXPECT_EQ("user 1 has 2 seats already, the most that one may have: wait until one of them ends", places.WhyNone(kA));
  EXPECT_FALSE(places.full());
  EXPECT_EQ(1u, take(kB));
  EXPECT_TRUE(places.full());
  EXPECT_EQ(0u, take(kC));
  EXPECT_EQ("there are 3 seats already, the most that all but root may have together: try again later",
            places.WhyNone(kC));
  EXPECT_EQ(1u, take(kRoot));
  EXPECT_EQ(2u, take(kRoot));
  EXPECT_EQ(2u, take(kRoot)) << "all are taken";
  held.pop_back();
  EXPECT_EQ(2u, take(kRoot));
  EXPECT_EQ(0u, take(kC)) << "what root gives back is root's";
  held.erase(held.begin());
  EXPECT_EQ(1u, take(kC));
}

TEST(PlacesTest, APlaceOutlivesThePlaces) {
  auto places = std::make_unique<Places>(PlaceLimit{.what = "seats", .each = 2, .all = 5});
  const auto place = places->Take(kA);
  places.reset();
  EXPECT_NE(nullptr, place);
}

TEST(PlacesTest, OneThatIsLargerThanTheShareIsPossibleAlone) {
  Places bytes({.what = "bytes", .each = 10, .all = 25});
  auto large = bytes.Take(kA, 40);
  EXPECT_NE(nullptr, large);
  EXPECT_EQ(nullptr, bytes.Take(kA, 1));
  EXPECT_EQ(nullptr, bytes.Take(kB, 1));
  large.reset();
  const auto a = bytes.Take(kA, 8), b = bytes.Take(kB, 8);
  EXPECT_EQ(nullptr, bytes.Take(kA, 3));
  EXPECT_NE(nullptr, bytes.Take(kA, 2));
}

// Places of `who`, in the order in which they came; those that had to yield are null.
struct Held {
  Places& places;
  std::vector<std::pair<std::string, std::shared_ptr<Places::Place>>> all = {};
  bool Take(const Sharer& who, uint32_t count = 1, TimePoint now = kStart) {
    auto box = std::make_shared<Places::Place>();
    *box = places.TakeOrDisplace(who, count, now, [holds = box.get()] { holds->reset(); });
    if (*box == nullptr) return false;
    all.emplace_back(who.name, box);
    return true;
  }
  std::string Left() const {
    std::string names;
    for (const auto& [name, box] : all) names += *box != nullptr ? name.substr(5) : "-";
    return names;
  }
};

TEST(PlacesTest, TheOneWithMostYieldsToOneWithFewer) {
  Places places({.what = "seats", .each = 3, .all = 6, .reserved = 1});
  Held held{places};
  for (const Sharer& who : {kA, kB, kA, kB, kA}) EXPECT_TRUE(held.Take(who));
  EXPECT_EQ("12121", held.Left());
  EXPECT_FALSE(held.Take(kA)) << "has all that one may have";
  EXPECT_TRUE(held.Take(kC));
  EXPECT_EQ("-21213", held.Left()) << "the first of those of who has most";
  EXPECT_FALSE(held.Take(kC)) << "nobody has more than it would have then";
  EXPECT_FALSE(held.Take({"user 4"}) && held.Take({"user 4"}));
  EXPECT_TRUE(held.Take(kRoot)) << "which nobody yields to, as it has its own";
  EXPECT_FALSE(held.Take(kRoot));
}

TEST(PlacesTest, AnIdlePlaceYieldsToOneWithoutAny) {
  Places places({.what = "seats", .each = 2, .all = 2, .idle = 1s});
  Held held{places};
  EXPECT_TRUE(held.Take(kA) && held.Take(kB));
  EXPECT_FALSE(held.Take(kC, 1, kStart + 999ms));
  (*held.all[0].second)->used = kStart + 500ms;
  EXPECT_TRUE(held.Take(kC, 1, kStart + 1s));
  EXPECT_EQ("1-3", held.Left());
  EXPECT_FALSE(held.Take(kC, 1, kStart + 9s)) << "has one";
  EXPECT_EQ(0u, places.held(kB));
}

TEST(PlacesTest, WhatAPlaceHoldsMayTurnOutToBeMore) {
  Places bytes({.what = "bytes", .each = 10, .all = 30});
  Held held{bytes};
  EXPECT_TRUE(held.Take(kA, 4) && held.Take(kB, 4) && held.Take(kB, 4));
  EXPECT_TRUE(bytes.Resize(*held.all[0].second, 20, kStart)) << "more than one may take, not more than there is";
  EXPECT_EQ(20u, bytes.held(kA));
  EXPECT_FALSE(held.Take(kA, 1));
  EXPECT_TRUE(bytes.Resize(*held.all[1].second, 9, kStart)) << "who has most has yielded";
  EXPECT_EQ("-22", held.Left());
  EXPECT_FALSE(bytes.Resize(*held.all[2].second, 25, kStart));
  EXPECT_EQ(13u, bytes.held(kB)) << "as before";
  EXPECT_TRUE(bytes.Resize(*held.all[2].second, 0, kStart));
  EXPECT_EQ(9u, bytes.held(kB));
  held.all.clear();
  EXPECT_EQ(0u, bytes.held(kB));
}

constexpr RateLimit kLimit{
    .what = "requests", .each_per_second = 10, .each_at_once = 5, .all_per_second = 100, .all_at_once = 8};

TEST(RatesTest, EachHasItsOwnRateAndRootHasNone) {
  Rates rates(kLimit, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(rates.TryTake(kA, 1, kStart));
  EXPECT_FALSE(rates.TryTake(kA, 1, kStart));
  EXPECT_TRUE(rates.TryTake(kB, 1, kStart)) << "what one has used is nobody else's";
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(rates.TryTake(kRoot, 1, kStart));
  EXPECT_EQ(0ns, rates.Take(kRoot, 1000, kStart));
  EXPECT_FALSE(rates.TryTake(kA, 1, kStart + 99ms));
  EXPECT_TRUE(rates.TryTake(kA, 1, kStart + 100ms));
}

TEST(RatesTest, AllTogetherHaveARate) {
  Rates rates(kLimit, kStart);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(rates.TryTake(kA, 1, kStart) && rates.TryTake(kB, 1, kStart));
  EXPECT_FALSE(rates.TryTake(kA, 1, kStart));
  EXPECT_TRUE(rates.TryTake(kA, 1, kStart + 10ms));
  EXPECT_TRUE(rates.TryTake(kC, 1, kStart + 10ms)) << "has used nothing";
}

TEST(RatesTest, WhoHasUsedNothingDoesNotWaitForTheDebtsOfOthers) {
  Rates rates(kLimit, kStart);
  (void)rates.Take(kA, 1000, kStart);
  EXPECT_LT(9s, rates.Wait(kA, kStart));
  EXPECT_EQ(0ns, rates.Wait(kB, kStart));
  EXPECT_TRUE(rates.TryTake(kB, 1, kStart));
  EXPECT_LT(0ns, rates.Wait(kB, kStart)) << "has used something";
  EXPECT_FALSE(rates.TryTake(kB, 1, kStart));
  EXPECT_EQ(0ns, rates.Wait(kB, kStart + 100ms));
}

TEST(RatesTest, ThoseWhoLeaveInsteadOfWaitingMakeNoDebtsForAll) {
  Rates rates({.what = "requests", .each_per_second = 20, .each_at_once = 40, .all_per_second = 500, .all_at_once = 50},
              kStart);
  for (int user = 0; user < 200; ++user)
    for (int i = 0; i < 100; ++i) (void)rates.Take(Sharer{fmt::format("user {}", user)}, 1, kStart);
  EXPECT_EQ(0ns, rates.Take({"a polite one"}, 1, kStart)) << "has used nothing";
  EXPECT_GE(1s + 2ms, rates.Take({"a polite one"}, 1, kStart));
}

TEST(RatesTest, WhoTakesMoreThanThereIsWaits) {
  Rates rates(kLimit, kStart);
  EXPECT_EQ(0ns, rates.Take(kA, 5, kStart));
  EXPECT_EQ(200ms, rates.Take(kA, 2, kStart));
  EXPECT_EQ(100ms, rates.Wait(kA, kStart + 100ms));
  EXPECT_EQ(0ns, rates.Wait(kB, kStart));
  EXPECT_EQ(0ns, rates.Wait(kA, kStart + 200ms));
}

TEST(RatesTest, TheTableIsBoundedAndForgetsThoseAtRest) {
  Rates rates({.what = "requests", .each_per_second = 1, .each_at_once = 1, .all_per_second = 0, .all_at_once = 0},
              kStart);
  const auto user = [](size_t number) { return Sharer{fmt::format("user {}", number)}; };
  for (size_t i = 0; i < Rates::kMostSharers; ++i) EXPECT_TRUE(rates.TryTake(user(i), 1, kStart));
  EXPECT_TRUE(rates.TryTake(user(5000), 1, kStart)) << "those beyond have a share";
  EXPECT_FALSE(rates.TryTake(user(5001), 1, kStart)) << "one for all of them";
  EXPECT_EQ(Rates::kMostSharers, rates.sharers());
  EXPECT_TRUE(rates.TryTake(user(5001), 1, kStart + 1s)) << "the others are at rest";
  EXPECT_EQ(1u, rates.sharers());
}

TEST(RatesTest, ThoseThatComeOnceAreForgottenSoon) {
  Rates rates(kLimit, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(rates.TryTake(Sharer{fmt::format("vf {}", i)}, 1, kStart + i * Ns{1s}));
  EXPECT_GE(4u, rates.sharers());
}

TEST(SharerTest, IsTheUserOfAUnixSocketAndTheAddressOfAnother) {
  const SocketPair pair = *MakeSeqpacketPair();
  const Sharer own = Sharer::Peer(pair.a.get());
  EXPECT_EQ(fmt::format("user {}", ::getuid()), own.name);
  EXPECT_TRUE(own.privileged) << "vgpud's own user";
  EXPECT_EQ(::getuid(), Sharer::UserOf(pair.a.get()));
  EXPECT_EQ(::getuid() == 7, Sharer::User(7).privileged);
  EXPECT_TRUE(Sharer::User(0).privileged);
  EXPECT_EQ("an unknown user", Sharer::Peer(-1).name);
  EXPECT_FALSE(Sharer::Peer(-1).privileged);

  const UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  ASSERT_EQ(0, ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), bytes));
  ASSERT_EQ(0, ::listen(listener.get(), 1));
  ASSERT_EQ(0, ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &bytes));
  const UniqueFd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(0, ::connect(client.get(), reinterpret_cast<const sockaddr*>(&at), bytes));
  EXPECT_EQ("address 127.0.0.1", Sharer::Peer(client.get()).name);
  EXPECT_FALSE(Sharer::Peer(client.get()).privileged) << "an address is nobody's";
}

}  // namespace
}  // namespace vgpud::daemon
