// SPDX-License-Identifier: Apache-2.0
#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <thread>

namespace vgpud {
namespace {

using Answer = HostMemory::Answer;
constexpr uint64_t kMiB = 1 << 20;

// The ledger of a VF whose quota is free until it is asked for.
struct Ledger {
  uint64_t quota;
  uint64_t used = 0;
  // Answers all that `memory` asks.
  void Serve(HostMemory& memory) {
    while (const auto delta = memory.TakeRequest()) {
      const bool ok = *delta <= 0 || used + static_cast<uint64_t>(*delta) <= quota;
      if (ok) used += static_cast<uint64_t>(*delta);
      memory.OnReply(*delta, ok);
    }
  }
};

TEST(HostMemory, WithoutALimitEverythingIsThere) {
  HostMemory memory;
  EXPECT_FALSE(memory.limited());
  EXPECT_TRUE(memory.Take(uint64_t{1} << 50));
  EXPECT_EQ(std::nullopt, memory.TakeRequest());
}

TEST(HostMemory, NothingIsTakenThatWasNotGranted) {
  HostMemory memory(64 * kMiB);
  EXPECT_FALSE(memory.Take(1));
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, kMiB));
  Ledger ledger{64 * kMiB};
  ledger.Serve(memory);
  EXPECT_EQ(Answer::kGranted, memory.Ask(HostMemory::Asker::kRing, kMiB));
  EXPECT_TRUE(memory.Take(kMiB));
  EXPECT_EQ(kMiB, memory.used());
}

TEST(HostMemory, TheLastByteOfTheQuotaIsGranted) {
  HostMemory memory(10 * kMiB + 7);
  Ledger ledger{10 * kMiB + 7};
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 10 * kMiB + 7));
  ledger.Serve(memory);
  EXPECT_TRUE(memory.Take(10 * kMiB + 7));
  EXPECT_FALSE(memory.Take(1));
}

TEST(HostMemory, MoreThanTheQuotaIsRefusedAtOnceAndMoreThanIsLeftAfterAsking) {
  HostMemory memory(64 * kMiB);
  Ledger ledger{.quota = 64 * kMiB, .used = 60 * kMiB};
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kRing, 64 * kMiB + 1));
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 5 * kMiB));
  ledger.Serve(memory);
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kRing, 5 * kMiB));
  // Asked again, it is asked of the ledger again: there may be some now.
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 5 * kMiB));
  ledger.used = 0;
  ledger.Serve(memory);
  EXPECT_EQ(Answer::kGranted, memory.Ask(HostMemory::Asker::kRing, 5 * kMiB));
}

TEST(HostMemory, ALargeWishThatIsRefusedTakesNoSmallOneWithIt) {
  HostMemory memory(64 * kMiB);
  Ledger ledger{.quota = 64 * kMiB, .used = 32 * kMiB};
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kKernel, 40 * kMiB));
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, kMiB));
  ledger.Serve(memory);
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kKernel, 40 * kMiB));
  EXPECT_EQ(Answer::kGranted, memory.Ask(HostMemory::Asker::kRing, kMiB));
}

TEST(HostMemory, AQuestionIsAnsweredThoughOthersGiveAndTakeInBetween) {
  constexpr uint64_t kBytes = 8 * kMiB - 100;
  HostMemory memory(64 * kMiB);
  ASSERT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kJob, 10 * kMiB));
  memory.OnReply(*memory.TakeRequest(), true);
  ASSERT_TRUE(memory.Take(10 * kMiB));
  ASSERT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, kBytes));
  memory.OnReply(*memory.TakeRequest(), false);  // a little more than was asked for
  const auto exactly = memory.TakeRequest();
  memory.Give(10 * kMiB);
  memory.OnReply(*exactly, false);
  ASSERT_TRUE(memory.Take(10 * kMiB));
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kRing, kBytes));
}

