// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/channel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/shim/fake_transport.h"

namespace vgpud::cuda {
namespace {

Command Make(uint32_t op, std::initializer_list<uint64_t> args = {}) {
  Command command;
  command.op = op;
  std::copy(args.begin(), args.end(), command.args);
  return command;
}
std::vector<std::byte> Pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + seed + i / 251);
  return data;
}

class ChannelTest : public testing::Test {
 protected:
  explicit ChannelTest(uint64_t bytes = VGPU_CHANNEL_BYTES)
      : transport_(new FakeTransport(bytes)), channel_(std::unique_ptr<Transport>(transport_)) {}
  CUresult WaitEvent(uint32_t slot, uint64_t generation) {
    return channel_.Wait([=, this] { return channel_.EventReached(slot, generation); });
  }
  uint64_t Alloc(uint64_t bytes) { return channel_.Call(Make(VGPU_OP_MEM_ALLOC, {bytes})).value[0]; }
  FakeExecutor& executor() { return transport_->executor(); }

  FakeTransport* transport_;
  Channel channel_;
};

class SmallChannelTest : public ChannelTest {
 protected:
  SmallChannelTest() : ChannelTest(VGPU_CHANNEL_MIN_BYTES) {}
};

TEST_F(ChannelTest, CallsCarryArgumentsAndAnswers) {
  ASSERT_TRUE(channel_.usable());
  const uint64_t address = Alloc(1000);
  EXPECT_NE(0u, address);
  EXPECT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_MEM_FREE, {address})).status);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, channel_.Call(Make(VGPU_OP_MEM_FREE, {address})).status);
}

TEST_F(ChannelTest, PayloadGoesThereAndBack) {
  const auto sent = Pattern(100000, 3);
  const uint64_t address = Alloc(sent.size());
  ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_COPY_IN, {address}), sent));
  std::vector<std::byte> got(sent.size());
  ASSERT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_COPY_OUT, {address}), {}, got).status);
  EXPECT_EQ(sent, got);
}

TEST_F(ChannelTest, ASpanLongerThanHalfThePayloadIsRefused) {
  const std::vector<std::byte> big(channel_.max_span() + 1);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, channel_.Post(Make(VGPU_OP_COPY_IN, {1}), big));
}

TEST_F(ChannelTest, AFailedPostedOperationIsToldOnce) {
  EXPECT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_MEM_FREE, {12345})));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, channel_.Call(Make(VGPU_OP_NOP)).status);
  EXPECT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_NOP)).status);
}

TEST_F(ChannelTest, ManyMorePostsThanTheRingHoldsAllArrive) {
  constexpr uint64_t kPosts = 10 * VGPU_SQ_ENTRIES;
  for (uint64_t i = 0; i < kPosts; ++i) ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_NOP)));
  ASSERT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_NOP)).status);
  EXPECT_EQ(kPosts + 1, executor().entries());
}

TEST_F(SmallChannelTest, AFullPayloadAreaHoldsThePosterUntilTheDeviceReleases) {
  const auto piece = Pattern(channel_.max_span(), 1);
  const uint64_t address = Alloc(piece.size());
  executor().Hold(true);
  std::atomic<int> posted{0};
  std::thread poster([&] {
    for (int i = 0; i < 8; ++i, ++posted) channel_.Post(Make(VGPU_OP_COPY_IN, {address}), piece);
  });
  while (posted < 2) std::this_thread::yield();
  executor().Hold(false);
  poster.join();
  EXPECT_EQ(8, posted);
  EXPECT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_NOP)).status);
}

// Nobody keeps others out while there is no room for what it wants itself.
TEST_F(SmallChannelTest, WhoWaitsForRoomHoldsUpNobodyElse) {
  const auto piece = Pattern(channel_.max_span(), 1);
  const uint64_t address = Alloc(piece.size());
  executor().Hold(true);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_COPY_IN, {address}), piece));
  std::atomic<bool> waits{false};
  std::thread large([&] {
    waits = true;
    EXPECT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_COPY_IN, {address}), piece));
  });
  while (!waits) std::this_thread::yield();
  const uint64_t before = channel_.AllWork();
  // Whether that thread waits already or will, these find room in the ring.
  for (int i = 0; i < 100; ++i) ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_NOP)));
  EXPECT_EQ(before + 100, channel_.AllWork());
  executor().Hold(false);
  large.join();
  EXPECT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_NOP)).status);
}

