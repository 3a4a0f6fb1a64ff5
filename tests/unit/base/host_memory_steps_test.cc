// SPDX-License-Identifier: Apache-2.0
// How much is asked of the ledger, and how much is given back to it.
#include <gtest/gtest.h>

#include "base/host_memory.h"

namespace vgpud {
namespace {

using Asker = HostMemory::Asker;
using Answer = HostMemory::Answer;
constexpr int64_t kMiB = 1 << 20;
constexpr std::nullopt_t kNothing = std::nullopt;

class HostMemorySteps : public testing::Test {
 protected:
  // Grants exactly `bytes`, a multiple of 1 MiB.
  void Grant(int64_t bytes) {
    ASSERT_EQ(Answer::kLater, memory_.Ask(Asker::kJob, static_cast<uint64_t>(bytes)));
    ASSERT_EQ(bytes, memory_.TakeRequest());
    memory_.OnReply(bytes, true);
    ASSERT_TRUE(memory_.Take(static_cast<uint64_t>(bytes)));
    memory_.Give(static_cast<uint64_t>(bytes));
  }
  HostMemory memory_{1024 * kMiB};
};

TEST_F(HostMemorySteps, LessThanOneMebibyteFreeIsFilledUpToTwo) {
  EXPECT_EQ(2 * kMiB, memory_.TakeRequest());
  EXPECT_EQ(kNothing, memory_.TakeRequest()) << "one is out";
  memory_.OnReply(2 * kMiB, true);
  EXPECT_EQ(kNothing, memory_.TakeRequest());
  ASSERT_TRUE(memory_.Take(kMiB));
  EXPECT_EQ(kNothing, memory_.TakeRequest());
  ASSERT_TRUE(memory_.Take(1));
  EXPECT_EQ(kMiB + 1, memory_.TakeRequest());
}

TEST_F(HostMemorySteps, WhatIsRefusedAheadIsNotAskedForAgainUntilSomethingIsGranted) {
  ASSERT_EQ(2 * kMiB, memory_.TakeRequest());
  memory_.OnReply(2 * kMiB, false);
  EXPECT_EQ(kNothing, memory_.TakeRequest());
  ASSERT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, kMiB));
  ASSERT_EQ(kMiB, memory_.TakeRequest());
  memory_.OnReply(kMiB, true);
  ASSERT_TRUE(memory_.Take(kMiB));
  EXPECT_EQ(2 * kMiB, memory_.TakeRequest());
}

TEST_F(HostMemorySteps, QuestionsAreRoundedUpToSteps) {
  ASSERT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, 5 * kMiB + 1));
  ASSERT_EQ(6 * kMiB, memory_.TakeRequest());
  memory_.OnReply(6 * kMiB, true);
  EXPECT_EQ(Answer::kGranted, memory_.Ask(Asker::kRing, 6 * kMiB));
  EXPECT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, 6 * kMiB + 1));
  EXPECT_EQ(kMiB, memory_.TakeRequest()) << "one byte is missing";
}

TEST_F(HostMemorySteps, WhoeverHasMuchTakesASixteenthMoreAtOnce) {
  Grant(48 * kMiB);
  ASSERT_TRUE(memory_.Take(48 * kMiB));
  ASSERT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, kMiB));
  ASSERT_EQ(3 * kMiB, memory_.TakeRequest());
  memory_.OnReply(3 * kMiB, false);
  ASSERT_EQ(kMiB, memory_.TakeRequest()) << "then what is needed, and no more";
  EXPECT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, kMiB));
  memory_.OnReply(kMiB, false);
  EXPECT_EQ(Answer::kRefused, memory_.Ask(Asker::kRing, kMiB));
}

TEST_F(HostMemorySteps, MoreThanFourMebibytesToSpareGoBackButForTwo) {
  Grant(10 * kMiB);
  ASSERT_TRUE(memory_.Take(6 * kMiB));
  EXPECT_EQ(kNothing, memory_.TakeRequest()) << "four are free";
  memory_.Give(1);
  EXPECT_EQ(-2 * kMiB, memory_.TakeRequest()) << "whole steps";
  memory_.OnReply(-2 * kMiB, true);
  memory_.Give(6 * kMiB - 1);
  EXPECT_EQ(-6 * kMiB, memory_.TakeRequest());
  memory_.OnReply(-6 * kMiB, true);
  EXPECT_EQ(kNothing, memory_.TakeRequest());
  EXPECT_TRUE(memory_.Has(2 * kMiB));
  EXPECT_FALSE(memory_.Has(2 * kMiB + 1));
}

TEST_F(HostMemorySteps, WhatWasPromisedStays) {
  ASSERT_EQ(Answer::kLater, memory_.Ask(Asker::kRing, 20 * kMiB));
  ASSERT_EQ(20 * kMiB, memory_.TakeRequest());
  memory_.OnReply(20 * kMiB, true);
  EXPECT_EQ(kNothing, memory_.TakeRequest()) << "granted, not taken yet";
  ASSERT_TRUE(memory_.Take(5 * kMiB));
  memory_.Give(5 * kMiB);
  EXPECT_EQ(-3 * kMiB, memory_.TakeRequest()) << "five of it are not promised any more";
}

TEST_F(HostMemorySteps, BookKeepingMayPassTheGrantBySixteenMebibytes) {
  EXPECT_TRUE(memory_.Tolerates(16 * kMiB));
  EXPECT_FALSE(memory_.Tolerates(16 * kMiB + 1));
  HostMemory small(8 * kMiB);
  EXPECT_TRUE(small.Tolerates(8 * kMiB));
  EXPECT_FALSE(small.Tolerates(8 * kMiB + 1)) << "more than the quota";
  EXPECT_FALSE(small.Has(8 * kMiB));
}

TEST_F(HostMemorySteps, WhatIsThereAlreadyCountsGrantedOrNot) {
  memory_.Add(100);
  EXPECT_EQ(100u, memory_.used());
  memory_.Give(300);
  EXPECT_EQ(0u, memory_.used()) << "never less than none";
}

TEST_F(HostMemorySteps, AQuotaIsLessThanNoLimit) {
  HostMemory most(HostMemory::kUnlimited);
  EXPECT_TRUE(most.limited());
  EXPECT_EQ(HostMemory::kUnlimited - 1, most.quota());
  EXPECT_EQ(HostMemory::kUnlimited, HostMemory().quota());
}

TEST_F(HostMemorySteps, AThreadWakesWhenLessThanAMebibyteIsLeft) {
  Grant(4 * kMiB);
  ASSERT_EQ(kNothing, memory_.TakeRequest());
  int wishes = 0;
  memory_.OnWish([&] { ++wishes; });
  memory_.Add(3 * kMiB);
  EXPECT_EQ(0, wishes) << "one is left";
  memory_.Add(1);
  EXPECT_EQ(1, wishes);
  memory_.Add(1);
  EXPECT_EQ(1, wishes) << "has been said";
  EXPECT_EQ(kMiB + 2, memory_.TakeRequest());
  memory_.Add(1);
  EXPECT_EQ(2, wishes) << "has been looked at";
}

TEST_F(HostMemorySteps, PartsChangeHands) {
  HostMemory memory;
  ASSERT_TRUE(memory.Take(150));
  {
    HostMemoryPart part(memory, 100), none;
    HostMemoryPart other(memory, 50);
    other = std::move(part);
    none = std::move(other);
    EXPECT_EQ(150u, memory.used());
  }
  EXPECT_EQ(0u, memory.used());
}

}  // namespace
}  // namespace vgpud
