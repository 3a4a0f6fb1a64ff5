// SPDX-License-Identifier: Apache-2.0
// The heap of kernels, what they have printed and the memory of blocks: limits, places, and what a file may say of
// them.
#include "gpu/soft/run/device_state.h"

#include <gmock/gmock.h>

#include "gpu/soft/memory/pinned_blocks.h"
#include "tests/unit/soft/rig/state_fields.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

TEST(DeviceHeap, HasTheSizeThatCudaDocumentsUntilItIsToldAnother) {
  DeviceHeap heap;
  EXPECT_EQ(heap.wanted_bytes(), 8u << 20) << "cudaLimitMallocHeapSize";
  EXPECT_FALSE(heap.ready());
  heap.SetBytes(4096);
  EXPECT_EQ(heap.wanted_bytes(), 4096u);
  heap.Give(GpuVa{0x10000}, 4096);
  EXPECT_TRUE(heap.ready());
}

TEST(DeviceHeap, CoversItsMemoryAndNothingElse) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10000}, 4096);
  struct Case {
    uint64_t address, bytes;
    bool covered;
  };
  const Case cases[] = {{0x10000, 4096, true}, {0x10000, 4097, false},      {0xffff, 1, false},
                        {0x10001, 4095, true}, {0x10001, 4096, false},      {0x10fff, 1, true},
                        {0x11000, 1, false},   {0x11000, 0, true},          {0x11001, 0, false},
                        {0, 0, false},         {0x10000, UINT64_MAX, false}};
  for (const Case& c : cases) EXPECT_EQ(heap.Covers(c.address, c.bytes), c.covered) << c.address << ", " << c.bytes;
}

TEST(DeviceHeap, TakesMultiplesOf16FromTheSmallestRangeThatHoldsThem) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10000}, 256);
  EXPECT_EQ(heap.Allocate(1), 0x10000u);
  EXPECT_EQ(heap.Allocate(16), 0x10010u);
  EXPECT_EQ(heap.Allocate(17), 0x10020u);
  EXPECT_EQ(heap.Allocate(48), 0x10040u);
  EXPECT_EQ(heap.Allocate(16), 0x10070u);
  EXPECT_EQ(heap.Allocate(16), 0x10080u);
  ASSERT_TRUE(heap.Free(0x10040));
  ASSERT_TRUE(heap.Free(0x10010));
  EXPECT_EQ(heap.Allocate(10), 0x10010u) << "not the 48 bytes, not the rest";
  EXPECT_EQ(heap.Allocate(20), 0x10040u);
  EXPECT_EQ(heap.Allocate(112), 0x10090u) << "all of the rest";
  EXPECT_EQ(heap.Allocate(17), 0u);
  EXPECT_EQ(heap.Allocate(16), 0x10060u);
  EXPECT_EQ(heap.Allocate(1), 0u);
}

TEST(DeviceHeap, AnAlignedPlaceLeavesWhatIsAroundItFree) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10010}, 512);
  EXPECT_EQ(heap.Allocate(64, 1024), 0u) << "the alignment is larger than the heap";
  EXPECT_EQ(heap.Allocate(512 - 240 + 1, 256), 0u);
  EXPECT_EQ(heap.Allocate(32, 256), 0x10100u);
  EXPECT_EQ(heap.Allocate(240), 0x10010u) << "what is before it";
  EXPECT_EQ(heap.Allocate(240), 0x10120u) << "what is behind it";
  EXPECT_EQ(heap.Allocate(1), 0u);
  for (const uint64_t at : {0x10010, 0x10100, 0x10120}) EXPECT_TRUE(heap.Free(at));
  EXPECT_EQ(heap.Allocate(512), 0x10010u);
}

TEST(DeviceHeap, AnAlignmentOfTheWholeHeapCanBe) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10000}, 512);
  EXPECT_EQ(heap.Allocate(17, 512), 0u) << "where a range of 512 begins, it may have no aligned place for so much";
  EXPECT_EQ(heap.Allocate(16, 512), 0x10000u);
}

