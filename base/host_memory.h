// SPDX-License-Identifier: Apache-2.0
// What a process may take of the host's memory for a guest: counted by whoever takes it, limited by what the VF's
// ledger has granted. Grants travel over a link, so taking is a question with an answer now (Take), an answer later
// (Ask), or an answer that a thread may wait for (TakeOrWait).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/locks/mutex.h"

namespace vgpud {

class HostMemory {
 public:
  // Without a limit: everything is granted.
  HostMemory();
  // `quota`: what the whole VF may take; nothing is granted yet. `wake`: there is something for TakeRequest; any
  // thread.
  explicit HostMemory(uint64_t quota);
  void OnWish(std::function<void()> wake) { wake_ = std::move(wake); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // --- any thread ---
  // Takes `bytes` if they are granted and free.
  [[nodiscard]] bool Take(uint64_t bytes);
  // Counts `bytes` that are there already, granted or not: book-keeping whose number is bounded.
  void Add(uint64_t bytes) {
    used_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    WishAhead();
  }
  void Give(uint64_t bytes) { used_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed); }
  // Could `bytes` more be taken now?
  bool Has(uint64_t bytes) const;
  // The same for book-keeping of kernels, which can't wait for an answer: a little more than what is granted.
  bool Tolerates(uint64_t bytes) {
    WishAhead();
    return bytes <= quota() && Free() >= static_cast<int64_t>(bytes) - kTolerance;
  }
  uint64_t used() const;
  uint64_t quota() const { return quota_.load(std::memory_order_relaxed); }
  bool limited() const { return quota() != kUnlimited; }
  // What the whole VF may take from now on; what was granted stays. Nothing where there was no limit.
  void SetQuota(uint64_t quota);

  // Who asks: each has one question at a time.
  enum class Asker { kRing, kKernel, kJob };
  enum class Answer { kGranted, kRefused, kLater };
  // Is there, or will there be, room for `bytes`? Takes nothing. kLater: the question is on its way, ask it again after
  // OnReply.
  Answer Ask(Asker asker, uint64_t bytes);
  // As Take, but waits for the answer of the ledger. Not the thread that calls TakeRequest.
  [[nodiscard]] bool TakeOrWait(uint64_t bytes);

  // --- the thread that owns the link ---
  // The request to send now, if any: bytes wanted, or given back when negative. At most one is out.
  std::optional<int64_t> TakeRequest();
  void OnReply(int64_t delta, bool ok);

  static constexpr uint64_t kUnlimited = std::numeric_limits<int64_t>::max();

 private:
  // As much is kept free, asked for ahead and given back in these steps, so that small needs don't wait for an answer.
  static constexpr int64_t kChunk = 1 << 20;
  static constexpr int64_t kTolerance = 16 << 20;
  enum class State { kNone, kAsked, kGranted, kRefused };
  struct Question {
    State state = State::kNone;
    uint64_t bytes = 0;
  };
  int64_t Free() const { return granted_.load(std::memory_order_relaxed) - used_.load(std::memory_order_relaxed); }
  void Wake() const {
    if (wake_) wake_();
  }
  void WishAhead() {
    if (Free() < kChunk && !low_.exchange(true, std::memory_order_relaxed)) Wake();
  }
  Question* Open() REQUIRES(mutex_);

  std::atomic<uint64_t> quota_;
  std::function<void()> wake_;
  std::atomic<int64_t> granted_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<bool> low_{false};                        // less than kChunk is free, and that has been said
  static constexpr LockRank kRank{"host memory", 950};  // after all that count what they take
  Mutex mutex_{kRank};
  CondVar answered_;
  std::array<Question, 3> questions_ GUARDED_BY(mutex_);
  bool out_ GUARDED_BY(mutex_) = false;
  // The question behind the request that is out; nullptr: it was made ahead.
  Question* out_for_ GUARDED_BY(mutex_) = nullptr;
  uint64_t out_bytes_ GUARDED_BY(mutex_) = 0;  // what that asked for then
  int64_t exact_ GUARDED_BY(mutex_) = 0;       // its shortfall
  bool ask_exactly_ GUARDED_BY(mutex_) = false;
  bool ahead_refused_ GUARDED_BY(mutex_) = false;
};

// A part of it, given back at the end.
class HostMemoryPart {
 public:
  HostMemoryPart() = default;
  // Of `bytes` that were taken.
  HostMemoryPart(HostMemory& memory, uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
  HostMemoryPart(HostMemoryPart&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  HostMemoryPart& operator=(HostMemoryPart&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostMemoryPart() {
    if (memory_ != nullptr) memory_->Give(bytes_);
  }

 private:
  HostMemory* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace vgpud
