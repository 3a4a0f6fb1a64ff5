// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "base/sanitizer.h"

namespace vgpud {
namespace {

void Write(std::byte* at) { *reinterpret_cast<volatile std::byte*>(at) = std::byte{1}; }
// A sanitizer ends the process in a way of its own.
bool Segfaults(int status) {
  return kSanitizerBuild ? status != 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST(GuardedMemory, IsZeroedAndWritableToItsLastByte) {
  const auto memory = GuardedMemory::Make(100);
  ASSERT_TRUE(memory);
  EXPECT_EQ(GuardedMemory::kPage, memory->bytes());
  std::byte* const object = memory->EndingHere(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(std::byte{0}, object[i]);
  Write(object);
  Write(object + 99);
}

TEST(GuardedMemory, GrowsInItsPlaceAsFarAsItWasMadeFor) {
  auto memory = GuardedMemory::Make(GuardedMemory::kPage, 4 * GuardedMemory::kPage);
  ASSERT_TRUE(memory);
  std::byte* const begin = memory->data();
  Write(begin);
  EXPECT_FALSE(memory->Grow(0)) << "it does not shrink";
  EXPECT_FALSE(memory->Grow(4 * GuardedMemory::kPage + 1));
  EXPECT_FALSE(memory->Grow(SIZE_MAX));
  EXPECT_EQ(GuardedMemory::kPage, memory->bytes());
  for (const size_t pages : {1, 3, 4}) {
    ASSERT_TRUE(memory->Grow(pages * GuardedMemory::kPage));
    EXPECT_EQ(begin, memory->data());
    EXPECT_EQ(pages * GuardedMemory::kPage, memory->bytes());
    EXPECT_EQ(std::byte{pages == 1}, begin[(pages - 1) * GuardedMemory::kPage])
        << "what was there stays, the rest is zero";
    Write(begin + memory->bytes() - 1);
  }
  EXPECT_FALSE(GuardedMemory::Make(2 * GuardedMemory::kPage, GuardedMemory::kPage));
}

TEST(GuardedMemoryDeathTest, WhatIsNotOpenYetKillsTheWriter) {
  auto memory = GuardedMemory::Make(GuardedMemory::kPage, 4 * GuardedMemory::kPage);
  ASSERT_TRUE(memory && memory->Grow(2 * GuardedMemory::kPage));
  EXPECT_EXIT(Write(memory->data() + 2 * GuardedMemory::kPage), Segfaults, "");
}

TEST(GuardedMemoryDeathTest, OneByteBehindItKillsTheWriter) {
  const auto memory = GuardedMemory::Make(5000);
  ASSERT_TRUE(memory);
  EXPECT_EXIT(Write(memory->EndingHere(5000) + 5000), Segfaults, "");
  EXPECT_EXIT(Write(memory->data() + memory->bytes()), Segfaults, "");
}

TEST(GuardedMemoryDeathTest, OneByteBeforeItsPagesKillsTheWriter) {
  const auto memory = GuardedMemory::Make(64);
  ASSERT_TRUE(memory);
  EXPECT_EXIT(Write(memory->data() - 1), Segfaults, "");
}

TEST(GuardedMemoryDeathTest, No32BitOffsetReachesAnythingElse) {
  const auto memory = GuardedMemory::Make(64);
  const auto other = GuardedMemory::Make(64);
  ASSERT_TRUE(memory && other);
  for (const uint64_t offset : {uint64_t{64 << 10}, uint64_t{1} << 31, uint64_t{UINT32_MAX}}) {
    EXPECT_EXIT(Write(memory->EndingHere(64) + offset), Segfaults, "") << offset;
    EXPECT_EXIT(Write(memory->EndingHere(64) - offset), Segfaults, "") << offset;
  }
}

TEST(GuardedMemory, NothingOfNoSizeOrMoreThanThereIs) {
  EXPECT_EQ(std::errc::invalid_argument, GuardedMemory::Make(0).error().code);
  EXPECT_EQ(std::errc::invalid_argument, GuardedMemory::Make(SIZE_MAX / 2 + 1).error().code);
  EXPECT_EQ(std::errc::not_enough_memory, GuardedMemory::Make(SIZE_MAX / 2).error().code) << "as far as mmap goes";
}

TEST(GuardedMemory, IsWholePages) {
  EXPECT_EQ(4096u, GuardedMemory::Rounded(1));
  EXPECT_EQ(4096u, GuardedMemory::Rounded(4096));
  EXPECT_EQ(8192u, GuardedMemory::Rounded(4097));
  EXPECT_EQ((uint64_t{4} << 30) + 65536, GuardedMemory::kGuardBytes);
}

TEST(GuardedMemory, GoesWithItsOwner) {
  GuardedMemory first = *GuardedMemory::Make(64);
  std::byte* const at = first.data();
  GuardedMemory second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(0u, first.bytes());
  GuardedMemory third;
  third = std::move(second);
  EXPECT_EQ(at, third.data());
  EXPECT_EQ(4096u, third.bytes());
}

}  // namespace
}  // namespace vgpud
