// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/page_swap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBytes = 3 * kPage;

class PageSwap : public testing::Test {
 protected:
  PageSwap() {
    memset(own_, 0x11, kBytes);
    const int fd = memfd_create("buffer", MFD_CLOEXEC);
    EXPECT_EQ(0, ftruncate(fd, kBytes));
    buffer_ = static_cast<unsigned char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
  }
  ~PageSwap() override {
    munmap(own_, kBytes);
    munmap(buffer_, kBytes);
  }
  void SetUp() override {
    if (!CanReplacePages()) GTEST_SKIP() << "userfaultfd(2) is forbidden here";
  }
  static unsigned char* Pages() {
    return static_cast<unsigned char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  static uint64_t At(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
  bool Replace() {
    return ReplacePages(
        At(own_), kBytes, buffer_,
        [](void* context) {
          auto* const self = static_cast<PageSwap*>(context);
          usleep(200);  // in which others would lose what they write, if they could
          return mremap(self->buffer_, 0, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, self->own_) != MAP_FAILED;
        },
        this);
  }

  unsigned char* const own_ = Pages();
  unsigned char* buffer_ = nullptr;
};

TEST_F(PageSwap, IsOneMemoryUntilItIsRestored) {
  own_[5] = 1;
  ASSERT_TRUE(Replace());
  EXPECT_EQ(1, buffer_[5]);
  EXPECT_EQ(0x11, buffer_[kBytes - 1]);
  own_[5] = 2;
  EXPECT_EQ(2, buffer_[5]);
  buffer_[kPage] = 3;
  EXPECT_EQ(3, own_[kPage]);
  ASSERT_TRUE(RestorePages(At(own_), kBytes, buffer_));
  EXPECT_EQ(2, own_[5]);
  EXPECT_EQ(3, own_[kPage]);
  EXPECT_EQ(0x11, own_[kBytes - 1]);
  own_[5] = 4;
  EXPECT_EQ(2, buffer_[5]);
}

class TreatmentTest : public PageSwap {
 protected:
  std::optional<Treatment> Own() {
    const auto found = TreatmentOf(At(own_), kBytes), read = ReadTreatment(At(own_), kBytes);
    EXPECT_EQ(read.has_value(), found.has_value());
    EXPECT_TRUE(!read || *read == *found);
    return found;
  }
};

TEST_F(TreatmentTest, WhatTheProgramHasSaidIsFoundOut) {
  const Treatment none = *Own();
  EXPECT_EQ(Treatment{}, none);
  for (const int advice : {MADV_DONTDUMP, MADV_WIPEONFORK, MADV_DONTFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
                           MADV_MERGEABLE, MADV_SEQUENTIAL, MADV_RANDOM}) {
    unsigned char* const other = Pages();
    memset(other, 7, kBytes);
    if (madvise(other, kBytes, advice) == 0) {
      const auto said = TreatmentOf(At(other), kBytes);
      ASSERT_TRUE(said) << advice;
      EXPECT_FALSE(*said == none) << advice;
      EXPECT_EQ(ReadTreatment(At(other), kBytes), said) << advice;
    }
    for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(7, other[i]) << "it is where it was";
    munmap(other, kBytes);
  }
  // Not by the C library's functions, which sanitizers replace by nothing.
  ASSERT_EQ(0, syscall(SYS_mlock, own_, kBytes));
  EXPECT_TRUE(Own()->locked);
  EXPECT_TRUE(ReadTreatment(At(own_), kBytes)->locked) << "and stays so";
  ASSERT_EQ(0, syscall(SYS_munlock, own_, kBytes));
  EXPECT_FALSE(Own()->locked);
  ASSERT_EQ(0, madvise(own_ + kPage, kPage, MADV_DONTFORK));
  EXPECT_FALSE(Own()) << "not the same everywhere";
  ASSERT_EQ(0, madvise(own_, kBytes, MADV_DONTFORK));
  EXPECT_FALSE(Own()->is_for_children());
}

TEST_F(TreatmentTest, PagesThatThisThreadUsesAreLeftAlone) {
  int here = 0;
  const uint64_t stack = At(&here) & ~(kPage - 1), thread = At(__builtin_thread_pointer()) & ~(kPage - 1);
  for (const uint64_t page : {stack, stack + kPage, stack - kPage, thread, thread - kPage})
    EXPECT_EQ(ReadTreatment(page, kPage), TreatmentOf(page, kPage));
}

TEST_F(TreatmentTest, OtherThreadsSeeTheirPagesAllTheTime) {
  std::atomic<bool> end{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&, i] {
      auto* const mine = reinterpret_cast<uint64_t*>(own_ + 64 * (i + 1));
      for (uint64_t n = 0; !end; ++n) {
        __atomic_store_n(mine, n, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(mine, __ATOMIC_SEQ_CST) != n || __atomic_load_n(own_, __ATOMIC_SEQ_CST) != 0x11) ++wrong;
      }
    });
  for (int round = 0; round < 2000; ++round) ASSERT_EQ(Treatment{}, TreatmentOf(At(own_), kBytes));
  end = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(0u, wrong);
}

TEST_F(PageSwap, NoWriteOfAnotherThreadIsLost) {
  std::atomic<bool> end{false};
  std::vector<std::thread> writers;
  std::vector<uint64_t> counted(3);
  for (size_t i = 0; i < counted.size(); ++i)
    writers.emplace_back([&, i] {
      auto* const mine = reinterpret_cast<uint64_t*>(own_ + i * kPage + 64);
      __atomic_store_n(mine, 0, __ATOMIC_SEQ_CST);
      for (; !end.load(); ++counted[i]) __atomic_fetch_add(mine, 1, __ATOMIC_SEQ_CST);
    });
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Replace());
    ASSERT_TRUE(RestorePages(At(own_), kBytes, buffer_));
  }
  end = true;
  for (std::thread& writer : writers) writer.join();
  for (size_t i = 0; i < counted.size(); ++i)
    EXPECT_EQ(counted[i], *reinterpret_cast<uint64_t*>(own_ + i * kPage + 64));
}

