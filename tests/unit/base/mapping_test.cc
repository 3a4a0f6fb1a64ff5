// SPDX-License-Identifier: Apache-2.0
#include "base/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"

namespace vgpud {
namespace {

constexpr size_t kPage = 4096;

bool IsMapped(const std::byte* page) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(page), kPage, &resident) == 0;
}

TEST(MappingTest, FrontPagesAreLetGoOf) {
  Mapping m = *Mapping::Anonymous(3 * kPage);
  std::byte* const at = m.data();
  m.UnmapFront(0);
  EXPECT_EQ(at, m.data());
  EXPECT_EQ(3 * kPage, m.size());
  m.UnmapFront(kPage);
  EXPECT_EQ(at + kPage, m.data());
  EXPECT_EQ(2 * kPage, m.size());
  EXPECT_FALSE(IsMapped(at));
  EXPECT_TRUE(IsMapped(at + kPage));
  m.UnmapFront(2 * kPage);
  EXPECT_FALSE(m);
  EXPECT_EQ(0u, m.size());
}

TEST(MappingDeathTest, NoMoreThanThereIsIsLetGoOf) {
  Mapping m = *Mapping::Anonymous(kPage);
  EXPECT_DEATH(m.UnmapFront(2 * kPage), "invariant broken");
}

TEST(MappingTest, GoesWithItsOwner) {
  const std::byte* at = nullptr;
  {
    Mapping first = *Mapping::Anonymous(kPage);
    at = first.data();
    Mapping second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(0u, first.size());
    Mapping third;
    third = std::move(second);
    EXPECT_EQ(at, third.data());
    EXPECT_EQ(kPage, third.bytes().size());
    EXPECT_TRUE(IsMapped(at));
  }
  EXPECT_FALSE(IsMapped(at));
}

TEST(MappingTest, ReservedSpaceIsTakenOnlyWhereItIsFree) {
  const Mapping first = *Mapping::Reserve(kPage);
  const auto second = Mapping::ReserveAt(reinterpret_cast<uint64_t>(first.data()), kPage);
  ASSERT_FALSE(second);
  EXPECT_EQ(std::errc::file_exists, second.error().code);
}

TEST(MappingTest, ReadOnlyViewsCannotBeWritten) {
  const UniqueFd file = *MakeSealedMemfd("t", 2 * kPage);
  const Mapping writable = *Mapping::Shared(file.get(), 0, 2 * kPage);
  const Mapping view = *Mapping::Shared(file.get(), kPage, kPage, false);
  *writable.At<uint32_t>(kPage) = 7;
  EXPECT_EQ(7u, *view.At<uint32_t>(0)) << "from its offset on";
  const UniqueFd zero = *MakeSealedMemfd("zero", kPage);
  // The kernel refuses to write there what it reads from a file.
  EXPECT_EQ(-1, ::pread(zero.get(), view.data(), kPage, 0));
  EXPECT_EQ(ssize_t{kPage}, ::pread(zero.get(), writable.data(), kPage, 0));
  Mapping area = *Mapping::Reserve(2 * kPage);
  ASSERT_TRUE(area.MapAt(0, file.get(), 0, kPage, false));
  ASSERT_TRUE(area.MapAt(kPage, file.get(), 0, kPage, true));
  EXPECT_EQ(-1, ::pread(zero.get(), area.data(), kPage, 0));
  EXPECT_EQ(ssize_t{kPage}, ::pread(zero.get(), area.data() + kPage, kPage, 0));
}

}  // namespace
}  // namespace vgpud