TEST(HostMemory, WhatIsNoLongerUsedGoesBackToTheLedger) {
  HostMemory memory(64 * kMiB);
  Ledger ledger{64 * kMiB};
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 50 * kMiB));
  ledger.Serve(memory);
  ASSERT_TRUE(memory.Take(50 * kMiB));
  memory.Give(50 * kMiB);
  ledger.Serve(memory);
  EXPECT_LE(ledger.used, 4 * kMiB);
}

TEST(HostMemory, SmallNeedsAreAskedForAhead) {
  HostMemory memory(64 * kMiB);
  Ledger ledger{64 * kMiB};
  int wishes = 0;
  memory.OnWish([&] { ++wishes; });
  memory.Add(1000);
  EXPECT_EQ(1, wishes);
  memory.Add(1000);
  EXPECT_EQ(1, wishes) << "said once until it has been looked at";
  ledger.Serve(memory);
  EXPECT_TRUE(memory.Take(kMiB));
}

TEST(HostMemory, WhoeverAskedIsWokenWhenAnotherThreadGivesBackEnough) {
  HostMemory memory(8 * kMiB);
  Ledger ledger{8 * kMiB};
  ASSERT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 4 * kMiB));
  ledger.Serve(memory);
  ASSERT_TRUE(memory.Take(4 * kMiB));
  int wishes = 0;
  memory.OnWish([&] { ++wishes; });
  ASSERT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 3 * kMiB));
  memory.Give(4 * kMiB);
  wishes = 0;
  EXPECT_EQ(std::nullopt, memory.TakeRequest());
  EXPECT_EQ(1, wishes);
}

TEST(HostMemory, BookKeepingMayPassTheGrantALittleAndNoMore) {
  HostMemory memory(64 * kMiB);
  EXPECT_TRUE(memory.Tolerates(kMiB));
  memory.Add(16 * kMiB);
  EXPECT_FALSE(memory.Tolerates(1));
}

TEST(HostMemory, AThreadThatWaitsGetsTheAnswerOfTheLedger) {
  HostMemory memory(8 * kMiB);
  Ledger ledger{8 * kMiB};
  std::atomic<int> wishes{0};
  memory.OnWish([&] {
    ++wishes;
    wishes.notify_all();
  });
  bool granted = false, refused = true;
  std::thread asker([&] {
    granted = memory.TakeOrWait(6 * kMiB);
    refused = !memory.TakeOrWait(6 * kMiB);
  });
  for (int seen = 0; seen < 2; ++seen) {
    wishes.wait(seen);
    ledger.Serve(memory);
  }
  asker.join();
  EXPECT_TRUE(granted);
  EXPECT_TRUE(refused);
}

TEST(HostMemory, ItsQuotaMayChange) {
  HostMemory memory(8 * kMiB);
  Ledger ledger{8 * kMiB};
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kRing, 9 * kMiB));
  memory.SetQuota(32 * kMiB);
  ledger.quota = 32 * kMiB;
  EXPECT_EQ(Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 9 * kMiB));
  ledger.Serve(memory);
  EXPECT_TRUE(memory.Take(9 * kMiB));
  memory.SetQuota(10 * kMiB);
  EXPECT_EQ(10 * kMiB, memory.quota());
  EXPECT_EQ(9 * kMiB, memory.used()) << "what was granted stays";
  EXPECT_EQ(Answer::kRefused, memory.Ask(HostMemory::Asker::kRing, 11 * kMiB));
  HostMemory unlimited;
  unlimited.SetQuota(kMiB);
  EXPECT_FALSE(unlimited.limited());
}

TEST(HostMemory, APartIsGivenBackOnce) {
  HostMemory memory;
  ASSERT_TRUE(memory.Take(100));
  {
    HostMemoryPart part(memory, 100);
    HostMemoryPart other = std::move(part);
    EXPECT_EQ(100u, memory.used());
  }
  EXPECT_EQ(0u, memory.used());
}

}  // namespace
}  // namespace vgpud