TEST_F(ChannelTest, WhatIsPostedTogetherHasNothingOfOthersBetween) {
  std::vector<uint32_t> ops;
  executor().OnEntry([&](const vgpu_sqe& entry, auto) {
    ops.push_back(entry.op);
    return 0u;
  });
  std::thread other([this] {
    for (int i = 0; i < 3000; ++i) channel_.Post(Make(VGPU_OP_NOP));
  });
  uint64_t numbered = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    Command both[] = {Make(VGPU_OP_EVENT_RECORD, {3, 0}), Make(VGPU_OP_EVENT_WAIT, {3, 0})};
    const auto number = [&] {
      both[0].args[1] = both[1].args[1] = ++numbered;
      return true;
    };
    ASSERT_EQ(CUDA_SUCCESS, channel_.PostTogether(both, number));
  }
  other.join();
  EXPECT_EQ(CUDA_SUCCESS, WaitEvent(3, 3000));
  ASSERT_EQ(CUDA_SUCCESS, channel_.Call(Make(VGPU_OP_NOP)).status);
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    if (ops[i] == VGPU_OP_EVENT_RECORD) {
      EXPECT_EQ(VGPU_OP_EVENT_WAIT, ops[i + 1]) << i;
    }
  }
  executor().OnEntry(nullptr);
}

TEST_F(ChannelTest, WhatIsNotReadyIsNotPosted) {
  const Command both[] = {Make(VGPU_OP_EVENT_RECORD, {3, 1}), Make(VGPU_OP_NOP)};
  EXPECT_EQ(CUDA_ERROR_NOT_READY, channel_.PostTogether(both, [] { return false; }));
  EXPECT_EQ(0u, channel_.AllWork());
  EXPECT_EQ(CUDA_SUCCESS, channel_.PostTogether(both, [] { return true; }));
  EXPECT_EQ(2u, channel_.AllWork());
}

TEST_F(SmallChannelTest, ManyThreadsGetTheirOwnAnswers) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &wrong] {
      const auto sent = Pattern(9000 + 16 * static_cast<size_t>(t), static_cast<unsigned>(t));
      std::vector<std::byte> got(sent.size());
      const uint64_t address = Alloc(sent.size());
      for (int i = 0; i < 200; ++i) {
        std::fill(got.begin(), got.end(), std::byte{0});
        channel_.Post(Make(VGPU_OP_COPY_IN, {address}), sent);
        wrong += channel_.Call(Make(VGPU_OP_COPY_OUT, {address}), {}, got).status != CUDA_SUCCESS;
        wrong += got != sent;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

TEST_F(ChannelTest, EventsAreSeenInSharedMemory) {
  EXPECT_FALSE(channel_.EventReached(9, 1));
  ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_EVENT_RECORD, {9, 1})));
  EXPECT_EQ(CUDA_SUCCESS, WaitEvent(9, 1));
  EXPECT_TRUE(channel_.EventReached(9, 1));
  EXPECT_FALSE(channel_.EventReached(9, 2));
  EXPECT_NE(0u, channel_.EventTime(9));
}

TEST_F(ChannelTest, ThreadsThatWaitForEventsAndForAnswersWakeEachOther) {
  executor().Hold(true);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (uint32_t slot = 0; slot < 3; ++slot) {
    threads.emplace_back([this, slot, &failed] { failed += WaitEvent(slot, 1) != CUDA_SUCCESS; });
  }
  threads.emplace_back([this, &failed] { failed += channel_.Call(Make(VGPU_OP_NOP)).status != CUDA_SUCCESS; });
  for (uint32_t slot = 0; slot < 3; ++slot) channel_.Post(Make(VGPU_OP_EVENT_RECORD, {slot, 1}));
  executor().Hold(false);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(0, failed);
}

