// SPDX-License-Identifier: Apache-2.0
// The rules of base/locks/mutex.h in a build that checks them.
#include <gtest/gtest.h>

#include <thread>

#include "base/locks/mutex.h"

namespace vgpud {
namespace {

constexpr LockRank kOuter{"the outer one", 1, true};
constexpr LockRank kTree{"a part of the tree", 5, true, true};
constexpr LockRank kInner{"the inner one", 10};
constexpr LockRank kInnermost{"the innermost one", 20};

struct Locks {
  Mutex outer{kOuter};
  Mutex tree{kTree}, branch{kTree};
  Mutex inner{kInner}, other_inner{kInner};
  SharedMutex innermost{kInnermost};
};

TEST(LockCheck, RisingOrderIsRight) {
  Locks locks;
  MutexLock outer(locks.outer);
  MutexLock tree(locks.tree);
  MutexLock branch(locks.branch);
  lock_check::BeforeWait();
  MutexLock inner(locks.inner);
  ReaderLock innermost(locks.innermost);
}

TEST(LockCheck, EveryThreadHasItsOwn) {
  Locks locks;
  MutexLock inner(locks.inner);
  std::thread([&] {
    MutexLock outer(locks.outer);
    lock_check::BeforeWait();
  }).join();
}

TEST(LockCheck, LocksMayBeGivenBackInAnyOrder) {
  Locks locks;
  locks.outer.lock();
  locks.inner.lock();
  locks.outer.unlock();
  locks.inner.unlock();
  MutexLock outer(locks.outer);
  MutexLock inner(locks.other_inner);
}

TEST(LockCheckDeathTest, OutOfOrder) {
  Locks locks;
  EXPECT_DEATH(
      {
        MutexLock inner(locks.inner);
        MutexLock outer(locks.outer);
      },
      "takes the outer one while it holds the inner one");
  EXPECT_DEATH(
      {
        WriterLock innermost(locks.innermost);
        MutexLock inner(locks.inner);
      },
      "takes the inner one while it holds the innermost one");
}

TEST(LockCheckDeathTest, TwoOfARankThatDoesNotNest) {
  Locks locks;
  EXPECT_DEATH(
      {
        MutexLock inner(locks.inner);
        MutexLock other(locks.other_inner);
      },
      "takes the inner one while it holds the inner one");
}

TEST(LockCheckDeathTest, WaitingWithALockThatOthersNeed) {
  Locks locks;
  EXPECT_DEATH(
      {
        MutexLock outer(locks.outer);
        MutexLock inner(locks.inner);
        lock_check::BeforeWait();
      },
      "waits for others while it holds the inner one");
  CondVar changed;
  EXPECT_DEATH(
      {
        MutexLock inner(locks.inner);
        WriterLock innermost(locks.innermost);
        changed.WaitFor(locks.inner, std::chrono::seconds(1));
      },
      "waits for others while it holds the innermost one");
}

TEST(LockCheckDeathTest, CallingTheProgramWithALock) {
  Locks locks;
  lock_check::BeforeCallingTheProgram();
  EXPECT_DEATH(
      {
        MutexLock outer(locks.outer);
        lock_check::BeforeCallingTheProgram();
      },
      "calls the program while it holds the outer one");
}

TEST(LockCheckDeathTest, ReturningToTheProgramWithALock) {
  Locks locks;
  lock_check::BeforeReturning();
  EXPECT_DEATH(
      {
        MutexLock outer(locks.outer);
        lock_check::BeforeReturning();
      },
      "returns to the program while it holds the outer one");
}

TEST(LockCheck, AWaitHoldsTheMutexAgain) {
  Locks locks;
  CondVar changed;
  MutexLock outer(locks.outer);
  MutexLock inner(locks.inner);
  changed.WaitFor(locks.inner, std::chrono::nanoseconds(1));
  WriterLock innermost(locks.innermost);
}

}  // namespace
}  // namespace vgpud
