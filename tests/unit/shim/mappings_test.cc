// SPDX-License-Identifier: Apache-2.0
// What is mapped where, and the way to a file that memory shows.
#include "guest-driver-shim/libcuda/channel/mappings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBytes = 4 * kPage;
constexpr int kBoth = PROT_READ | PROT_WRITE;

uint64_t At(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// A file of /dev/shm, mapped.
class Mappings : public testing::Test {
 protected:
  Mappings() : fd_(mkstemp(name_)), at_(Map(kBoth, MAP_SHARED)) {}
  ~Mappings() override {
    munmap(at_, kBytes);
    close(fd_);
    unlink(name_);
  }
  void* Map(int protection, int flags, uint64_t offset = 0) {
    EXPECT_EQ(0, ftruncate(fd_, kBytes));
    return mmap(nullptr, kBytes - offset, protection, flags, fd_, static_cast<off_t>(offset));
  }
  char name_[32] = "/dev/shm/vgpu-mappings-XXXXXX";
  const int fd_;
  void* const at_;
};

TEST_F(Mappings, ASharedFileIsFoundWithItsOffset) {
  const ShownFile all = FileShown(At(at_), kBytes), part = FileShown(At(at_) + kPage, 2 * kPage);
  EXPECT_TRUE(all.Is(fd_));
  EXPECT_EQ(0u, all.offset);
  EXPECT_EQ(name_, all.name);
  EXPECT_TRUE(part.Is(fd_));
  EXPECT_EQ(kPage, part.offset);
  void* const later = Map(kBoth, MAP_SHARED, 3 * kPage);
  EXPECT_EQ(3 * kPage, FileShown(At(later), kPage).offset);
  munmap(later, kPage);
}

TEST_F(Mappings, InPiecesItIsOneFileAsLongAsTheyFollow) {
  void* const middle = static_cast<char*>(at_) + kPage;
  ASSERT_EQ(0, madvise(middle, kPage, MADV_DONTFORK));  // which makes a mapping of its own of it
  EXPECT_TRUE(FileShown(At(at_), kBytes).Is(fd_));
  ASSERT_NE(MAP_FAILED, mmap(middle, kPage, kBoth, MAP_SHARED | MAP_FIXED, fd_, 0));  // another page of it
  EXPECT_EQ(0u, FileShown(At(at_), kBytes).inode);
}

// Linux 6.11 answers questions about one mapping; older kernels list all of them.
TEST_F(Mappings, AskedForAndReadTheyAreTheSame) {
  using Parts = std::vector<std::pair<Mapping, uint64_t>>;
  const auto found = [](auto& each, uint64_t at, uint64_t bytes) {
    Parts parts;
    each(at, bytes, [&](const Mapping& m, uint64_t part) { parts.emplace_back(m, part); });
    return parts;
  };
  char* const own = static_cast<char*>(mmap(nullptr, 8 * kPage, kBoth, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(0, mprotect(own + kPage, kPage, PROT_READ));
  ASSERT_EQ(0, munmap(own + 3 * kPage, kPage));
  ASSERT_EQ(own + 5 * kPage, mmap(own + 5 * kPage, kPage, kBoth, MAP_SHARED | MAP_FIXED, fd_, kPage));
  ASSERT_EQ(0, mprotect(own + 6 * kPage, kPage, PROT_NONE));
  EXPECT_GE(found(ForEachMapping, At(own), 8 * kPage).size(), 6u);
  for (unsigned first = 0; first < 8; ++first) {
    for (unsigned pages = 1; first + pages <= 8; ++pages)
      EXPECT_EQ(found(ReadEachMapping, At(own) + first * kPage, pages * kPage),
                found(ForEachMapping, At(own) + first * kPage, pages * kPage))
          << first << " " << pages;
  }
  int on_stack = 0;
  EXPECT_EQ(found(ReadEachMapping, At(&on_stack), 1), found(ForEachMapping, At(&on_stack), 1));
  const auto code = reinterpret_cast<uint64_t>(&FileShown);
  EXPECT_EQ(found(ReadEachMapping, code, 1), found(ForEachMapping, code, 1));
  munmap(own, 8 * kPage);
}

TEST_F(Mappings, WhatIsNotSharedForBothIsNone) {
  void* const own = mmap(nullptr, kBytes, kBoth, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const copy = Map(kBoth, MAP_PRIVATE);
  void* const read = Map(PROT_READ, MAP_SHARED);
  for (void* const each : {own, copy, read}) {
    EXPECT_EQ(0u, FileShown(At(each), kBytes).inode);
    munmap(each, kBytes);
  }
  EXPECT_EQ(0u, FileShown(At(at_), kBytes + kPage).inode) << "not all of it";
}

TEST_F(Mappings, ItIsOpenedByItsNameOrByADescriptor) {
  const ShownFile shown = FileShown(At(at_), kBytes);
  const OwnedFd by_name = OpenShown(shown);
  EXPECT_TRUE(shown.Is(by_name.get()));
  unlink(name_);
  const OwnedFd by_descriptor = OpenShown(shown);
  EXPECT_TRUE(shown.Is(by_descriptor.get()));
  EXPECT_NE(fd_, by_descriptor.get()) << "one of our own: the program closes its one when it likes";
}

TEST_F(Mappings, AnotherFileOfItsNameIsNotIt) {
  const ShownFile shown = FileShown(At(at_), kBytes);
  unlink(name_);
  const OwnedFd other(open(name_, O_RDWR | O_CREAT | O_EXCL, 0600));
  ASSERT_TRUE(other);
  EXPECT_FALSE(shown.Is(other.get()));
  const OwnedFd opened = OpenShown(shown);
  EXPECT_TRUE(shown.Is(opened.get())) << "that of its descriptor";
}

}  // namespace
}  // namespace vgpud::cuda
