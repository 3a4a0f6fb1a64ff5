// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/lane_wait.h"

#include <immintrin.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"

namespace vgpud::driver {
namespace {

// Other streams of the guest get a look in after that long.
constexpr uint64_t kPatienceNs = 100'000;
// Kernels of some microseconds are looked at without a sleep; the others get naps that grow with them.
constexpr uint64_t kLooksNs = 20'000;
constexpr uint64_t kFirstNapNs = 10'000, kMostNapNs = 100'000;
// A look, and what a nap lasts longer. What goes beyond is time without a processor, which is nobody's patience.
constexpr uint64_t kLookNs = 5'000, kOversleptNs = 60'000;

void Nap(uint64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace

Status LaneWait::Await(const Api& api, Event done, const StopWord& stop) {
  uint64_t looked = 0, expected = kLookNs;
  for (uint64_t before = MonotonicNs();;) {
    const Status status = api.EventQuery(done);
    if (status != kNotReady || stop.Stopped()) return status;
    const uint64_t now = MonotonicNs();
    looked += std::min(now - before, expected);
    before = now;
    if (looked >= kPatienceNs) return kNotReady;
    expected = kLookNs;
    if (nap_ns_ == 0 && looked < kLooksNs) {
      _mm_pause();
      continue;
    }
    nap_ns_ = std::clamp(nap_ns_ + nap_ns_ / 4, kFirstNapNs, kMostNapNs);
    Nap(nap_ns_);
    expected = nap_ns_ + kOversleptNs;
  }
}

}  // namespace vgpud::driver