// News of one is not work for all that wait.
TEST_F(ChannelTest, AThreadThatWaitsLooksOnlyWhenItMayGoOn) {
  constexpr uint32_t kThreads = 200;
  std::atomic<uint32_t> waiting{0}, looks{0};
  std::vector<std::thread> threads;
  for (uint32_t slot = 0; slot < kThreads; ++slot) {
    threads.emplace_back([&, slot] {
      const auto self = std::this_thread::get_id();
      ++waiting;
      EXPECT_EQ(CUDA_SUCCESS, channel_.Wait([&] {
        looks += std::this_thread::get_id() == self;
        return channel_.EventReached(slot, 1);
      }));
    });
  }
  while (waiting < kThreads || looks < kThreads) std::this_thread::yield();
  looks = 0;
  for (uint32_t slot = 0; slot < kThreads; ++slot) {
    ASSERT_EQ(CUDA_SUCCESS, channel_.Post(Make(VGPU_OP_EVENT_RECORD, {slot, 1})));
    threads[slot].join();
  }
  // All look at all news: half of the square. The thread that sleeps for the others looks at what wakes it.
  EXPECT_LT(looks, kThreads * kThreads / 4);
}

TEST_F(ChannelTest, APoisonedContextFailsPostsUntilReset) {
  executor().Poison(CUDA_ERROR_ILLEGAL_ADDRESS, "kernel read outside");
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, channel_.Sticky());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, channel_.Post(Make(VGPU_OP_NOP)));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, WaitEvent(3, 1));
  EXPECT_EQ("kernel read outside", channel_.ErrorText());
  channel_.Call(Make(VGPU_OP_CONTEXT_RESET));
  EXPECT_EQ(CUDA_SUCCESS, channel_.Sticky());
}

TEST_F(ChannelTest, ALostChannelEndsEveryWait) {
  executor().Hold(true);
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  threads.emplace_back(
      [this, &lost] { lost += channel_.Call(Make(VGPU_OP_NOP)).status == CUDA_ERROR_DEVICE_UNAVAILABLE; });
  threads.emplace_back([this, &lost] { lost += WaitEvent(1, 1) == CUDA_ERROR_DEVICE_UNAVAILABLE; });
  executor().Die("the executor was killed");
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(2, lost);
  EXPECT_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, channel_.Post(Make(VGPU_OP_NOP)));
}

TEST_F(ChannelTest, RingsTheDoorbellOnlyWhenTheExecutorSleeps) {
  std::atomic<bool> works{false}, go_on{false};
  executor().OnEntry([&](const vgpu_sqe&, std::span<const std::byte>) {
    works = true;
    while (!go_on) std::this_thread::yield();
    return 0u;
  });
  channel_.Post(Make(VGPU_OP_NOP));
  while (!works) std::this_thread::yield();
  const uint64_t before = executor().kicks();
  for (int i = 0; i < 500; ++i) channel_.Post(Make(VGPU_OP_NOP));
  go_on = true;
  channel_.Call(Make(VGPU_OP_NOP));
  EXPECT_EQ(502u, executor().entries());
  EXPECT_LE(executor().kicks(), before + 2);  // of the first, seen late, and of the last call
}

// Its executor hears nothing until Forward().
class DeafTransport : public FakeTransport {
 public:
  void Kick() override { ++kicks; }
  void Forward() { FakeTransport::Kick(); }
  uint32_t need_wakeup() {
    auto* const header = reinterpret_cast<vgpu_channel_header*>(area().data());
    return std::atomic_ref(header->sq_need_wakeup).load();
  }
  int kicks = 0;
};

TEST(Channel, RingsOnceForAllThatComesWhileTheExecutorSleeps) {
  auto* const transport = new DeafTransport;
  Channel channel{std::unique_ptr<Transport>(transport)};
  for (const int rings : {1, 2}) {
    while (transport->need_wakeup() == 0) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) channel.Post(Make(VGPU_OP_NOP));
    EXPECT_EQ(rings, transport->kicks);
    EXPECT_EQ(0u, transport->need_wakeup());
    transport->Forward();
    while (transport->executor().entries() < static_cast<uint64_t>(100 * rings)) std::this_thread::yield();
  }
}

TEST(Channel, AnAreaOfAnotherVersionIsNotUsable) {
  auto* transport = new FakeTransport();
  reinterpret_cast<vgpu_channel_header*>(transport->area().data())->abi_version = VGPU_ABI_VERSION + 1;
  EXPECT_FALSE(Channel(std::unique_ptr<Transport>(transport)).usable());
}

}  // namespace
}  // namespace vgpud::cuda
