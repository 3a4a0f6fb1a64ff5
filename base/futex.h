// Futex wait and wake on a 32-bit word in memory that several processes share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace vgpud {

// Sleeps while *word == expected, at most until `deadline_ns` (CLOCK_MONOTONIC, 0 = no limit). May wake early:
// re-check the word.
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t expected, uint64_t deadline_ns = 0) {
  timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000u), static_cast<long>(deadline_ns % 1'000'000'000u)};
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, deadline_ns != 0 ? &deadline : nullptr, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

inline void FutexWakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace vgpud
