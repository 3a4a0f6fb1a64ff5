// SPDX-License-Identifier: Apache-2.0
// Grids whose kernels launch kernels, written out and read back.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "gpu/soft/run/device_launches.h"
#include "tests/unit/soft/state/family_ptx.h"
#include "tests/unit/soft/state/saved_context.h"
#include "tests/unit/soft/state/soft_works.h"
#include "tests/unit/soft/state/state_process.h"

namespace vgpud::soft {
namespace {

using family_ptx::Kernel;
using family_ptx::kHeader;
using family_ptx::Launch;
using family_ptx::Note;
using family_ptx::Prepare;
using testing::HasSubstr;

constexpr const char* kFamilies[] = {"family", "family_of_blocks"};

TEST(FamilyState, GoesOnInAnotherProcessWithAnotherNumberOfThreads) {
  std::mt19937 random(4);
  for (const char* name : kFamilies) {
    uint64_t whole = 0;
    const uint64_t answer = Undisturbed(FindWork(name), BestIsa(), &whole);
    const std::string file = testing::TempDir() + "family-" + name + "-" + std::to_string(::getpid());
    const std::string isa = NameOf(BestIsa());
    for (uint32_t round = 0; round < 8; ++round) {
      const std::string writers = std::to_string(1 + round % 4);
      const std::string readers = std::to_string(1 + random() % 4);
      // So much on each thread.
      const std::string cut = std::to_string(random() % whole / (1 + round % 4));
      StateHelper({"save", isa, writers, name, cut, file});
      EXPECT_EQ(StateHelper({"finish", isa, readers, name, file}),
                std::to_string(answer) + " " + std::to_string(whole) + "\n")
          << name << " cut after " << cut << " of " << whole << ", " << writers << " threads to " << readers;
    }
    std::filesystem::remove(file);
  }
}

TEST(FamilyState, GoesOnThroughAChainOfMachinesWithOtherNumbersOfThreads) {
  std::mt19937 random(6);
  for (const char* name : kFamilies) {
    const WorkRow& row = FindWork(name);
    uint64_t whole = 0;
    const uint64_t answer = Undisturbed(row, BestIsa(), &whole);
    for (int round = 0; round < 5; ++round) {
      auto m = std::make_unique<SoftMachine>(BestIsa(), 64 << 20, 1 + random() % 4);
      Work work = row.make(*m);
      for (int cut = 0; cut < 15; ++cut) {
        RunFor(*m, *work.grid, random() % (whole / 12));
        const auto saved = SaveAll(*m, {work.grid.get()});
        ASSERT_TRUE(saved) << saved.error().text;
        auto next = std::make_unique<SoftMachine>(BestIsa(), 64 << 20, 1 + random() % 4);
        auto restored = RestoreAll(*next, *saved);
        ASSERT_TRUE(restored) << name << ": " << restored.error().text;
        work.grid = std::move((*restored)[0]);
        m = std::move(next);
      }
      EXPECT_EQ(m->Finish(*work.grid).status, CuStatus::kSuccess);
      EXPECT_EQ(work.grid->warp_instructions(), whole);
      EXPECT_EQ(Answer(*m, work), answer) << name;
    }
  }
}

// What was launched before the cut counts.
TEST(FamilyState, TheBoundOfPendingLaunchesHoldsAcrossACut) {
  const std::string kernels = Kernel("leaf", Note()) +
                              Kernel("k", "mov.u32 %r5, 0;\nLOOP:\n" + Prepare("leaf", "1", "1") +
                                              "setp.eq.u64 %p1, %rd9, 0; @%p1 bra END; add.u32 %r5, %r5, 1; bra LOOP;\n"
                                              "END: mov.u32 %r1, %r5;\n" +
                                              Note());
  SoftMachine m;
  ASSERT_EQ(m.Load(kHeader + kernels).status, CuStatus::kSuccess);
  const GpuVa out = m.Alloc(16);
  const auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(0u));
  RunFor(m, *grid, 500'000);
  const auto saved = SaveAll(m, {grid.get()});
  ASSERT_TRUE(saved) << saved.error().text;
  SoftMachine other;
  auto restored = RestoreAll(other, *saved);
  ASSERT_TRUE(restored) << restored.error().text;
  ASSERT_EQ(other.Finish(*(*restored)[0]).status, CuStatus::kSuccess);
  EXPECT_EQ(other.Download<uint32_t>(out, 2)[1], DeviceLaunches::kMostPending);
}

TEST(FamilyState, AnEndedFamilyStaysEnded) {
  SoftMachine m;
  const Work work = FindWork("family").make(m);
  ASSERT_EQ(m.Finish(*work.grid).status, CuStatus::kSuccess);
  const auto saved = SaveAll(m, {work.grid.get()});
  ASSERT_TRUE(saved) << saved.error().text;
  SoftMachine other;
  auto restored = RestoreAll(other, *saved);
  ASSERT_TRUE(restored) << restored.error().text;
  EXPECT_EQ((*restored)[0]->warp_instructions(), work.grid->warp_instructions());
  EXPECT_EQ(RunFor(other, *(*restored)[0], 1), GpuGrid::Progress::kDone);
}

TEST(FamilyState, AFamilyWithAFailedMemberIsNotSaved) {
  SoftMachine m;
  ASSERT_EQ(m.Load(kHeader + Kernel("bad", "trap;\n") + Kernel("k", Launch("bad", "1"))).status, CuStatus::kSuccess);
  const auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(16)).Add(0u));
  EXPECT_FALSE(grid->Run({&m.word, 0}, UINT64_MAX));
  const auto saved = SaveAll(m, {grid.get()});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().status, CuStatus::kInvalidValue);
}

