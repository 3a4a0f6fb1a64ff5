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

void Nap(uint64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace

Status LaneWait::Await(const Api& api, Event done, const StopWord& stop) {
  const uint64_t begun = MonotonicNs();
  for (;;) {
    const Status status = api.EventQuery(done);
    if (status != kNotReady || stop.Stopped()) return status;
    const uint64_t looked = MonotonicNs() - begun;
    if (looked >= kPatienceNs) return kNotReady;
    if (nap_ns_ == 0 && looked < kLooksNs) {
      _mm_pause();
      continue;
    }
    nap_ns_ = std::clamp(nap_ns_ + nap_ns_ / 4, kFirstNapNs, kMostNapNs);
    Nap(nap_ns_);
  }
}

}  // namespace vgpud::driver
