// SPDX-License-Identifier: Apache-2.0
// Which mappings of a watched executor are let through: those of the pieces announced to it, in order, and nothing
// else.
#include "vfio/channel/executor_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/jail/rules.h"

namespace vgpud::vfio {
namespace {

using Kind = SyscallWatch::Verdict::Kind;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAt = kGuestWindowBegin + (1 << 20);

class ExecutorMemoryTest : public testing::Test {
 protected:
  FilePiece Piece(uint64_t offset, uint64_t bytes, bool writable = true) const {
    return {file_, offset, bytes, writable, {}};
  }
  static SyscallWatch::Call Map(uint64_t at, uint64_t bytes, uint64_t offset,
                                uint64_t protection = PROT_READ | PROT_WRITE, uint64_t flags = MAP_SHARED | MAP_FIXED,
                                uint64_t number = kGuestFileNumber) {
    return {SYS_mmap, {at, bytes, protection, flags, number, offset}};
  }
  static SyscallWatch::Call Unmap(uint64_t at, uint64_t bytes) { return {SYS_munmap, {at, bytes}}; }
  // What an executor asks for to say that its calls before are over.
  void Fence() {
    const auto verdict = memory_.Judge(Unmap(kGuestFence, kPage));
    EXPECT_EQ(Kind::kRefuse, verdict.kind);
    EXPECT_EQ(0, verdict.error);
  }

  SharedFd file_ = std::make_shared<const UniqueFd>(*MakeSealedMemfd("ram", 64 * kPage));
  ExecutorMemory memory_;
};

TEST_F(ExecutorMemoryTest, LetsAnnouncedPiecesThroughInOrder) {
  memory_.Expect(0, Piece(8 * kPage, 2 * kPage));
  memory_.Expect(0, Piece(0, kPage, false));
  const auto first = memory_.Judge(Map(kAt, 2 * kPage, 8 * kPage));
  EXPECT_EQ(Kind::kGo, first.kind);
  EXPECT_EQ(file_->get(), first.file);
  EXPECT_EQ(kGuestFileNumber, first.number);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt + 2 * kPage, kPage, 0, PROT_READ)).kind);
  EXPECT_TRUE(memory_.Holds(0));
}

TEST_F(ExecutorMemoryTest, EachPieceIsMappedOnce) {
  memory_.Expect(0, Piece(0, kPage));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt + kPage, kPage, 0)).kind);
}

struct BadMap {
  const char* name;
  SyscallWatch::Call call;
};
TEST_F(ExecutorMemoryTest, NothingElseOfTheFileCanBeMapped) {
  const BadMap bad[] = {
      {"more of it", Map(kAt, 2 * kPage, kPage)},
      {"less of it", Map(kAt, kPage / 2, kPage)},
      {"another place of it", Map(kAt, kPage, 0)},
      {"for writing", Map(kAt, kPage, kPage, PROT_READ | PROT_WRITE)},
      {"for execution", Map(kAt, kPage, kPage, PROT_READ | PROT_EXEC)},
      {"outside of the window", Map(kGuestWindowEnd, kPage, kPage, PROT_READ)},
      {"across its end", Map(kGuestWindowEnd - kPage / 2, kPage, kPage, PROT_READ)},
      {"below it", Map(kGuestWindowBegin - kPage, kPage, kPage, PROT_READ)},
      {"privately", Map(kAt, kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED)},
      {"another descriptor", Map(kAt, kPage, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, 3)},
      {"another call", {SYS_mremap, {kAt, kPage, 2 * kPage, 0, 0, 0}}},
  };
  memory_.Expect(0, Piece(kPage, kPage, false));
  for (const BadMap& map : bad) EXPECT_EQ(Kind::kLeave, memory_.Judge(map.call).kind) << map.name;
  EXPECT_FALSE(memory_.Holds(0));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, kPage, PROT_READ)).kind);
}

TEST_F(ExecutorMemoryTest, APieceNeverLiesOverAnother) {
  memory_.Expect(0, Piece(0, 4 * kPage));
  memory_.Expect(1, Piece(4 * kPage, 2 * kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, 4 * kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt + 3 * kPage, 2 * kPage, 4 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt - kPage, 2 * kPage, 4 * kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt + 16 * kPage, 2 * kPage, 4 * kPage)).kind);
}

