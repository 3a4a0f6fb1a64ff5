// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/memory_ledger.h"

#include <gtest/gtest.h>

namespace vgpud::vfio {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(MemoryLedgerTest, WithoutAQuotaThereIsNothing) {
  MemoryLedger ledger;
  EXPECT_EQ(0u, ledger.quota());
  EXPECT_EQ(0u, ledger.used());
  EXPECT_TRUE(ledger.Take(0));
  EXPECT_FALSE(ledger.Take(1));
  EXPECT_FALSE(ledger.Change(0, 1));
  EXPECT_FALSE(ledger.Change(63, -1)) << "nobody holds anything";
  ledger.SetQuota(1);
  EXPECT_FALSE(ledger.Change(63, 2));
  EXPECT_TRUE(ledger.Change(63, 1));
}

TEST(MemoryLedgerTest, TheLastByteCanBeHadAndNoMore) {
  MemoryLedger ledger;
  ledger.SetQuota(100);
  EXPECT_FALSE(ledger.Take(101));
  EXPECT_TRUE(ledger.Take(40));
  EXPECT_FALSE(ledger.Take(61));
  EXPECT_FALSE(ledger.Take(UINT64_MAX));
  EXPECT_EQ(40u, ledger.used()) << "what was refused is not counted";
  EXPECT_TRUE(ledger.Take(60));
  EXPECT_EQ(100u, ledger.used());
  EXPECT_TRUE(ledger.Take(0));
  ledger.Give(30);
  EXPECT_EQ(70u, ledger.used());
  EXPECT_FALSE(ledger.Change(1, 31));
  EXPECT_TRUE(ledger.Change(1, 30));
  ledger.SetQuota(10);
  EXPECT_FALSE(ledger.Take(1)) << "more is in use than there is now";
  EXPECT_EQ(100u, ledger.used());
}

TEST(MemoryLedgerTest, EachGivesBackWhatItHoldsAndNotWhatOthersHold) {
  MemoryLedger ledger;
  ledger.SetQuota(100);
  EXPECT_TRUE(ledger.Change(0, 10));
  EXPECT_TRUE(ledger.Change(1, 20));
  EXPECT_TRUE(ledger.Change(0, 5));
  EXPECT_TRUE(ledger.Change(0, 0));
  EXPECT_EQ(35u, ledger.used());
  EXPECT_FALSE(ledger.Change(0, -16));
  EXPECT_FALSE(ledger.Change(0, kLeast));
  EXPECT_FALSE(ledger.Change(0, kLeast + 1));
  EXPECT_FALSE(ledger.Change(0, kMost));
  EXPECT_EQ(35u, ledger.used());
  EXPECT_TRUE(ledger.Change(0, -6));
  EXPECT_EQ(29u, ledger.used());
  EXPECT_FALSE(ledger.Change(0, -10));
  EXPECT_TRUE(ledger.Change(0, -9)) << "all of it";
  EXPECT_EQ(20u, ledger.used());
  EXPECT_FALSE(ledger.Change(0, -1));
  EXPECT_TRUE(ledger.Change(1, -1));
  EXPECT_EQ(19u, ledger.used());
}

TEST(MemoryLedgerTest, WhoIsGoneHoldsNothingAnyMore) {
  MemoryLedger ledger;
  ledger.SetQuota(100);
  EXPECT_TRUE(ledger.Take(7));
  EXPECT_TRUE(ledger.Change(0, 10));
  EXPECT_TRUE(ledger.Change(63, 20));
  ledger.Release(0);
  EXPECT_EQ(27u, ledger.used());
  ledger.Release(0);
  EXPECT_EQ(27u, ledger.used());
  EXPECT_FALSE(ledger.Change(0, -1));
  ledger.Release(63);
  EXPECT_EQ(7u, ledger.used()) << "what no executor holds";
}

TEST(MemoryLedgers, BothQuotasChangeOrNeither) {
  MemoryLedgers ledgers;
  ASSERT_TRUE(ledgers.Resize(100, 50));
  ASSERT_TRUE(ledgers.vram.Change(3, 60) && ledgers.host.Take(20));
  EXPECT_FALSE(ledgers.Resize(59, 50));
  EXPECT_FALSE(ledgers.Resize(100, 19));
  EXPECT_FALSE(ledgers.Resize(200, 19)) << "the larger one waits for the other";
  EXPECT_EQ(100u, ledgers.vram.quota());
  EXPECT_EQ(50u, ledgers.host.quota());
  ASSERT_TRUE(ledgers.Resize(60, 20)) << "down to what is in use";
  EXPECT_FALSE(ledgers.vram.Change(3, 1) || ledgers.host.Take(1));
  ASSERT_TRUE(ledgers.Resize(UINT64_MAX, UINT64_MAX));
  EXPECT_TRUE(ledgers.vram.Change(3, 1));
}

}  // namespace
}  // namespace vgpud::vfio