// A context whose running kernel has launched `leaf` twice as {24, 1, 1} blocks of {64, 1, 1} threads and prepared two
// more. `launch`: where the first one is in the file.
struct Pending {
  Bytes bytes;
  size_t launch = 0;
};
constexpr size_t kGridAt = 8;
constexpr size_t kBlockAt = kGridAt + 12;
constexpr size_t kSharedAt = kBlockAt + 12;
constexpr size_t kParamsAt = kSharedAt + 4;
constexpr size_t kLaunchBytes = kParamsAt + 8;
// Before the launch: the number of launches, two that are prepared, their number, the last error, the number of
// generations, instructions of those that have ended.
constexpr size_t kPreparedBefore = 8 + 2 * kLaunchBytes;
constexpr size_t kFamilyBefore = kPreparedBefore + 8 + 4 + 8 + 8;

Pending WithLaunches() {
  SoftMachine m(Isa::kSse4);
  EXPECT_EQ(m.Load(kHeader + Kernel("leaf", Note()) +
                   Kernel("k", Launch("leaf", "5", "0", "24", "64") + Launch("leaf", "6", "0", "24", "64") +
                                   Prepare("leaf", "23", "64") + Prepare("leaf", "23", "64") +
                                   "mov.u32 %r4, 0;\nWAIT: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 1000; @%p1 bra "
                                   "WAIT;\n" +
                                   Note()))
                .status,
            CuStatus::kSuccess);
  const auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(64 << 10)).Add(0u));
  RunFor(m, *grid, 1000);  // it counts by now
  Pending pending;
  auto saved = SaveAll(m, {grid.get()});
  EXPECT_TRUE(saved) << (saved ? "" : saved.error().text);
  if (saved) pending.bytes = std::move(*saved);
  const uint32_t shape[] = {24, 1, 1, 64, 1, 1, 0};
  const auto pattern = std::as_bytes(std::span(shape));
  const auto found = std::search(pending.bytes.begin(), pending.bytes.end(), pattern.begin(), pattern.end());
  EXPECT_NE(found, pending.bytes.end());
  pending.launch = static_cast<size_t>(found - pending.bytes.begin()) - kGridAt;
  return pending;
}

