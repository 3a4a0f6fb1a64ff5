// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/dma_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vgpud::vfio {
namespace {

constexpr DmaTable::Access kReadWrite{true, true};
constexpr DmaTable::Access kReadOnly{true, false};

UniqueFd Memory(uint64_t bytes) { return *MakeSealedMemfd("guest", bytes); }
IovaRange Range(uint64_t start, uint64_t bytes) { return {Iova{start}, bytes}; }
Result<void> Map(DmaTable& table, IovaRange range, DmaTable::Access access, UniqueFd file, uint64_t offset) {
  ForeignFd sent{std::move(file)};
  return table.Map(range, access, sent, offset);
}
std::errc CodeOf(const Result<void>& result) { return result ? std::errc{} : result.error().code; }

TEST(IovaRangeTest, RangesOverlapWhenTheyShareAByte) {
  constexpr uint64_t kEnd = ~uint64_t{0};
  struct {
    IovaRange a, b;
    bool overlap;
  } const cases[] = {
      {Range(0x1000, 0x1000), Range(0x1000, 0x1000), true},
      {Range(0x1000, 0x1000), Range(0x1fff, 1), true},
      {Range(0x1000, 0x1000), Range(0x1000, 1), true},
      {Range(0x1000, 0x1000), Range(0x2000, 1), false},
      {Range(0x1000, 0x1000), Range(0xfff, 1), false},
      {Range(0x1000, 0x1000), Range(0xfff, 2), true},
      {Range(0x1000, 0x1000), Range(0x1800, 0), false},
      {Range(0x1000, 0x1000), Range(0, kEnd), true},
      {Range(kEnd, 1), Range(kEnd, 1), true},
      {Range(kEnd, 1), Range(0, 1), false},
      {Range(kEnd - 0xfff, 0x1000), Range(kEnd, 1), true},
      {Range(0x1000, 0), Range(0x1000, 0), false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.overlap, c.a.Overlaps(c.b)) << std::hex << c.a.first() << " " << c.b.first();
    EXPECT_EQ(c.overlap, c.b.Overlaps(c.a)) << std::hex << c.a.first() << " " << c.b.first();
  }
}

TEST(IovaRangeTest, WhatNobodyHasSaidIsNoMemory) {
  EXPECT_EQ(0u, IovaRange{}.bytes);
  EXPECT_EQ(0u, Area{}.bytes);
  EXPECT_EQ(0u, FilePiece{}.bytes);
  EXPECT_EQ(0u, FilePiece{}.offset);
  EXPECT_EQ(4096u, FilePiece{}.page);
  EXPECT_FALSE(FilePiece{}.writable);
  EXPECT_FALSE(DmaTable::Access{}.read);
  EXPECT_FALSE(DmaTable::Access{}.write);
}

TEST(DmaTableTest, ReadsAndWritesAcrossRegions) {
  DmaTable table;
  UniqueFd file = Memory(0x4000);
  ASSERT_TRUE(Map(table, Range(0x10000, 0x1000), kReadWrite, *Dup(file.get()), 0x3000));
  ASSERT_TRUE(Map(table, Range(0x11000, 0x1000), kReadWrite, *Dup(file.get()), 0x0000));
  const std::string text = "across the border";
  ASSERT_TRUE(table.Write(Iova{0x10ff8}, std::as_bytes(std::span{text})));
  char tail[9] = {};
  ASSERT_EQ(9, ::pread(file.get(), tail, 9, 0));
  EXPECT_EQ("he border", std::string(tail, 9));
  std::string back(text.size(), ' ');
  ASSERT_TRUE(table.Read(Iova{0x10ff8}, std::as_writable_bytes(std::span{back})));
  EXPECT_EQ(text, back);
}

TEST(DmaTableTest, RefusesBadRanges) {
  DmaTable table;
  ASSERT_TRUE(Map(table, Range(0x2000, 0x2000), kReadWrite, Memory(0x2000), 0));
  struct {
    IovaRange range;
    uint64_t offset;
    std::errc code;
  } const cases[] = {
      {Range(0x8000, 0), 0, std::errc::invalid_argument},
      {Range(~0ull - 0xfff, 0x2000), 0, std::errc::invalid_argument},
      {Range(0x8000, 0x1001), 0, std::errc::invalid_argument},
      {Range(0x8001, 0x1000), 0, std::errc::invalid_argument},
      {Range(0x8000, 0x1000), 1, std::errc::invalid_argument},
      {Range(0x8000, 0x3000), 0, std::errc::invalid_argument},
      {Range(0x8000, 0x1000), 0x2000, std::errc::invalid_argument},
      {Range(0x8000, 0x1000), 1ull << 40, std::errc::invalid_argument},
      {Range(0x8000, 0x1000), ~0ull - 0xfff, std::errc::invalid_argument},
      {Range(0x1000, 0x2000), 0, std::errc::file_exists},
      {Range(0x3000, 0x1000), 0, std::errc::file_exists},
      {Range(0, 0x8000), 0, std::errc::file_exists},
  };
  for (const auto& c : cases)
    EXPECT_EQ(c.code, CodeOf(Map(table, c.range, kReadWrite, Memory(0x2000), c.offset)))
        << std::hex << c.range.first() << " " << c.range.bytes << " " << c.offset;
  EXPECT_EQ(1u, table.regions());
  EXPECT_TRUE(Map(table, Range(0x1000, 0x1000), kReadWrite, Memory(0x1000), 0)) << "just below";
  EXPECT_TRUE(Map(table, Range(0x4000, 0x1000), kReadWrite, Memory(0x1000), 0)) << "just above";
  EXPECT_TRUE(Map(table, Range(~0ull - 0xfff, 0x1000), kReadWrite, Memory(0x1000), 0)) << "the last page";
}

TEST(DmaTableTest, RefusesWhatIsNoMemoryFile) {
  DmaTable table;
  int ends[2];
  ASSERT_EQ(0, ::pipe2(ends, O_CLOEXEC));
  const UniqueFd write_end{ends[1]};
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(Map(table, Range(0, 0x1000), kReadWrite, UniqueFd{ends[0]}, 0)));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(Map(table, Range(0, 0x1000), kReadWrite, *MakeEventFd(), 0)));
  UniqueFd directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(Map(table, Range(0, 0x1000), kReadOnly, std::move(directory), 0)));
  char path_of_disk_file[] = "dma_table_test.XXXXXX";
  UniqueFd on_disk{::mkostemp(path_of_disk_file, O_CLOEXEC)};
  ASSERT_TRUE(on_disk);
  ::unlink(path_of_disk_file);
  ASSERT_EQ(0, ::ftruncate(on_disk.get(), 0x1000));
  if (::fcntl(on_disk.get(), F_GET_SEALS) < 0) {
    EXPECT_EQ(std::errc::invalid_argument, CodeOf(Map(table, Range(0, 0x1000), kReadWrite, std::move(on_disk), 0)))
        << "a regular file, but no memory";
  }
  const UniqueFd memory = Memory(0x1000);
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  UniqueFd read_only{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  ASSERT_TRUE(read_only);
  EXPECT_EQ(std::errc::permission_denied, CodeOf(Map(table, Range(0, 0x1000), kReadWrite, *Dup(read_only.get()), 0)));
  EXPECT_TRUE(Map(table, Range(0, 0x1000), kReadOnly, std::move(read_only), 0));
}

