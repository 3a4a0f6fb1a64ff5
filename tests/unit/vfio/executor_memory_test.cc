// Which mappings of a watched executor are let through: those of the pieces announced to it, in order, and nothing
// else.
#include "vfio/executor_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/jail_rules.h"

namespace vgpud {
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

TEST_F(ExecutorMemoryTest, ARefusedPieceTakesTheOthersOfItsAreaAlong) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(5, Piece(8 * kPage, kPage));
  memory_.Expect(6, Piece(16 * kPage, kPage));
  memory_.Revoke(5);
  EXPECT_EQ(Kind::kRefuse, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Undo();
  EXPECT_EQ(Kind::kRefuse, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 16 * kPage)).kind);
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
  EXPECT_FALSE(memory_.Holds(5));
}

TEST_F(ExecutorMemoryTest, ACallThatWasInterruptedMayComeAgain) {
  memory_.Expect(5, Piece(0, kPage));
  memory_.Expect(6, Piece(kPage, kPage));
  ASSERT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  memory_.Undo();
  EXPECT_FALSE(memory_.Holds(5));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, 0)).kind);
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  memory_.Undo();
  EXPECT_TRUE(memory_.Holds(5)) << "it has it still";
  EXPECT_EQ(Kind::kGo, memory_.Judge(Unmap(kAt, kPage)).kind);
  EXPECT_FALSE(memory_.Holds(5));
  EXPECT_EQ(Kind::kGo, memory_.Judge(Map(kAt, kPage, kPage)).kind) << "the next one is still to come";
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
}  // namespace vgpud