template <class T>
GpuError Changed(const Pending& pending, size_t at, T value) {
  Bytes bytes = pending.bytes;
  std::memcpy(&bytes[at], &value, sizeof value);
  Seal(bytes);
  SoftMachine other(Isa::kSse4);
  const auto restored = RestoreAll(other, bytes);
  return restored ? GpuError{CuStatus::kSuccess, ""} : restored.error();
}

TEST(FamilyState, ALaunchThatCannotBeIsRefusedWithItsReason) {
  const Pending pending = WithLaunches();
  const size_t launch = pending.launch;
  ASSERT_EQ(Changed(pending, launch + kSharedAt, uint32_t{16}).text, "");
  const auto read = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, &pending.bytes[at], sizeof value);
    return value;
  };
  EXPECT_EQ(read(launch - 8), 2u);
  EXPECT_EQ(read(launch - kPreparedBefore - 8), 2u);
  EXPECT_THAT(Changed(pending, launch, uint64_t{5}).text, HasSubstr("bad kernel of a launch by a kernel (0x5)"));
  // Its first function is one of the device runtime's.
  EXPECT_THAT(Changed(pending, launch, uint64_t{0}).text, HasSubstr("bad kernel of a launch by a kernel (0x0)"));
  EXPECT_THAT(Changed(pending, launch + kGridAt, uint32_t{0}).text, HasSubstr("grid dimension 0 is 0"));
  EXPECT_THAT(Changed(pending, launch + kBlockAt, uint32_t{1025}).text, HasSubstr("block dimension 0 is 1025"));
  EXPECT_THAT(Changed(pending, launch + kSharedAt, uint32_t{65537}).text, HasSubstr("dynamic shared memory"));
  const uint64_t params = read(launch + kParamsAt);
  EXPECT_EQ(Changed(pending, launch + kParamsAt, params + 64).text, "") << "what its parameters say is its own matter";
  for (const uint64_t outside : {uint64_t{0}, params - 64, params + DeviceHeap::kDefaultBytes - 8, UINT64_MAX})
    EXPECT_THAT(Changed(pending, launch + kParamsAt, outside).text, HasSubstr("bad place of the parameters"));
  EXPECT_THAT(Changed(pending, launch - 8, uint64_t{DeviceLaunches::kMostPending - 1}).text,
              HasSubstr("bad number of launches by kernels"));
  EXPECT_THAT(Changed(pending, launch - 8, uint64_t{DeviceLaunches::kMostPending - 2}).text,
              testing::Not(HasSubstr("number of launches")))
      << "two are prepared, so many more may wait";
  const size_t second_prepared = launch - 8 - kLaunchBytes;
  EXPECT_THAT(Changed(pending, second_prepared + kParamsAt, read(second_prepared - kLaunchBytes + kParamsAt)).text,
              HasSubstr("of two launches by kernels"));
  // A generation has members.
  EXPECT_THAT(Changed(pending, launch - kPreparedBefore - 8 - 4 - 8, uint64_t{65537}).text,
              HasSubstr("number of generations"));
  EXPECT_THAT(Changed(pending, launch - kPreparedBefore - 8 - 4 - 8, uint64_t{65536}).text,
              testing::Not(HasSubstr("number of generations")));
}

TEST(FamilyState, MutatedLaunchesAreRefusedOrRunInsideTheirContext) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 200;
#else
  constexpr int kRounds = 3000;
#endif
  const Pending pending = WithLaunches();
  std::mt19937 random(8);
  int refused = 0;
  int ran = 0;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bytes = pending.bytes;
    MutateState(bytes, pending.launch - kFamilyBefore, pending.launch + 2 * kLaunchBytes + 8, random);
    SoftMachine other(Isa::kSse4);
    auto restored = RestoreAll(other, bytes);
    if (!restored) {
      ++refused;
      continue;
    }
    ++ran;
    RunDamaged(other, *restored);
    EXPECT_TRUE(SaveAll(other, {}));
    restored->clear();
    other.module.reset();
  }
  EXPECT_GT(refused, kRounds / 10);
  EXPECT_GT(ran, kRounds / 20);
}

}  // namespace
}  // namespace vgpud::soft