TEST(DeviceHeap, FreeRangesJoinOnBothSides) {
  const std::array<uint64_t, 3> orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    DeviceHeap heap;
    heap.Give(GpuVa{0x1000}, 96);
    for (int n = 0; n < 3; ++n) ASSERT_NE(heap.Allocate(32), 0u);
    for (const uint64_t n : order) EXPECT_TRUE(heap.Free(0x1000 + 32 * n));
    EXPECT_EQ(heap.Allocate(96), 0x1000u);
  }
}

TEST(DeviceHeap, RecordsOfAllocationsAreHostMemory) {
  HostMemory host(64 * kMiB);
  DeviceHeap heap(&host);
  heap.Give(GpuVa{0x1000}, 4096);
  EXPECT_NE(heap.Allocate(16), 0u);
  host.Add(16 * kMiB - 512);
  EXPECT_NE(heap.Allocate(16), 0u) << "what is tolerated";
  host.Add(1);
  EXPECT_EQ(heap.Allocate(16), 0u);
}

// Arena with a pinned block of 4096 bytes.
struct HeapFile {
  HeapFile() : arena(2 * kMiB), begin(Raw(*arena.Alloc(4096, true))) {}
  GpuError Load(DeviceHeap& heap, const StateFields& fields) {
    PinnedBlocks pinned(arena);
    return ErrorOfReading(fields.bytes(), [&](StateReader& in) { heap.Load(in, pinned); });
  }
  StateFields Used(std::initializer_list<std::pair<uint64_t, uint64_t>> used) const {
    StateFields fields = StateFields().U64(1000).U64(4096).U64(begin).U64(used.size());
    for (const auto& [at, bytes] : used) fields.U64(at).U64(bytes);
    return fields;
  }
  Arena arena;
  uint64_t begin;
};

TEST(DeviceHeapState, AllocationsThatCannotBeAreRefused) {
  HeapFile file;
  struct Case {
    StateFields fields;
    const char* text;
  };
  const Case cases[] = {
      {StateFields().U64(77).U64(0), ""},
      {file.Used({}), ""},
      {file.Used({{0, 4096}}), ""},
      {file.Used({{0, 16}, {16, 16}, {4080, 16}}), ""},
      {StateFields().U64(1).U64(4096).U64(file.begin + 512).U64(0), "bad heap"},
      {StateFields().U64(1).U64(4095).U64(file.begin).U64(0), "bad heap"},
      {StateFields().U64(1).U64(4096).U64(file.begin).U64(2'000'001), "bad number of heap allocations (0x1e8481)"},
      {StateFields().U64(1).U64(4096).U64(file.begin).U64(2'000'000), "it ends after 32 bytes"},
      {file.Used({{4112, 16}}), "bad place of a heap allocation"},
      {file.Used({{4096, 0}}), "bad heap allocation (0x1000)"},
      {file.Used({{4096, 16}}), "bad size of a heap allocation"},
      {file.Used({{4080, 32}}), "bad size of a heap allocation"},
      {file.Used({{8, 16}}), "bad heap allocation (0x8)"},
      {file.Used({{16, 8}}), "bad heap allocation (0x10)"},
      {file.Used({{16, 17}}), "bad heap allocation (0x10)"},
      {file.Used({{0, 0}}), "bad heap allocation (0x0)"},
      {file.Used({{0, 32}, {16, 16}}), "bad heap allocation (0x10)"},
      {file.Used({{32, 16}, {0, 16}}), "bad heap allocation (0x0)"},
  };
  for (size_t n = 0; n < std::size(cases); ++n) {
    DeviceHeap heap;
    const GpuError error = file.Load(heap, cases[n].fields);
    if (*cases[n].text == '\0') {
      EXPECT_EQ(error.text, "") << n;
    } else {
      EXPECT_THAT(error.text, HasSubstr(cases[n].text)) << n;
    }
  }
}

