// SPDX-License-Identifier: Apache-2.0
// Time: CLOCK_MONOTONIC nanoseconds, the only clock that slices, deadlines and accounts use.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace vgpud {

using Ns = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Ns>;

inline uint64_t MonotonicNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// steady_clock is CLOCK_MONOTONIC on Linux, so both forms name the same instant.
inline TimePoint Now() { return TimePoint{Ns{static_cast<int64_t>(MonotonicNs())}}; }
inline uint64_t ToNs(TimePoint t) { return static_cast<uint64_t>(t.time_since_epoch().count()); }

}  // namespace vgpud