TEST(DmaTableTest, ReadOnlyAndUnsharedMemoryAreErrorsThatSayWhy) {
  DmaTable table;
  ASSERT_TRUE(Map(table, Range(0, 0x1000), kReadOnly, Memory(0x1000), 0));
  ASSERT_TRUE(Map(table, Range(0x1000, 0x1000), kReadWrite, UniqueFd{}, 0));
  EXPECT_TRUE(table.Resolve(Range(0, 0x1000), false));
  const auto read_only = table.Resolve(Range(0, 0x1000), true);
  ASSERT_FALSE(read_only);
  EXPECT_EQ(std::errc::bad_address, read_only.error().code);
  const auto unshared = table.Resolve(Range(0x1000, 8), false);
  ASSERT_FALSE(unshared);
  EXPECT_EQ(std::errc::bad_address, unshared.error().code);
  EXPECT_NE(std::string::npos, unshared.error().context.find("memory-backend-memfd")) << unshared.error().context;
  EXPECT_NE(std::string::npos, unshared.error().context.find("<access mode='shared'/>"));
  EXPECT_EQ(std::errc::bad_address, table.Resolve(Range(0x2000, 1), false).error().code);
  EXPECT_EQ(std::errc::bad_address, table.Resolve(Range(0xfff, 2), true).error().code);
}

TEST(DmaTableTest, UnmapMatchesAMappingExactly) {
  DmaTable table;
  UniqueFd file = Memory(0x4000);
  for (uint64_t at = 0; at < 0x4000; at += 0x1000)
    ASSERT_TRUE(Map(table, Range(at, 0x1000), kReadWrite, *Dup(file.get()), at));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0, 0x800))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x800, 0x2000))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0, 0))));
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table.CheckUnmap(Range(0x9000, 0x1000))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x1000, 0x2000)))) << "two mappings";
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x3000, 0x2000)))) << "and what is not mapped";
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x1000, ~0x1000ull)))) << "to the end";
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x1000, ~0ull)))) << "wraps";
  EXPECT_TRUE(table.CheckUnmap(Range(0x1000, 0x1000)));
  table.Unmap(Range(0x1000, 0x1000));
  EXPECT_EQ(3u, table.regions());
  EXPECT_FALSE(table.Resolve(Range(0x1000, 1), false));
  EXPECT_TRUE(table.Resolve(Range(0x3000, 1), false));
}

