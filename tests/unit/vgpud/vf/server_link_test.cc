// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/server_link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

namespace vgpud::daemon {
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

TEST(ServerLinkTest, OneThatWasSlowedDownIsAskedAgainWhenItHasBeenRead) {
  Bed bed;
  constexpr size_t kAllAtOnce = 100;
  size_t sent = 0;
  while (bed.link.report().throttled == 0) {  // a slow machine lets some through for the time that it takes
    for (size_t i = 0; i < kAllAtOnce + 2; ++i)
      ASSERT_TRUE(SendStruct(bed.pair.b.get(), vf_link::Executor{Kind::kNeedExecutor, 0, 1, 0, 0}));
    sent += kAllAtOnce + 2;
    while (bed.seen.size() < sent) bed.Run(5ms);
  }
  bed.link.Watch();
  auto asked = ReceiveMessage(bed.pair.b.get());
  for (int tries = 0; tries < 100 && !asked; ++tries) {
    bed.Run(50ms);
    asked = ReceiveMessage(bed.pair.b.get());
  }
  ASSERT_TRUE(asked);
  EXPECT_EQ(Kind::kPing, asked->As<vf_link::Ping>()->kind);
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

struct KindRow {
  Kind kind;
  size_t bytes;
  size_t fds;
};
constexpr KindRow kKinds[] = {{Kind::kHello, 8, 0},         {Kind::kNeedExecutor, 24, 0}, {Kind::kChannelClosed, 24, 0},
                              {Kind::kKillExecutor, 24, 0}, {Kind::kClient, 8, 0},        {Kind::kUsage, 24, 0},
                              {Kind::kEvents, 160, 0},      {Kind::kWatched, 8, 1},       {Kind::kQuotasSet, 32, 0}};

TEST(ServerLinkTest, EachKindHasItsSizeAndItsDescriptors) {
  for (const KindRow& row : kKinds)
    for (const int more : {-4, 0, 4})
      for (const size_t fds : {0u, 1u, 2u}) {
        Bed bed;
        std::vector<std::byte> message(row.bytes + static_cast<size_t>(more));
        std::memcpy(message.data(), &row.kind, sizeof row.kind);
        const UniqueFd fd = *MakeEventFd();
        const int all[] = {fd.get(), fd.get()};
        ASSERT_TRUE(SendMessage(bed.pair.b.get(), message, std::span{all, fds}));
        bed.Run(2ms);
        const bool good = more == 0 && fds == row.fds;
        EXPECT_EQ(good ? std::vector{row.kind} : std::vector<Kind>{}, bed.seen) << static_cast<int>(row.kind);
        EXPECT_EQ(good, bed.lost.empty()) << static_cast<int>(row.kind) << " " << more << " " << fds << bed.lost;
      }
}

TEST(ServerLinkTest, AMessageThatIsRefusedEndsTheLink) {
  EventLoop loop;
  SocketPair pair = *MakeSeqpacketPair();
  int seen = 0;
  std::vector<std::string> lost;
  ServerLink link{loop,
                  "a",
                  std::move(pair.a),
                  ::getpid(),
                  kDefaultEventBudgets,
                  {.on_message = [&](Kind, const Message&) -> Result<void> {
                     return ++seen == 2 ? Fail(std::errc::bad_message, "no") : Result<void>{};
                   },
                   .on_lost = [&](const std::string& why) { lost.push_back(why); }}};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(SendStruct(pair.b.get(), vf_link::Client{}));
  auto stop = loop.Timer([&] { loop.Stop(); });
  stop->Arm(5ms);
  loop.Run();
  EXPECT_EQ(2, seen);
  EXPECT_EQ(std::vector<std::string>{"vgpud-vf broke the link protocol: no"}, lost);
  EXPECT_EQ(0u, link.report().unanswered_ns);
}

TEST(ServerLinkTest, TheRightAnswerIsTheLastQuestion) {
  Bed bed;
  bed.link.Watch();
  bed.Run(2ms);
  auto asked = ReceiveMessage(bed.pair.b.get());
  ASSERT_TRUE(asked);
  const auto ping = *asked->As<vf_link::Ping>();
  EXPECT_EQ(Kind::kPing, ping.kind);
  EXPECT_EQ(1u, ping.sequence);
  EXPECT_GT(bed.link.report().unanswered_ns, 0u);
  ASSERT_TRUE(SendStruct(bed.pair.b.get(), vf_link::Ping{Kind::kPong, 0, 2}));
  bed.Run(2ms);
  EXPECT_EQ("vgpud-vf broke the link protocol: answer to a question that was not asked", bed.lost);
}

TEST(ServerLinkTest, AnAnswerToTheVgpudBeforeIsNoAnswerToThisOne) {
  auto pair = *MakeSeqpacketPair();
  EventLoop loop;
  std::string lost;
  ServerLink link{loop,
                  "a",
                  std::move(pair.a),
                  ::getpid(),
                  kDefaultEventBudgets,
                  {.on_message = [](vf_link::Kind, const Message&) { return Result<void>{}; },
                   .on_lost =
                       [&](const std::string& why) {
                         lost = why;
                         loop.Stop();
                       }},
                  1000};
  const auto stop = loop.Timer([&] { loop.Stop(); });
  for (const uint64_t sequence : {3, 1000}) {
    ASSERT_TRUE(SendStruct(pair.b.get(), vf_link::Ping{Kind::kPong, 0, sequence}));
    stop->Arm(2ms);
    loop.Run();
    EXPECT_EQ("", lost) << sequence;
  }
  ASSERT_TRUE(SendStruct(pair.b.get(), vf_link::Ping{Kind::kPong, 0, 1002}));
  loop.Run();
  EXPECT_EQ("vgpud-vf broke the link protocol: answer to a question that was not asked", lost);
}

TEST(ServerLinkTest, AtFirstNothingIsToBeReported) {
  const ServerReport fresh;
  EXPECT_EQ(0u, fresh.throttled + fresh.throttled_ns + fresh.unanswered_ns + fresh.hangs + fresh.log_lines_dropped);
  Bed bed;
  const ServerReport report = bed.link.report();
  EXPECT_EQ(0u, report.throttled + report.throttled_ns + report.unanswered_ns + report.hangs);
}

TEST(LinkBudgetTest, OpensMessagesAndFaultsHaveTheirRates) {
  EventBudgets events{};
  events[static_cast<size_t>(GuardedEvent::kOpen)] = 50;
  events[static_cast<size_t>(GuardedEvent::kFault)] = 20;
  // How long it is not read after so many at once.
  const auto wait = [&](void (LinkBudget::*count)(TimePoint), int times) {
    LinkBudget budget(events, kStart);
    for (int i = 0; i < times; ++i) (budget.*count)(kStart);
    return std::chrono::duration<double>(budget.Wait(kStart)).count();
  };
  EXPECT_EQ(0, wait(&LinkBudget::CountOpen, 100));
  EXPECT_NEAR(1.0 / 55, wait(&LinkBudget::CountOpen, 101), 1e-6);
  EXPECT_NEAR(1.0, wait(&LinkBudget::CountOpen, 155), 1e-6);
  EXPECT_EQ(0, wait(&LinkBudget::CountFault, 40));
  EXPECT_NEAR(1.0 / 22, wait(&LinkBudget::CountFault, 41), 1e-6);
  EXPECT_EQ(0, wait(&LinkBudget::CountMessage, 1'200));
  EXPECT_NEAR(1.0 / 1'200, wait(&LinkBudget::CountMessage, 1'201), 1e-6);
  events[static_cast<size_t>(GuardedEvent::kOpen)] = 1;
  EXPECT_NEAR(0.5, wait(&LinkBudget::CountOpen, 3), 1e-6) << "a tenth more is at least one";
  events[static_cast<size_t>(GuardedEvent::kOpen)] = 11;
  EXPECT_NEAR(1.0 / 13, wait(&LinkBudget::CountOpen, 23), 1e-6);
  events[static_cast<size_t>(GuardedEvent::kOpen)] = 0;
  EXPECT_EQ(0, wait(&LinkBudget::CountOpen, 10'000)) << "0 is no limit";
  EXPECT_EQ(0, wait(&LinkBudget::CountMessage, 10'000));
}

}  // namespace
}  // namespace vgpud::daemon
