// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/worker_pool.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

namespace vgpud::soft {
namespace {

TEST(WorkerPool, OneThreadNeedsNoHelpers) {
  WorkerPool pool(1);
  int calls = 0;
  pool.Run(1, [&](bool caller) { calls += caller ? 1 : 100; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(pool.started(), 0u);
}

TEST(WorkerPool, StartsHelpersWhenTheyAreWanted) {
  WorkerPool pool(4);
  EXPECT_EQ(pool.started(), 0u);
  pool.Run(2, [](bool) {});
  EXPECT_EQ(pool.started(), 1u);
  pool.Run(9, [](bool) {});
  EXPECT_EQ(pool.started(), 3u);
}

// The job of the caller waits until both helpers are in theirs, so they did run at the same time.
TEST(WorkerPool, AllTakePart) {
  WorkerPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> in{0};
    pool.Run(3, [&](bool) {
      ++in;
      while (in.load() < 3) std::this_thread::yield();
    });
    ASSERT_EQ(in.load(), 3);
  }
}

TEST(WorkerPool, NobodyIsInTheJobOnceRunIsBack) {
  WorkerPool pool(3);
  uint64_t by_caller = 0;
  std::atomic<uint64_t> by_helpers{0};
  for (int round = 0; round < 20'000; ++round) {
    bool over = false;  // no atomic: ThreadSanitizer sees whoever comes late
    pool.Run(3, [&](bool caller) {
      if (caller) {
        ++by_caller;
        return;
      }
      by_helpers += over ? 1'000'000'000 : 1;
    });
    over = true;
  }
  EXPECT_EQ(by_caller, 20'000u);
  EXPECT_LE(by_helpers.load(), 40'000u);
}

TEST(WorkerPool, HelpersComputeInTheCallersFloatingPointMode) {
  WorkerPool pool(2);
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {before, before | 0x8000u, before}) {
    _mm_setcsr(mode);
    std::atomic<unsigned> seen{0};
    pool.Run(2, [&](bool caller) {
      if (!caller) seen = _mm_getcsr() | 1u << 31;
      while (seen.load() == 0) std::this_thread::yield();
    });
    EXPECT_EQ(seen.load() & ~0x3fu, (mode & ~0x3fu) | 1u << 31);
  }
  _mm_setcsr(before);
}

}  // namespace
}  // namespace vgpud::soft
