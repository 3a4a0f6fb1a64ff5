// SPDX-License-Identifier: Apache-2.0
// Who may write which slice page, and what ends a sleep on a bell.
#include "base/slice_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace vgpud {
namespace {

TEST(SliceMemoryTest, WhoGetsTheGrantPageReadsItAndCannotWriteIt) {
  const SliceMemory memory = *MakeSliceMemory("test");
  const SliceView view = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
  memory.grant_page().grant = 3;
  EXPECT_EQ(3u, view.grant_page().grant.load());
  const auto writable = Mapping::Shared(memory.grant_fd.get(), 0, kGrantPageBytes);
  ASSERT_FALSE(writable);
  EXPECT_EQ(std::errc::permission_denied, writable.error().code);
  EXPECT_EQ(-1, ::mprotect(view.grant.data(), kGrantPageBytes, PROT_READ | PROT_WRITE));
  EXPECT_EQ(-1, ::pwrite(memory.grant_fd.get(), "x", 1, 0));
  EXPECT_EQ(-1, ::ftruncate(memory.grant_fd.get(), 0));
}

TEST(SliceMemoryTest, TheGrantPageCannotBeOpenedAgainByUsers) {
  const SliceMemory memory = *MakeSliceMemory("test");
  struct stat st {};
  ASSERT_EQ(0, ::fstat(memory.grant_fd.get(), &st));
  EXPECT_EQ(0u, st.st_mode & 07777);
  EXPECT_EQ(O_RDONLY, ::fcntl(memory.grant_fd.get(), F_GETFL) & O_ACCMODE);
}

TEST(SliceMemoryTest, WhatExecutorsWriteIsSeenByVgpud) {
  const SliceMemory memory = *MakeSliceMemory("test");
  const SliceView view = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
  view.slot_page().slots[5].kernels = 7;
  EXPECT_EQ(7u, memory.slot_page().slots[5].kernels.load());
}

TEST(SliceMemoryTest, PagesOfAnotherBuildAreRefused) {
  const SliceMemory memory = *MakeSliceMemory("test");
  memory.grant_page().version = kSliceVersion + 1;
  EXPECT_FALSE(MapSlices(memory.grant_fd.get(), memory.slots_fd.get()));
}

class BellTest : public testing::Test {
 protected:
  // As vgpud sleeps: on the view that it cannot write.
  FutexWord Bell() { return {&memory_.slot_page().bell, memory_.slot_page().bell.load()}; }
  SliceMemory memory_ = *MakeSliceMemory("test");
  SliceView view_ = *MapSlices(memory_.grant_fd.get(), memory_.slots_fd.get());
};

TEST_F(BellTest, ARingBetweenLookingAndSleepingIsNotLost) {
  const FutexWord bells[] = {Bell()};
  Ring(view_.slot_page());
  EXPECT_FALSE(FutexWaitAny(bells).timed_out);
}

TEST_F(BellTest, ARingEndsASleepOnSeveralBells) {
  std::atomic<uint32_t> other{0};
  const FutexWord bells[] = {{&other, 0}, Bell()};
  std::thread executor([&] { Ring(view_.slot_page()); });
  EXPECT_FALSE(FutexWaitAny(bells).timed_out);
  executor.join();
}

TEST_F(BellTest, WithoutARingTheSleepEndsWhenItsTimeComes) {
  const FutexWord bells[] = {Bell()};
  const uint64_t wake = MonotonicNs() + 1'000'000;
  EXPECT_TRUE(FutexWaitAny(bells, wake).timed_out);
  EXPECT_GE(MonotonicNs(), wake);
}

}  // namespace
}  // namespace vgpud