TEST(DmaTableTest, OneDescriptorPerFileAndNoMoreThanTheLimits) {
  DmaTable table;
  UniqueFd file = Memory(0x2000);
  ASSERT_TRUE(Map(table, Range(0, 0x1000), kReadWrite, *Dup(file.get()), 0));
  ASSERT_TRUE(Map(table, Range(0x10000, 0x1000), kReadWrite, *Dup(file.get()), 0x1000));
  EXPECT_EQ((*table.Resolve(Range(0, 1), true))[0].file, (*table.Resolve(Range(0x10000, 1), true))[0].file);
  for (uint64_t i = table.regions(); i < 65535; ++i)
    ASSERT_TRUE(Map(table, Range(0x100000 + i * 0x1000, 0x1000), kReadWrite, UniqueFd{}, 0));
  EXPECT_EQ(std::errc::no_space_on_device, CodeOf(Map(table, Range(0x50000000, 0x1000), kReadWrite, UniqueFd{}, 0)));
  table.Clear();
  for (uint64_t i = 0; i < 256; ++i) ASSERT_TRUE(Map(table, Range(i * 0x1000, 0x1000), kReadWrite, Memory(0x1000), 0));
  EXPECT_EQ(std::errc::no_space_on_device,
            CodeOf(Map(table, Range(0x50000000, 0x1000), kReadWrite, Memory(0x1000), 0)));
}

TEST(DmaTableTest, SaysWhichPiecesOfWhichFilesARangeIs) {
  DmaTable table;
  const UniqueFd file = Memory(0x8000);
  ASSERT_TRUE(Map(table, Range(0x10000, 0x2000), kReadWrite, *Dup(file.get()), 0x5000));
  ASSERT_TRUE(Map(table, Range(0x12000, 0x1000), kReadOnly, *Dup(file.get()), 0x1000));
  ASSERT_TRUE(Map(table, Range(0x13000, 0x3000), kReadWrite, Memory(0x4000), 0x1000));
  const auto pieces = table.Resolve(Range(0x10800, 0x4000), false);
  ASSERT_TRUE(pieces);
  ASSERT_EQ(3u, pieces->size());
  struct {
    uint64_t offset, bytes, guest;
    bool writable;
  } const expected[] = {
      {0x5800, 0x1800, 0x10800, true}, {0x1000, 0x1000, 0x12000, false}, {0x1000, 0x1800, 0x13000, true}};
  for (size_t i = 0; i < 3; ++i) {
    const FilePiece& piece = (*pieces)[i];
    EXPECT_EQ(expected[i].offset, piece.offset) << i;
    EXPECT_EQ(expected[i].bytes, piece.bytes) << i;
    EXPECT_EQ(expected[i].guest, piece.guest.first()) << i;
    EXPECT_EQ(expected[i].bytes, piece.guest.bytes) << i;
    EXPECT_EQ(expected[i].writable, piece.writable) << i;
    EXPECT_EQ(4096u, piece.page) << i;
  }
  EXPECT_EQ((*pieces)[0].file, (*pieces)[1].file);
  EXPECT_NE((*pieces)[0].file, (*pieces)[2].file);
}

TEST(DmaTableTest, MemoryIsThereFromItsFirstToItsLastByteAndNotInGaps) {
  DmaTable table;
  ASSERT_TRUE(Map(table, Range(0x2000, 0x1000), kReadWrite, Memory(0x1000), 0));
  ASSERT_TRUE(Map(table, Range(0x4000, 0x1000), kReadWrite, Memory(0x1000), 0));
  ASSERT_TRUE(Map(table, Range(~0ull - 0xfff, 0x1000), kReadWrite, Memory(0x1000), 0));
  struct {
    IovaRange range;
    std::errc code;
  } const cases[] = {
      {Range(0x2000, 1), {}},
      {Range(0x2fff, 1), {}},
      {Range(0x2000, 0x1000), {}},
      {Range(~0ull, 1), {}},
      {Range(~0ull - 0xfff, 0x1000), {}},
      {Range(0x1fff, 1), std::errc::bad_address},
      {Range(0x1fff, 2), std::errc::bad_address},
      {Range(0x3000, 1), std::errc::bad_address},
      {Range(0x2fff, 2), std::errc::bad_address},
      {Range(0x2000, 0x3000), std::errc::bad_address},
      {Range(0x5000, 1), std::errc::bad_address},
      {Range(0x2000, 0), std::errc::invalid_argument},
      {Range(~0ull, 2), std::errc::invalid_argument},
      {Range(0x2000, ~0ull), std::errc::invalid_argument},
  };
  for (const auto& c : cases) {
    const auto pieces = table.Resolve(c.range, true);
    EXPECT_EQ(c.code, pieces ? std::errc{} : pieces.error().code)
        << std::hex << c.range.first() << " " << c.range.bytes;
  }
}

