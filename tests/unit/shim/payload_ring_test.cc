// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/payload_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace vgpud::cuda {
namespace {

constexpr uint64_t kBytes = 8192;

TEST(PayloadRing, GivesAlignedSpansInOrder) {
  PayloadRing ring(kBytes);
  EXPECT_EQ(0u, ring.Allocate(1, 0));
  EXPECT_EQ(16u, ring.Allocate(100, 0));
  EXPECT_EQ(128u, ring.Allocate(16, 0));
  EXPECT_EQ(144u, ring.head());
}

TEST(PayloadRing, WaitsWhenFullAndGoesOnWhenReleased) {
  PayloadRing ring(kBytes);
  ASSERT_TRUE(ring.Allocate(4096, 0));
  ASSERT_TRUE(ring.Allocate(4096, 0));
  EXPECT_FALSE(ring.Allocate(16, 0));
  EXPECT_FALSE(ring.Allocate(16, 15));
  EXPECT_EQ(8192u, ring.Allocate(16, 16));
}

TEST(PayloadRing, NeverWrapsASpan) {
  PayloadRing ring(kBytes);
  ASSERT_TRUE(ring.Allocate(4096, 0));
  ASSERT_TRUE(ring.Allocate(2048, 0));
  EXPECT_FALSE(ring.Allocate(3000, 2999)) << "2048 skipped bytes count as used";
  EXPECT_EQ(kBytes, ring.Allocate(3000, 3008));
}

TEST(PayloadRing, KeepsAHeldSpanEvenWhenTheDeviceReleasedIt) {
  PayloadRing ring(kBytes);
  const uint64_t at = *ring.Allocate(4096, 0);
  ring.Hold(at);
  ASSERT_TRUE(ring.Allocate(4096, 4096));
  EXPECT_FALSE(ring.Allocate(4096, 8192));
  ring.Release(at);
  EXPECT_TRUE(ring.Allocate(4096, 8192));
}

TEST(PayloadRing, IgnoresAReleaseOfWhatWasNeverGiven) {
  PayloadRing ring(kBytes);
  ASSERT_TRUE(ring.Allocate(4096, ~uint64_t{0}));
  ASSERT_TRUE(ring.Allocate(4096, 0));
  EXPECT_FALSE(ring.Allocate(16, 0));
}

// Whatever the sizes: live spans never overlap, never wrap, and the longest span fits once all is released.
TEST(PayloadRing, NeverOverlapsLiveSpans) {
  struct Span {
    uint64_t at, bytes;
  };
  std::mt19937 random(1);
  PayloadRing ring(kBytes);
  std::deque<Span> live;
  uint64_t released = 0;
  for (int step = 0; step < 20000; ++step) {
    const uint64_t bytes = 1 + random() % ring.max_span();
    const auto at = ring.Allocate(bytes, released);
    if (!at) {
      ASSERT_FALSE(live.empty()) << "an empty ring must take " << bytes;
      released = live.front().at + live.front().bytes;
      live.pop_front();
      continue;
    }
    ASSERT_LE(*at % kBytes + bytes, kBytes);
    if (!live.empty()) {
      ASSERT_GE(*at, live.back().at + live.back().bytes);
      ASSERT_LE(*at + bytes - live.front().at, kBytes);
    }
    live.push_back({*at, bytes});
  }
}

}  // namespace
}  // namespace vgpud::cuda
