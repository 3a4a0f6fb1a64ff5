// SPDX-License-Identifier: Apache-2.0
// What executors ask for on their links: VRAM, and leave to load modules.
#include <limits>

#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

class ExecutorRequestsTest : public VfRig {
 protected:
  void SetUp() override { SetControlPage(); }
  template <class T>
  void Say(const FakeExecutor& executor, const T& message) {
    ASSERT_TRUE(SendStruct(executor.socket.get(), message));
    Pump();
  }
  // How many answers to kLoadRequest have come.
  static size_t Leaves(FakeExecutor& executor) {
    executor.Drain();
    size_t leaves = 0;
    for (const Message& message : executor.messages)
      leaves += *message.As<exec_link::Kind>() == exec_link::Kind::kLoadReply ? 1 : 0;
    return leaves;
  }
  // Has vgpud-vf closed its end, as an executor is told to exit?
  static bool Ended(FakeExecutor& executor) {
    executor.Drain();
    const auto message = ReceiveMessage(executor.socket.get());
    return !message && message.error().code != std::errc::resource_unavailable_try_again;
  }
  static constexpr exec_link::Plain kLoad{exec_link::Kind::kLoadRequest};
};

TEST_F(ExecutorRequestsTest, ExecutorsHearOfNewQuotas) {
  const auto quotas = [](FakeExecutor& executor) {
    executor.Drain();
    std::vector<uint64_t> told;
    for (const Message& message : executor.messages)
      if (*message.As<exec_link::Kind>() == exec_link::Kind::kQuotas) {
        const auto each = *message.As<exec_link::Quotas>();
        told.insert(told.end(), {each.vram_bytes, each.host_memory_bytes});
      }
    return told;
  };
  const auto first = OpenWithExecutor(0);
  EXPECT_EQ(std::vector<uint64_t>{}, quotas(*first)) << "it was started with those of now";
  ASSERT_TRUE(ledgers.Resize(7 << 20, 9 << 20));
  channels->QuotasChanged();
  Pump();
  EXPECT_EQ((std::vector<uint64_t>{7 << 20, 9 << 20}), quotas(*first));
  const auto second = OpenWithExecutor(1);
  EXPECT_EQ((std::vector<uint64_t>{7 << 20, 9 << 20}), quotas(*second)) << "it may have been started before";
  channels->NewExecutorsTakeNoQuotas();
  const auto third = OpenWithExecutor(2);
  EXPECT_EQ(std::vector<uint64_t>{}, quotas(*third));
}

TEST_F(ExecutorRequestsTest, VramIsGrantedUpToTheQuota) {
  const auto executor = OpenWithExecutor(0);
  executor->Drain();
  executor->messages.clear();
  const auto ask = [&](int64_t delta) {
    EXPECT_TRUE(SendStruct(executor->socket.get(), exec_link::Vram{exec_link::Kind::kVramRequest, 0, delta, 0}));
    Pump();
    executor->Drain();
    return *executor->messages.back().As<exec_link::Vram>();
  };
  EXPECT_EQ(1u, ask(1 << 29).ok);
  EXPECT_EQ(1u, ask(1 << 29).ok);
  EXPECT_EQ(0u, ask(1).ok);
  EXPECT_EQ(0u, ask(std::numeric_limits<int64_t>::max()).ok);
  EXPECT_EQ(0u, ask(std::numeric_limits<int64_t>::min()).ok);
  EXPECT_EQ(1u, ask(-(1 << 29)).ok);
  EXPECT_EQ(0u, ask(-(1 << 30)).ok) << "more than it holds";
  EXPECT_EQ(1ull << 29, ask(0).vf_used);
}

TEST_F(ExecutorRequestsTest, NoOrderOfRequestsMakesTheVramAccountWrap) {
  const auto first = OpenWithExecutor(0);
  const auto second = OpenWithExecutor(1);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const int64_t quota = 1 << 30;
  for (const int64_t delta :
       {kMost, kLeast, quota, int64_t{1}, -quota - 1, kLeast + 1, -int64_t{1}, kMost, quota / 2, kLeast}) {
    for (const auto* executor : {first.get(), second.get()}) {
      ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Vram{exec_link::Kind::kVramRequest, 0, delta, 0}));
      Pump();
      ASSERT_LE(ledgers.vram.used(), ledgers.vram.quota()) << delta;
    }
  }
  first->Die();
  second->Die();
  Pump();
  EXPECT_EQ(0u, ledgers.vram.used());
}

