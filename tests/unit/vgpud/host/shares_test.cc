// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/shares.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
  EXPECT_FALSE(rates.TryTake(kC, 1, kStart));
  EXPECT_TRUE(rates.TryTake(kC, 1, kStart + 10ms));
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