TEST(DeviceHeapState, WhatIsBetweenAllocationsIsFree) {
  HeapFile file;
  DeviceHeap heap;
  ASSERT_EQ(file.Load(heap, file.Used({{32, 16}, {64, 32}})).text, "");
  EXPECT_EQ(heap.wanted_bytes(), 1000u);
  EXPECT_TRUE(heap.Covers(file.begin, 4096));
  EXPECT_EQ(heap.Allocate(16), file.begin + 48);
  EXPECT_EQ(heap.Allocate(32), file.begin);
  EXPECT_EQ(heap.Allocate(4000), file.begin + 96);
  EXPECT_EQ(heap.Allocate(1), 0u);
  EXPECT_TRUE(heap.Free(file.begin + 64));
  EXPECT_FALSE(heap.Free(file.begin + 80));
  EXPECT_EQ(heap.Allocate(32), file.begin + 64);
  DeviceHeap none;
  ASSERT_EQ(file.Load(none, StateFields().U64(77).U64(0)).text, "");
  EXPECT_EQ(none.wanted_bytes(), 77u);
  EXPECT_FALSE(none.ready());
}

size_t TakenBytes(PrintBuffer& buffer, size_t room) {
  std::vector<std::byte> out(room);
  bool to_stderr = false;
  return buffer.Take(out, &to_stderr);
}

TEST(PrintBuffer, CapacityIsOneMiBAndAtMost64) {
  PrintBuffer buffer;
  EXPECT_EQ(buffer.capacity(), 1u << 20);
  buffer.SetCapacity(12345);
  EXPECT_EQ(buffer.capacity(), 12345u);
  buffer.SetCapacity(64 << 20);
  EXPECT_EQ(buffer.capacity(), 64u << 20);
  buffer.SetCapacity((64 << 20) + 1);
  EXPECT_EQ(buffer.capacity(), 64u << 20);
}

TEST(PrintBuffer, WhatFitsExactlyStaysAndOneByteMoreDropsTheOldest) {
  PrintBuffer buffer;
  buffer.SetCapacity(1000);
  buffer.Append(false, "");
  buffer.Append(false, std::string(452, 'a'));
  buffer.Append(false, std::string(452, 'b'));  // each with 48 of book-keeping
  EXPECT_EQ(buffer.bytes(), 904u);
  EXPECT_EQ(TakenBytes(buffer, 100), 100u);
  buffer.Append(false, std::string(52, 'c'));
  EXPECT_EQ(buffer.bytes(), 856u);
  buffer.Append(false, std::string(1, 'd'));
  EXPECT_EQ(buffer.bytes(), 505u) << "the rest of the first one is gone";
  EXPECT_EQ(TakenBytes(buffer, 452), 452u);
  EXPECT_EQ(TakenBytes(buffer, 1000), 53u);
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_EQ(TakenBytes(buffer, 10), 0u);
  buffer.Append(false, std::string(952, 'e'));
  EXPECT_EQ(buffer.bytes(), 952u) << "nothing of what was taken counts any more";
  buffer.Append(false, std::string(953, 'f'));
  EXPECT_EQ(buffer.bytes(), 0u) << "more than there is room for";
}

TEST(PrintBuffer, ASmallerCapacityDropsTheOldest) {
  PrintBuffer buffer;
  for (int n = 0; n < 4; ++n) buffer.Append(false, std::string(52, 'x'));
  buffer.SetCapacity(300);
  EXPECT_EQ(buffer.bytes(), 3 * 52u);
  buffer.SetCapacity(299);
  EXPECT_EQ(buffer.bytes(), 2 * 52u);
}

TEST(PrintBuffer, WithoutHostMemoryTheOldestGoes) {
  HostMemory host(64 * kMiB);
  PrintBuffer buffer(&host);
  buffer.Append(false, "one");
  EXPECT_EQ(buffer.bytes(), 3u);
  host.Add(16 * kMiB);
  buffer.Append(false, "two");
  EXPECT_EQ(buffer.bytes(), 6u);
  host.Add(1);
  buffer.Append(false, "three");
  EXPECT_EQ(buffer.bytes(), 0u);
}