// What it has asked for and nobody has read when it dies is not read any more, and nothing stays on its account, nor on
// that of the channel's next executor.
TEST_F(ExecutorRequestsTest, ADeadExecutorGetsNoMore) {
  constexpr exec_link::Kind kKinds[] = {exec_link::Kind::kVramRequest, exec_link::Kind::kHostRequest};
  for (const bool before : {true, false}) {
    const auto executor = OpenWithExecutor(0);
    const auto ask = [&] {
      for (int i = 0; i < 20; ++i)
        for (const exec_link::Kind kind : kKinds)
          ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Vram{kind, 0, 4096, 0}));
    };
    if (before) ask();
    executor->life.Reset();
    if (!before) ask();  // its link is read in the same turn of the loop, after its death
    Pump();
    EXPECT_EQ(0u, ledgers.vram.used());
    EXPECT_EQ(0u, ledgers.host.used());
    EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
    Pump();
  }
  const auto next = OpenWithExecutor(0);
  Say(*next, exec_link::Vram{exec_link::Kind::kVramRequest, 0, 4096, 0});
  EXPECT_EQ(4096u, ledgers.vram.used());
}

// What an executor says of its doorbells may be anything: it counts as it grows, by no more than could have been.
TEST_F(ExecutorRequestsTest, DoorbellsCountAsTheyGrowAndNoFaster) {
  const auto executor = OpenWithExecutor(0);
  const auto say = [&](uint64_t count, uint64_t throttled, uint64_t ns) {
    Say(*executor, exec_link::Doorbells{.count = count, .throttled = throttled, .throttled_ns = ns});
  };
  const uint64_t before = guard.count(GuardedEvent::kDoorbell);
  const auto counted = [&] { return guard.count(GuardedEvent::kDoorbell) - before; };
  say(100, 7, 1'000);
  EXPECT_EQ(counted(), 100u);
  EXPECT_EQ(guard.throttled(GuardedEvent::kDoorbell), 7u);
  EXPECT_EQ(guard.throttled_time(), Ns{1'000});
  say(100, 7, 1'000);
  say(50, 3, 500);  // less than before: nothing is taken back
  EXPECT_EQ(counted(), 100u);
  EXPECT_EQ(guard.throttled(GuardedEvent::kDoorbell), 7u);
  EXPECT_EQ(guard.throttled_time(), Ns{1'000});
  say(51, 3, 500);
  EXPECT_EQ(counted(), 101u);
  say(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0});
  EXPECT_EQ(counted(), 101 + 20'000'000u);
  EXPECT_EQ(guard.throttled(GuardedEvent::kDoorbell), 7 + 20'000'000u);
  EXPECT_EQ(guard.throttled_time(), Ns{1'000} + std::chrono::seconds(10));
}

TEST_F(ExecutorRequestsTest, AModuleMayBeLoadedWhenTheOnesBeforeArePaidFor) {
  const auto executor = OpenWithExecutor(0);
  Say(*executor, kLoad);
  EXPECT_EQ(1u, Leaves(*executor));
  Say(*executor, exec_link::Loaded{.code_bytes = uint64_t{64} << 20});
  EXPECT_EQ(uint64_t{64} << 10, guard.count(GuardedEvent::kModuleKib));
  Say(*executor, kLoad);
  EXPECT_EQ(1u, Leaves(*executor)) << "it waits";
}

TEST_F(ExecutorRequestsTest, WhoAsksOnceMoreWhileItWaitsIsEnded) {
  const auto executor = OpenWithExecutor(0);
  Say(*executor, kLoad);
  Say(*executor, exec_link::Loaded{.code_bytes = uint64_t{64} << 20});
  Say(*executor, kLoad);
  EXPECT_FALSE(Ended(*executor));
  Say(*executor, kLoad);
  EXPECT_TRUE(Ended(*executor));
}

}  // namespace
}  // namespace vgpud::vfio
