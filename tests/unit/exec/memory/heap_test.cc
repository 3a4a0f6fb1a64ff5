// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/heap.h"

#include <gtest/gtest.h>

#include <new>

namespace vgpud {
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

}  // namespace
}  // namespace vgpud