TEST(PrintBufferState, TextsThatCannotBeAreRefused) {
  struct Case {
    StateFields fields;
    const char* text;
  };
  const Case cases[] = {
      {StateFields().U64(1000).U64(2).U8(0).Text("out").U8(1).Text("err"), ""},
      {StateFields().U64(64 << 20).U64(0), ""},
      {StateFields().U64((64 << 20) + 1).U64(0), "bad print capacity"},
      {StateFields().U64(1).U64(2), "bad number of printed texts (0x2)"},
      {StateFields().U64(2).U64(2), "it ends"},
      {StateFields().U64(100).U64(1).U8(2).Text("x"), "bad kind of a printed text (0x2)"},
      {StateFields().U64(100).U64(1).U8(1).U64((64 << 20) + 1), "bad length of a printed text"},
  };
  for (size_t n = 0; n < std::size(cases); ++n) {
    PrintBuffer buffer;
    const GpuError error = ErrorOfReading(cases[n].fields.bytes(), [&](StateReader& in) { buffer.Load(in); });
    if (*cases[n].text == '\0') {
      EXPECT_EQ(error.text, "") << n;
    } else {
      EXPECT_THAT(error.text, HasSubstr(cases[n].text)) << n;
    }
  }
  PrintBuffer buffer;
  ErrorOfReading(cases[0].fields.bytes(), [&](StateReader& in) { buffer.Load(in); });
  EXPECT_EQ(buffer.capacity(), 1000u);
  std::byte out[10];
  bool to_stderr = true;
  EXPECT_EQ(buffer.Take(out, &to_stderr), 3u);
  EXPECT_FALSE(to_stderr);
  EXPECT_EQ(buffer.Take(out, &to_stderr), 3u);
  EXPECT_TRUE(to_stderr);
  EXPECT_EQ(Written([&](StateWriter& w) { buffer.Save(w); }), StateFields().U64(1000).U64(0).bytes());
}

TEST(BlockPool, SmallRegionsAreKeptLargeOnesNot) {
  for (const auto& [bytes, kept] :
       {std::pair{4096ul, 4096ul}, {4097ul, 8192ul}, {2048 * kKiB, 2048 * kKiB}, {2048 * kKiB + 1, 0ul}}) {
    HostMemory host;
    BlockPool pool(host);
    {
      const auto region = pool.Take(bytes);
      ASSERT_TRUE(region);
      EXPECT_EQ(pool.in_use(), BlockPool::Cost(bytes));
      EXPECT_EQ(host.used(), BlockPool::Cost(bytes));
    }
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(host.used(), kept) << bytes;
    pool.Drop();
    EXPECT_EQ(host.used(), 0u);
  }
}

TEST(BlockPool, KeepsAtMost32MiB) {
  HostMemory host;
  BlockPool pool(host);
  {
    std::vector<BlockPool::Region> many;
    for (int n = 0; n < 40; ++n) many.push_back(pool.Take(kMiB));
    EXPECT_EQ(pool.in_use(), 40 * kMiB);
  }
  EXPECT_EQ(host.used(), 32 * kMiB);
  const auto one = pool.Take(kMiB);
  EXPECT_EQ(host.used(), 32 * kMiB) << "one of those that are kept";
  EXPECT_EQ(pool.in_use(), kMiB);
  const auto other = pool.Take(4096);
  EXPECT_EQ(host.used(), 32 * kMiB + 4096) << "of another size";
}

TEST(BlockPool, ThereIsABoundOnRegionsAndThoseThatWentBackDoNotCount) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "needs most of the address space";
#endif
  HostMemory host;
  BlockPool pool(host);
  { const auto large = pool.Take(3 * kMiB); }
  std::vector<BlockPool::Region> many;
  while (many.size() < 13'000) {
    auto region = pool.Take(4096);
    if (!region) break;
    many.push_back(std::move(region));
  }
  EXPECT_EQ(many.size(), 12'000u);
  EXPECT_EQ(host.used(), 12'000u * 4096) << "what is refused is not counted";
  many.resize(11'999);
  EXPECT_FALSE(pool.Take(8192)) << "the one that is kept counts";
  EXPECT_TRUE(pool.Take(4096));
  pool.Drop();
  EXPECT_TRUE(pool.Take(8192));
}

TEST(DeviceState, TheClockCountsNanosecondsFromWhereItIsPut) {
  DeviceState device(1);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t seconds = static_cast<uint64_t>(now.tv_sec);
  const uint64_t clock = device.Clock();
  EXPECT_GE(clock, seconds * 1'000'000'000);
  EXPECT_LT(clock, (seconds + 100) * 1'000'000'000);
  device.clock_shift_ns = uint64_t{1} << 60;
  EXPECT_GE(device.Clock(), clock + (uint64_t{1} << 60));
}

}  // namespace
}  // namespace vgpud::soft
