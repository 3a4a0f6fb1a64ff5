// SPDX-License-Identifier: Apache-2.0
// Mutexes whose rules are checked. Before anything runs, clang looks whether what a mutex guards is used under it
// (tools/check_locks.py). In builds with VGPUD_CHECK_LOCKS each thread knows what it holds, and the process ends with a
// sentence when a thread takes a mutex out of order, or waits for others with one that they may need.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define VGPUD_LOCK_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define VGPUD_LOCK_ATTRIBUTE(...)
#endif
// As clang's documentation has them ("Thread Safety Analysis").
#define CAPABILITY(name) VGPUD_LOCK_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY VGPUD_LOCK_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(...) VGPUD_LOCK_ATTRIBUTE(guarded_by(__VA_ARGS__))
#define REQUIRES(...) VGPUD_LOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) VGPUD_LOCK_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) VGPUD_LOCK_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) VGPUD_LOCK_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) VGPUD_LOCK_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) VGPUD_LOCK_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) VGPUD_LOCK_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) VGPUD_LOCK_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(...) VGPUD_LOCK_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define RETURN_CAPABILITY(...) VGPUD_LOCK_ATTRIBUTE(lock_returned(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS VGPUD_LOCK_ATTRIBUTE(no_thread_safety_analysis)

namespace vgpud {

// Where a mutex stands among those of its library. A thread takes them in rising order. Those that may be held while
// their holder waits for other threads or processes come first, so nobody waits for such a one with any other.
struct LockRank {
  const char* name;
  int order;
  bool over_waits = false;
  bool nests = false;  // several of this rank at a time, as the parts of a tree that is never entered from below
};

}  // namespace vgpud

#if VGPUD_CHECK_LOCKS
#include "base/locks/lock_check.h"
#else
namespace vgpud::lock_check {
struct Lock {
  constexpr explicit Lock(const LockRank&) {}
  void Take() const {}
  void Leave() const {}
};
inline void BeforeWait() {}
inline void BeforeCallingTheProgram() {}
inline void BeforeReturning() {}
}  // namespace vgpud::lock_check
#endif

namespace vgpud {

class CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(const LockRank& rank) : check_(rank) {}
  Mutex(const Mutex&) = delete;
  void lock() ACQUIRE() {
    check_.Take();
    mutex_.lock();
  }
  // For a function that is called by way of others, who say nothing of it: this thread has it.
  void AssertHeld() const ASSERT_CAPABILITY(this) {}
  bool try_lock() TRY_ACQUIRE(true) {
    if (!mutex_.try_lock()) return false;
    check_.Take();
    return true;
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    check_.Leave();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
  [[no_unique_address]] lock_check::Lock check_;
};

class CAPABILITY("mutex") SharedMutex {
 public:
  explicit SharedMutex(const LockRank& rank) : check_(rank) {}
  SharedMutex(const SharedMutex&) = delete;
  void lock() ACQUIRE() {
    check_.Take();
    mutex_.lock();
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    check_.Leave();
  }
  void lock_shared() ACQUIRE_SHARED() {
    check_.Take();
    mutex_.lock_shared();
  }
  void unlock_shared() RELEASE_SHARED() {
    mutex_.unlock_shared();
    check_.Leave();
  }

 private:
  std::shared_mutex mutex_;
  [[no_unique_address]] lock_check::Lock check_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~ReaderLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// The mutex is held before and after a wait.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    mutex.check_.Leave();
    lock_check::BeforeWait();
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
    mutex.check_.Take();
  }
  void WaitFor(Mutex& mutex, std::chrono::nanoseconds most) REQUIRES(mutex) {
    mutex.check_.Leave();
    lock_check::BeforeWait();
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait_for(lock, most);
    lock.release();
    mutex.check_.Take();
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace vgpud
