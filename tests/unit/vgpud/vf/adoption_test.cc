// SPDX-License-Identifier: Apache-2.0
// What was counted of a VF is there for the next vgpud, whole, with the turn that was cut off; what it can go on with.
#include "vgpud/vf/adoption.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "vgpud/gpu/vf_ledger.h"

namespace vgpud::daemon {
namespace {

VfLedger::Entry Counted(uint64_t received_ns) {
  VfLedger::Entry entry;
  entry.now.account.received_ns = received_ns;
  entry.now.account.worst_overrun_ns = 10;
  entry.now.work.kernels = 3;
  entry.now.debt_ns = 77;
  entry.at_ns = 1000;
  entry.hung_at_ns = {5, 6};
  return entry;
}

TEST(VfLedgerTest, TheNextOneReadsWhatWasWrittenLast) {
  const auto ledger = *VfLedger::Make("a");
  EXPECT_FALSE(ledger->Read());
  for (uint64_t i = 1; i <= 3; ++i) ledger->Write(Counted(i));
  ledger->SetParked(true);
  const auto next = *VfLedger::Open(*Dup(ledger->fd()));
  ASSERT_TRUE(next->Read());
  EXPECT_EQ(3u, next->Read()->now.account.received_ns);
  EXPECT_EQ(77u, next->Read()->now.debt_ns);
  EXPECT_EQ((std::array<uint64_t, 4>{5, 6, 0, 0}), next->Read()->hung_at_ns);
  EXPECT_TRUE(next->parked());
}

TEST(VfLedgerTest, OneOfAnotherBuildIsRefused) {
  EXPECT_FALSE(VfLedger::Open(*MakeSealedMemfd("short", 4096)));
  const auto ledger = *VfLedger::Make("a");
  struct stat about {};
  ASSERT_EQ(0, ::fstat(ledger->fd(), &about));
  EXPECT_FALSE(VfLedger::Open(*MakeSealedMemfd("empty", static_cast<uint64_t>(about.st_size))));
}

TEST(VfLedgerTest, PastAndPresentAreAddedUp) {
  const auto ledger = *VfLedger::Make("a");
  VfStats past;
  past.account.received_ns = 100;
  past.account.worst_overrun_ns = 25;
  past.work.kernels = 4;
  ledger->SetPast(past);
  ledger->Write(Counted(11));
  const VfStats total = TotalOf(*ledger->Read(), 0, 0);
  EXPECT_EQ(111u, total.account.received_ns);
  EXPECT_EQ(25u, total.account.worst_overrun_ns) << "the worst is no sum";
  EXPECT_EQ(7u, total.work.kernels);
}

TEST(VfLedgerTest, TheTurnThatWasCutOffCounts) {
  VfLedger::Entry entry = Counted(11);
  EXPECT_EQ(11u + 300, TotalOf(entry, 1200, 1500).account.received_ns) << "granted after the last entry";
  EXPECT_EQ(11u + 500, TotalOf(entry, 900, 1500).account.received_ns) << "granted before it: part of it is counted";
  EXPECT_EQ(1u, TotalOf(entry, 900, 1500).account.slices);
  for (const uint64_t earlier : {0, 900, 1000}) {
    EXPECT_EQ(11u, TotalOf(entry, 800, earlier).account.received_ns) << "all of it is counted: " << earlier;
    EXPECT_EQ(0u, TotalOf(entry, 800, earlier).account.slices);
  }
}

TEST(AdoptionTest, VersionsNextToEachOtherGoTogether) {
  struct {
    uint32_t theirs, ours;
    bool go_together;
  } const kCases[] = {{0, 1, false}, {1, 1, true},  {2, 1, true},  {3, 1, false}, {1, 2, true},  {2, 2, true},
                      {3, 2, true},  {4, 2, false}, {1, 3, false}, {2, 3, true},  {0, 0, false}, {~0u, 1, false}};
  for (const auto& each : kCases)
    EXPECT_EQ(each.go_together, vf_link::CanAdopt(each.theirs, each.ours)) << each.theirs << " with " << each.ours;
}

TEST(AdoptionTest, WhyNotSaysWhatToDo) {
  KeptVf kept;
  EXPECT_EQ("only its executors are left", Adoption::WhyNot(kept));
  auto pair = *MakeSeqpacketPair();
  kept.link = std::move(pair.a);
  kept.pidfd = *MakeEventFd();  // not readable: as of a process that runs
  kept.note.slice_version = kSliceVersion;
  for (const uint32_t version : {vf_link::kVersion, vf_link::kVersion + 1}) {
    kept.note.link_version = version;
    EXPECT_EQ("", Adoption::WhyNot(kept));
  }
  kept.note.link_version = vf_link::kVersion + 2;
  EXPECT_NE(std::string::npos, Adoption::WhyNot(kept).find("speaks version 4 of the link, this vgpud 2"));
  kept.note.link_version = vf_link::kVersion;
  kept.note.slice_version = kSliceVersion + 1;
  EXPECT_NE(std::string::npos, Adoption::WhyNot(kept).find("restart its VM"));
  kept.note.slice_version = kSliceVersion;
  kept.executors.push_back({{.channel = kMaxExecutors}, {}, {}});
  EXPECT_EQ("its executors are not understood", Adoption::WhyNot(kept));
  SignalEventFd(kept.pidfd.get());
  EXPECT_NE(std::string::npos, Adoption::WhyNot(kept).find("plug it in again"));
}

TEST(SliceMemoryTest, AnotherVgpudGoesOnWithThePagesAndNobodyHasTheGpu) {
  auto first = *MakeSliceMemory("a");
  first.grant_page().grant.store(14 | GrantPage::kRun);
  auto second = AdoptSliceMemory(*Dup(first.writable_grant_fd.get()), *Dup(first.slots_fd.get()));
  ASSERT_TRUE(second);
  EXPECT_EQ(14u, first.grant_page().grant.load());
  second->grant_page().grant.store(16);
  EXPECT_EQ(16u, first.grant_page().grant.load()) << "it can write it";
  EXPECT_FALSE(Mapping::Shared(second->grant_fd.get(), 0, kGrantPageBytes, true)) << "executors cannot";
  first.grant_page().version = kSliceVersion + 1;
  EXPECT_FALSE(AdoptSliceMemory(*Dup(first.writable_grant_fd.get()), *Dup(first.slots_fd.get())));
}

}  // namespace
}  // namespace vgpud::daemon
