// SPDX-License-Identifier: Apache-2.0
// Futex wait and wake on a 32-bit word in memory that several processes share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>

#include "base/clock.h"

namespace vgpud {

// Sleeps while *word == expected, at most until `deadline_ns` (CLOCK_MONOTONIC, 0 = no limit). May wake early:
// re-check the word.
inline void FutexWait(const std::atomic<uint32_t>* word, uint32_t expected, uint64_t deadline_ns = 0) {
  timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000u), static_cast<long>(deadline_ns % 1'000'000'000u)};
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, deadline_ns != 0 ? &deadline : nullptr, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

// A word to sleep on and what it said when it was last looked at.
struct FutexWord {
  const std::atomic<uint32_t>* word = nullptr;
  uint32_t seen = 0;
};
inline constexpr size_t kMaxFutexWords = 128;  // FUTEX_WAITV_MAX of Linux

// Sleeps until one of `words`, at most kMaxFutexWords of them, is woken or says something else than was seen, at most
// until `deadline_ns` (CLOCK_MONOTONIC, 0 = no limit). Where futex_waitv (Linux 5.16) is forbidden it sleeps on the
// first word alone, at most 1 ms.
struct FutexWaited {
  bool timed_out = false;
  // Of the word that somebody woke, whatever it says.
  std::optional<size_t> woken = {};
};
inline FutexWaited FutexWaitAny(std::span<const FutexWord> words, uint64_t deadline_ns = 0) {
  futex_waitv waiters[kMaxFutexWords];
  for (size_t i = 0; i < words.size(); ++i)
    waiters[i] = {words[i].seen, reinterpret_cast<uintptr_t>(words[i].word), FUTEX_32, 0};
  timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000u), static_cast<long>(deadline_ns % 1'000'000'000u)};
  const long rc =
      syscall(SYS_futex_waitv, waiters, words.size(), 0, deadline_ns != 0 ? &deadline : nullptr, CLOCK_MONOTONIC);
  if (rc >= 0) return {false, static_cast<size_t>(rc)};
  if (errno == EAGAIN || errno == EINTR) return {};
  if (errno == ETIMEDOUT) return {true};
  const uint64_t soon = MonotonicNs() + 1'000'000;
  FutexWait(words[0].word, words[0].seen, deadline_ns != 0 && deadline_ns < soon ? deadline_ns : soon);
  return {};
}

// At most so many of those that sleep on it, those that came first.
inline void FutexWake(std::atomic<uint32_t>* word, uint32_t most) {
  syscall(SYS_futex, word, FUTEX_WAKE, most, nullptr, nullptr, 0);
}

inline void FutexWakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace vgpud