TEST_F(ExecutorMemoryTest, WhatIsWithdrawnIsRefusedAndNotTaken) {
  memory_.Expect(0, Piece(0, kPage));
  memory_.Expect(5, Piece(kPage, kPage));
  memory_.Revoke(5);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  const auto withdrawn = memory_.Judge(Map(kAt + 4 * kPage, kPage, kPage));
  EXPECT_EQ(Kind::kRefuse, withdrawn.kind);
  EXPECT_EQ(ENXIO, withdrawn.error);
  EXPECT_FALSE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, AnAreaIsHeldUntilAllOfItIsUnmapped) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(5, Piece(8 * kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt + kPage, kPage, 8 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt, kPage)).kind)
      << "a cut of what the kernel may have made one can fail";
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt + kPage, kPage)).kind);
  EXPECT_TRUE(memory_.Holds(5));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, 2 * kPage)).kind);
  Fence();
  EXPECT_FALSE(memory_.Holds(5));
}

// A mapping of another kind beside it can be one that the kernel refuses to cut.
TEST_F(ExecutorMemoryTest, AnUnmapBeginsAndEndsWithAPiece) {
  memory_.Expect(5, Piece(0, 4 * kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, 4 * kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt, 5 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt - kPage, 5 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt - kPage, 6 * kPage)).kind);
  Fence();
  EXPECT_TRUE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, WhatIsOnlyReservedMayGo) { EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, 4 * kPage)).kind); }

// The thread that has its answer may run much later.
TEST_F(ExecutorMemoryTest, ACallIsOverWhenTheNextOneIsAsked) {
  memory_.Expect(5, Piece(0, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_TRUE(memory_.Holds(5)) << "it may be mapped now or later";
  Fence();
  EXPECT_TRUE(memory_.Holds(5));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  EXPECT_TRUE(memory_.Holds(5)) << "it may not be unmapped yet";
  EXPECT_FALSE(memory_.Forget(5));
  Fence();
  EXPECT_FALSE(memory_.Holds(5));
  EXPECT_TRUE(memory_.Forget(5));
}

TEST_F(ExecutorMemoryTest, AnAreaThatIsRevokedWhileItsPieceIsBeingMappedIsHeld) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(5, Piece(8 * kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Revoke(5);
  EXPECT_FALSE(memory_.Forget(5));
  EXPECT_EQ(Kind::kRefuse, memory_.Judge(Map(kAt + kPage, kPage, 8 * kPage)).kind);
  EXPECT_TRUE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, ACallThatWasInterruptedMayComeAgain) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(6, Piece(kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Undelivered();
  EXPECT_FALSE(memory_.Holds(5));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  memory_.Undelivered();
  Fence();
  EXPECT_TRUE(memory_.Holds(5)) << "it has it still";
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, kPage)).kind) << "the next one is still to come";
  EXPECT_FALSE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, ACallThatWasInterruptedAfterItsAnswerMayComeAgain) {
  memory_.Expect(5, Piece(0, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Undelivered();
  EXPECT_TRUE(memory_.Holds(5)) << "the first of the two may have mapped it";
  ASSERT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  Fence();
  EXPECT_FALSE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, ARefusalThatWasInterruptedComesAgain) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Revoke(5);
  ASSERT_EQ(ENXIO, memory_.Judge(Map(kAt, kPage, 0)).error);
  memory_.Undelivered();
  EXPECT_EQ(ENXIO, memory_.Judge(Map(kAt, kPage, 0)).error);
}

TEST_F(ExecutorMemoryTest, WithOnePieceTheWholeRevokedAreaIsGivenUp) {
  for (const uint64_t at : {0, 2, 4, 6}) memory_.Expect(5, Piece(at * kPage, kPage));
  memory_.Expect(6, Piece(32 * kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Revoke(5);
  ASSERT_EQ(ENXIO, memory_.Judge(Map(kAt + kPage, kPage, 2 * kPage)).error);
  // It drops the area, and goes on with the next one.
  ASSERT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  Fence();
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt + 16 * kPage, kPage, 32 * kPage)).kind);
}

TEST_F(ExecutorMemoryTest, WhatIsGivenUpWithoutBeingMappedIsNotExpectedForEver) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(5, Piece(8 * kPage, kPage));
  memory_.Revoke(5);
  EXPECT_TRUE(memory_.Forget(5));
  EXPECT_EQ(0u, memory_.expected());
}

TEST_F(ExecutorMemoryTest, NothingIsEverMappedOverTheFence) {
  memory_.Expect(5, Piece(0, kPage));
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kGuestFence, kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kGuestFence - kPage, 2 * kPage)).kind);
}

