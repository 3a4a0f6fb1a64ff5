// SPDX-License-Identifier: Apache-2.0
// What each thread holds, and what it may take and wait for with that (base/locks/mutex.h includes it where it is
// wanted).
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "base/locks/mutex.h"

namespace vgpud::lock_check {

class Held {
 public:
  static Held& OfThisThread() {
    static thread_local Held held;
    return held;
  }
  void Push(const LockRank& rank) {
    for (size_t i = 0; i < count_; ++i) {
      const LockRank& other = *ranks_[i];
      const bool in_order = other.order < rank.order || (rank.nests && other.order == rank.order);
      if (!in_order) Broken("takes", rank.name, other);
    }
    if (count_ == kMost) Broken("holds too many mutexes to take", rank.name, *ranks_[0]);
    ranks_[count_++] = &rank;
  }
  // In any order.
  void Pop(const LockRank& rank) {
    for (size_t i = count_; i-- > 0;) {
      if (ranks_[i] != &rank) continue;
      for (; i + 1 < count_; ++i) ranks_[i] = ranks_[i + 1];
      --count_;
      return;
    }
    Broken("gives back, without having it,", rank.name, rank);
  }
  void MayWait() const {
    for (size_t i = 0; i < count_; ++i)
      if (!ranks_[i]->over_waits) Broken("waits for", "others", *ranks_[i]);
  }
  void MayCallTheProgram() const {
    if (count_ != 0) Broken("calls", "the program", *ranks_[0]);
  }
  void MayReturn() const {
    if (count_ != 0) Broken("returns to", "the program", *ranks_[0]);
  }

 private:
  static constexpr size_t kMost = 64;
  [[noreturn]] static void Broken(const char* does, const char* what, const LockRank& held) {
    std::fprintf(stderr, "vgpud: order of locks: a thread %s %s while it holds %s\n", does, what, held.name);
    std::abort();
  }
  const LockRank* ranks_[kMost] = {};
  size_t count_ = 0;
};

class Lock {
 public:
  explicit Lock(const LockRank& rank) : rank_(rank) {}
  void Take() const { Held::OfThisThread().Push(rank_); }
  void Leave() const { Held::OfThisThread().Pop(rank_); }

 private:
  const LockRank& rank_;
};

// A wait that ends only when another thread or process does something.
inline void BeforeWait() { Held::OfThisThread().MayWait(); }
// It may call us back, never come back, or leave by an exception.
inline void BeforeCallingTheProgram() { Held::OfThisThread().MayCallTheProgram(); }
// A call of the program's is over.
inline void BeforeReturning() { Held::OfThisThread().MayReturn(); }

}  // namespace vgpud::lock_check