TEST_F(PageSwap, WhatIsNotReplacedIsAsItWas) {
  EXPECT_FALSE(ReplacePages(
      At(own_), kBytes, buffer_, [](void*) { return false; }, nullptr));
  own_[0] = 9;
  EXPECT_EQ(0x11, own_[1]);
  EXPECT_EQ(0x11, buffer_[0]);
}

TEST_F(PageSwap, KnowsWhatIsTheProgramsAlone) {
  EXPECT_TRUE(IsOwnMemory(At(own_), kBytes));
  EXPECT_FALSE(IsOwnMemory(At(buffer_), kPage)) << "shared";
  unsigned char here = 0;
  EXPECT_FALSE(IsOwnMemory(At(&here) & ~(kPage - 1), kPage)) << "the stack";
  ASSERT_EQ(0, mprotect(own_ + kPage, kPage, PROT_READ));
  EXPECT_FALSE(IsOwnMemory(At(own_), kBytes)) << "not to be written";
  EXPECT_TRUE(IsOwnMemory(At(own_), kPage));
  munmap(own_ + kPage, kPage);
  EXPECT_FALSE(IsOwnMemory(At(own_), kBytes)) << "a hole";
}

TEST_F(PageSwap, KnowsWhatIsThere) {
  EXPECT_EQ(0u, BytesShown(At(own_), kBytes, buffer_));
  ASSERT_TRUE(Replace());
  EXPECT_EQ(kBytes, BytesShown(At(own_), kBytes, buffer_));
  EXPECT_EQ(0u, BytesShown(At(own_) + kPage, kPage, buffer_)) << "another part of it";
  mmap(own_, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  EXPECT_EQ(kBytes - kPage, BytesShown(At(own_), kBytes, buffer_));
}

}  // namespace
}  // namespace vgpud::cuda