TEST_F(ExecutorMemoryTest, TheWindowCanBeUsedFromItsFirstPageToItsLast) {
  constexpr uint64_t kLast = kGuestFence - kPage;
  memory_.Expect(0, Piece(0, kPage));
  memory_.Expect(0, Piece(kPage, kPage));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kGuestWindowBegin, kPage, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kLast, kPage, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kLast, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kGuestWindowBegin, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kGuestWindowBegin, kGuestFence - kGuestWindowBegin)).kind) << "all of it";
  for (const uint64_t at : {kGuestWindowBegin - kPage, kGuestFence, kGuestWindowEnd, ~kPage + 1}) {
    memory_.Expect(1, Piece(0, kPage));
    EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(at, kPage, 0)).kind) << std::hex << at;
    EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(at, 2 * kPage)).kind) << std::hex << at;
  }
}

TEST_F(ExecutorMemoryTest, OnlyWholePagesAreMapped) {
  memory_.Expect(0, Piece(0, kPage + 1));
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt, kPage + 1, 0)).kind);
  memory_.Revoke(0);
  EXPECT_TRUE(memory_.Forget(0));
  memory_.Expect(0, Piece(0, 0));
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt, 0, 0)).kind);
  EXPECT_TRUE(memory_.Forget(0));
  memory_.Expect(0, Piece(0, kPage));
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt + 1, kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt + kPage / 2, kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt, kPage + 1)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt + kPage / 2, kPage)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
}

TEST_F(ExecutorMemoryTest, AMappingHasTheRightsAndTheKindOfItsPieceExactly) {
  for (const bool writable : {false, true}) {
    const uint64_t right = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    memory_.Expect(0, Piece(0, kPage, writable));
    for (const uint64_t protection :
         {0, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE | PROT_EXEC})
      if (protection != right) {
        EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt, kPage, 0, protection)).kind) << protection;
      }
    for (const uint64_t flags : {0, MAP_SHARED, MAP_FIXED, MAP_SHARED | MAP_FIXED | MAP_POPULATE})
      EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt, kPage, 0, right, flags)).kind) << flags;
    EXPECT_EQ(Kind::kLeave, memory_.Judge(Map(kAt, kPage, kPage, right)).kind);
    EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0, right)).kind);
    EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
    Fence();
  }
}

TEST_F(ExecutorMemoryTest, PiecesMayTouchAndAreUnmappedTogether) {
  for (const uint64_t i : {0, 1, 2}) memory_.Expect(static_cast<uint32_t>(i), Piece(8 * i * kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt + kPage, kPage, 0)).kind);
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 8 * kPage)).kind) << "right below";
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt + 2 * kPage, kPage, 16 * kPage)).kind) << "right above";
  for (const uint64_t first : {0, 1, 2})
    for (const uint64_t pages : {1, 2, 3})
      if (first + pages <= 3 && pages < 3) {
        EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt + first * kPage, pages * kPage)).kind) << first << pages;
      }
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt + 3 * kPage, kPage)).kind) << "nothing is there";
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt - kPage, kPage)).kind) << "nothing is there";
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, 3 * kPage)).kind);
  Fence();
  for (const uint32_t area : {0u, 1u, 2u}) EXPECT_TRUE(memory_.Forget(area)) << area;
}

TEST_F(ExecutorMemoryTest, AnAnswerThatNobodyGotIsNoCall) {
  memory_.Undelivered();
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(6, Piece(kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_FALSE(memory_.Holds(6));
  memory_.Undelivered();
  memory_.Undelivered();
  EXPECT_EQ(2u, memory_.expected());
  EXPECT_TRUE(memory_.Forget(5)) << "it has never had it";
  EXPECT_EQ(1u, memory_.expected());
  memory_.Revoke(6);
  ASSERT_EQ(ENXIO, memory_.Judge(Map(kAt, kPage, kPage)).error);
  EXPECT_EQ(0u, memory_.expected());
  memory_.Undelivered();
  EXPECT_EQ(1u, memory_.expected());
  memory_.Undelivered();
  EXPECT_EQ(1u, memory_.expected());
}

TEST_F(ExecutorMemoryTest, AFenceIsOnePageAtItsPlaceAndNothingElse) {
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kGuestFence, 2 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kGuestFence, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kGuestFence - kPage, kPage)).kind);
  Fence();
  EXPECT_EQ(Kind::kLeave, memory_.Judge({SYS_mprotect, {kGuestFence, kPage, 0}}).kind);
}

TEST_F(ExecutorMemoryTest, UnmapsThatWrapOrCutAreNotBelieved) {
  memory_.Expect(5, Piece(0, 4 * kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, 4 * kPage, 0)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt, ~uint64_t{0})).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt + 1, 4 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt + kPage, 8 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt - kPage, 2 * kPage)).kind);
  EXPECT_EQ(Kind::kLeave, memory_.Judge(Unmap(kAt, 0)).kind);
  EXPECT_TRUE(memory_.Holds(5));
}

}  // namespace
}  // namespace vgpud::vfio
