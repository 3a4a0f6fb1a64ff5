// SPDX-License-Identifier: Apache-2.0
#include "vgpud/server_link.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace vgpud {
namespace {

using namespace std::chrono_literals;
using vf_link::Kind;

constexpr TimePoint kStart{10s};

TEST(LinkBudgetTest, AnHonestServerAtItsLimitIsNeverSlowedDown) {
  const EventBudgets events = kDefaultEventBudgets;
  LinkBudget budget(events, kStart);
  const uint32_t opens = events[static_cast<size_t>(GuardedEvent::kOpen)];
  TimePoint now = kStart;
  for (uint32_t i = 0; i < 2 * opens; ++i) budget.CountOpen(now);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(0ns, budget.Wait(now)) << i;
    now += Ns{1s} / opens;
    budget.CountOpen(now);
    for (int message = 0; message < 4; ++message) budget.CountMessage(now);
  }
}

TEST(LinkBudgetTest, AStormOfOpensIsReadAtTheRateOfTheBudget) {
  LinkBudget budget(kDefaultEventBudgets, kStart);
  TimePoint now = kStart;
  uint32_t opens = 0;
  while (now < kStart + 10s) {
    now += budget.Wait(now);
    budget.CountOpen(now);
    ++opens;
  }
  EXPECT_GE(opens, 550u);
  EXPECT_LE(opens, 100u + 550u + 2u);
}

TEST(LinkBudgetTest, DyingExecutorsSlowTheLinkDownToo) {
  LinkBudget budget(kDefaultEventBudgets, kStart);
  for (int i = 0; i < 40; ++i) budget.CountFault(kStart);
  EXPECT_EQ(0ns, budget.Wait(kStart));
  for (int i = 0; i < 22; ++i) budget.CountFault(kStart);
  EXPECT_NEAR(1.0, std::chrono::duration<double>(budget.Wait(kStart)).count(), 0.01);
}

// A server whose end the test holds.
struct Bed {
  EventLoop loop;
  SocketPair pair = *MakeSeqpacketPair();
  std::vector<Kind> seen;
  std::string lost;
  ServerLink link{loop,
                  "a",
                  std::move(pair.a),
                  ::getpid(),
                  kDefaultEventBudgets,
                  {.on_message =
                       [this](Kind kind, const Message&) {
                         seen.push_back(kind);
                         return Result<void>{};
                       },
                   .on_lost = [this](const std::string& why) { lost = why; }}};
  void Run(Ns time) {
    auto stop = loop.Timer([&] { loop.Stop(); });
    stop->Arm(time);
    loop.Run();
  }
};

struct BadMessage {
  const char* name;
  std::vector<uint32_t> words;
  bool with_fd;
};

TEST(ServerLinkTest, WhatIsNotAMessageOfItsKindEndsTheLink) {
  const BadMessage bad[] = {
      {"nothing", {}, true},
      {"half a kind", {99}, false},
      {"an unknown kind", {99, 0, 0, 0}, false},
      {"one of ours", {static_cast<uint32_t>(Kind::kConfigure), 0}, false},
      {"too short", {static_cast<uint32_t>(Kind::kUsage), 0}, false},
      {"too long", {static_cast<uint32_t>(Kind::kHello), 0, 0}, true},
      {"without its descriptor", {static_cast<uint32_t>(Kind::kWatched), 0}, false},
      {"with a descriptor too many", {static_cast<uint32_t>(Kind::kClient), 1}, true},
      {"an answer that nobody asked for", {static_cast<uint32_t>(Kind::kPong), 0, 7, 0}, false},
  };
  for (const BadMessage& message : bad) {
    Bed bed;
    const UniqueFd fd = *MakeEventFd();
    const int fds[] = {fd.get()};
    const auto bytes = std::as_bytes(std::span{message.words});
    (void)SendMessage(bed.pair.b.get(), bytes, std::span{fds, message.with_fd ? 1u : 0u});
    bed.Run(5ms);
    EXPECT_TRUE(bed.seen.empty()) << message.name;
    if (message.words.empty()) continue;  // an empty message is the end of the connection
    EXPECT_NE(std::string::npos, bed.lost.find("broke the link protocol")) << message.name << ": " << bed.lost;
  }
}

TEST(ServerLinkTest, WhenAllDescriptorsHaveComeTheKernelTakesNoMore) {
  Bed bed;
  if (const SocketPair probe = *MakeSeqpacketPair(); !RefuseFds(probe.a.get())) GTEST_SKIP() << "before Linux 6.16";
  bed.link.RefuseFds();
  const UniqueFd fd = *MakeEventFd();
  const int fds[] = {fd.get()};
  EXPECT_FALSE(SendStruct(bed.pair.b.get(), vf_link::Client{}, fds));
  EXPECT_TRUE(SendStruct(bed.pair.b.get(), vf_link::Client{}));
  bed.Run(5ms);
  EXPECT_EQ(std::vector{Kind::kClient}, bed.seen);
  EXPECT_EQ("", bed.lost);
}

TEST(ServerLinkTest, AHangUpIsNoBreachOfTheProtocol) {
  for (const bool unread : {false, true}) {
    Bed bed;
    if (unread) bed.link.Watch();
    bed.Run(5ms);
    bed.pair.b.Reset();  // with a question in its queue, reading fails with ECONNRESET
    bed.Run(5ms);
    EXPECT_EQ("", bed.lost) << unread;
  }
}

TEST(ServerLinkTest, ItIsReadNoFasterThanItsBudgetAndNothingIsLost) {
  Bed bed;
  vf_link::Executor open{Kind::kNeedExecutor, 0, 1, 0, 0};
  auto writer = bed.loop.OnWritable(bed.pair.b.get(), [&] { (void)SendStruct(bed.pair.b.get(), open); });
  bed.Run(300ms);
  EXPECT_GE(bed.seen.size(), 100u);
  EXPECT_LT(bed.seen.size(), 150u) << "100 at once, then 55 per second";
  EXPECT_GT(bed.link.report().throttled, 0u);
  EXPECT_EQ("", bed.lost);
}

TEST(ServerLinkTest, OneThatAnswersIsKept) {
  Bed bed;
  bed.link.Watch();
  int answered = 0;
  auto server = bed.loop.OnReadable(bed.pair.b.get(), [&] {
    const auto message = ReceiveMessage(bed.pair.b.get());
    if (!message) return;
    auto ping = *message->As<vf_link::Ping>();
    ping.kind = Kind::kPong;
    ASSERT_TRUE(SendStruct(bed.pair.b.get(), ping));
    ++answered;
  });
  bed.Run(50ms);
  EXPECT_EQ(1, answered);
  EXPECT_EQ("", bed.lost);
  EXPECT_EQ(0u, bed.link.report().unanswered_ns);
}

}  // namespace
}  // namespace vgpud
