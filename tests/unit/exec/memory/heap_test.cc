// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/heap.h"

#include <gtest/gtest.h>

#include <new>

namespace vgpud::exec {
namespace {

constexpr size_t kMiB = 1 << 20;

// A process whose VF has been granted nothing.
struct HeapTest : testing::Test {
  HeapTest() { heap::CountIn(&memory); }
  ~HeapTest() override { heap::CountIn(nullptr); }
  HostMemory memory{4 * kMiB};
};

TEST_F(HeapTest, OnlyUnderALimitSomethingIsRefused) {
  void* block = heap::Allocate(kMiB, 1);
  EXPECT_GE(memory.used(), kMiB);
  heap::Free(block);
  const heap::Limit limit(false);
  EXPECT_THROW(block = heap::Allocate(kMiB, 1), std::bad_alloc);
  EXPECT_EQ(kMiB, heap::Limit::missing());
}

TEST_F(HeapTest, ALimitInsideOfAnotherLeavesThatInForce) {
  void* block = nullptr;
  {
    const heap::Limit outer(false);
    { const heap::Limit inner(false); }
    EXPECT_THROW(block = heap::Allocate(kMiB, 1), std::bad_alloc);
  }
  block = heap::Allocate(kMiB, 1);
  EXPECT_NE(nullptr, block);
  heap::Free(block);
}

TEST_F(HeapTest, TheReserveIsThere) { EXPECT_TRUE(heap::KeepReserve()); }

constexpr size_t kKiB = 1 << 10;

// A thread settles with the ledger when it has taken, or given back, 32 KiB.
TEST_F(HeapTest, IsSettledInStepsOf32KiB) {
  void* large = heap::Allocate(64 * kKiB, 1);  // from here nothing is open
  heap::Free(large);
  const uint64_t before = memory.used();
  void* small = heap::Allocate(31 * kKiB, 1);
  EXPECT_EQ(before, memory.used());
  void* more = heap::Allocate(2 * kKiB, 1);
  EXPECT_GE(memory.used(), before + 33 * kKiB);
  EXPECT_LE(memory.used(), before + 34 * kKiB);
  heap::Free(more);
  EXPECT_GE(memory.used(), before + 33 * kKiB) << "not yet";
  heap::Free(small);
  EXPECT_LE(memory.used(), before + kKiB);
}

TEST_F(HeapTest, BlocksAreAlignedAndNoneIsEmpty) {
  for (const size_t alignment : {size_t{1}, size_t{16}, size_t{32}, size_t{64}, size_t{4096}})
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}}) {
      void* block = heap::Allocate(bytes, alignment);
      EXPECT_NE(nullptr, block);
      EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block) % alignment);
      heap::Free(block);
    }
  heap::Free(nullptr);
}

TEST_F(HeapTest, UnderALimitSmallBlocksAreFreeAndLargerOnesAreTheLedgers) {
  {
    const heap::Limit limit(false);
    void* block = heap::Allocate(8 * kKiB, 1);
    EXPECT_NE(nullptr, block);
    heap::Free(block);
    EXPECT_THROW(block = heap::Allocate(33 * kKiB, 1), std::bad_alloc);
    EXPECT_EQ(33 * kKiB, heap::Limit::missing());
  }
  ASSERT_EQ(HostMemory::Answer::kLater, memory.Ask(HostMemory::Asker::kRing, 2 * kMiB));
  const auto asked = memory.TakeRequest();
  ASSERT_TRUE(asked && *asked > 0);
  memory.OnReply(*asked, true);
  const uint64_t before = memory.used();
  const heap::Limit limit(false);
  void* block = heap::Allocate(kMiB, 1);
  EXPECT_GE(memory.used(), before + kMiB);
  EXPECT_LE(memory.used(), before + kMiB + 64 * kKiB) << "counted once";
  heap::Free(block);
}

}  // namespace
}  // namespace vgpud::exec