// Device memory and ROMs may be of any size and have no file.
TEST(DmaTableTest, RegionsOfASingleByteAndAtTheEndOfAllAddresses) {
  DmaTable table;
  ASSERT_TRUE(Map(table, Range(0x1001, 1), kReadWrite, UniqueFd{}, 0));
  ASSERT_TRUE(Map(table, Range(~0ull, 1), kReadWrite, UniqueFd{}, 0));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(Map(table, Range(~0ull - 0x1ffe, 0x2000), kReadWrite, UniqueFd{}, 0)))
      << "wraps by one byte";
  EXPECT_EQ(std::errc::file_exists, CodeOf(Map(table, Range(0x1001, 1), kReadWrite, UniqueFd{}, 0)));
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table.CheckUnmap(Range(0x1000, 1))));
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table.CheckUnmap(Range(0x1002, 1))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x1000, 2))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(0x1001, 2))));
  EXPECT_EQ(std::errc::invalid_argument, CodeOf(table.CheckUnmap(Range(~0ull, 2)))) << "wraps";
  EXPECT_TRUE(table.CheckUnmap(Range(0x1001, 1)));
  EXPECT_TRUE(table.CheckUnmap(Range(~0ull, 1)));
}

TEST(DmaTableTest, AFileIsAsWritableAsItsDescriptor) {
  DmaTable table;
  UniqueFd file{::memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  ASSERT_EQ(0, ::ftruncate(file.get(), 0x3000));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  UniqueFd read_only{::open(path.c_str(), O_RDONLY | O_CLOEXEC)},
      write_only{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  EXPECT_EQ(std::errc::permission_denied, CodeOf(Map(table, Range(0, 0x1000), kReadOnly, *Dup(write_only.get()), 0)));
  EXPECT_EQ(std::errc::permission_denied, CodeOf(Map(table, Range(0, 0x1000), kReadWrite, *Dup(write_only.get()), 0)));
  ASSERT_TRUE(Map(table, Range(0, 0x1000), kReadOnly, std::move(read_only), 0));
  ASSERT_TRUE(Map(table, Range(0x1000, 0x1000), kReadWrite, *Dup(file.get()), 0x1000));
  ASSERT_TRUE(Map(table, Range(0x2000, 0x1000), {false, true}, *Dup(file.get()), 0x2000));
  const std::byte bytes[8] = {};
  EXPECT_EQ(std::errc::bad_address, CodeOf(table.Write(Iova{0}, bytes)));
  EXPECT_TRUE(table.Write(Iova{0x1000}, bytes)) << "not through the first descriptor of that file";
  EXPECT_FALSE(table.Resolve(Range(0x2000, 1), false)) << "may not be read";
  EXPECT_FALSE(table.Resolve(Range(0x2000, 1), true));
  ASSERT_EQ(0, ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE));
  EXPECT_EQ(std::errc::bad_address, CodeOf(table.Write(Iova{0x1000}, bytes)));
}

TEST(DmaTableTest, AnAreaOverlapsWhatAnyOfItsPiecesOverlaps) {
  Area area;
  EXPECT_FALSE(area.Overlaps(Range(0, ~0ull)));
  area.pieces.push_back({nullptr, 0, 0x1000, true, Range(0x1000, 0x1000)});
  area.pieces.push_back({nullptr, 0, 0x1000, true, Range(0x5000, 0x1000)});
  EXPECT_TRUE(area.Overlaps(Range(0x1fff, 1)));
  EXPECT_TRUE(area.Overlaps(Range(0x5000, 1)));
  EXPECT_FALSE(area.Overlaps(Range(0x2000, 0x3000)));
}

TEST(DmaTableTest, AFileCutOffLaterIsAnErrorNotASignal) {
  DmaTable table;
  UniqueFd file{::memfd_create("guest", MFD_CLOEXEC)};
  ASSERT_EQ(0, ::ftruncate(file.get(), 0x2000));
  ASSERT_TRUE(Map(table, Range(0, 0x2000), kReadWrite, *Dup(file.get()), 0));
  ASSERT_EQ(0, ::ftruncate(file.get(), 0));
  std::byte bytes[64];
  EXPECT_EQ(std::errc::bad_address, CodeOf(table.Read(Iova{0x1000}, bytes)));
}

}  // namespace
}  // namespace vgpud::vfio
