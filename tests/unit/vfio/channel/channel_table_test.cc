// SPDX-License-Identifier: Apache-2.0
// Who may open, use and end which channel, and who is told.
#include "vfio/channel/channel_table.h"

#include <set>

#include "tests/unit/vfio/channel/channel_rig.h"

namespace vgpud::vfio {
namespace {

class ChannelTableTest : public ChannelRig {
 protected:
  size_t Sent(vf_link::Kind kind) const {
    return std::count_if(to_vgpud.begin(), to_vgpud.end(), [&](const auto& message) { return message.kind == kind; });
  }
};

TEST_F(ChannelTableTest, AllAreClosedThoseWithoutAnExecutorToo) {
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  ASSERT_EQ(std::errc{}, Open(1));
  const auto lost = SendExecutor();
  lost->Die();
  Pump();
  ASSERT_EQ(std::errc{}, Open(63));
  ASSERT_EQ(table->State(1), VGPU_CHANNEL_LOST);
  EXPECT_EQ(3u, table->open_channels());

  table->CloseAll();
  EXPECT_EQ(table->State(0), VGPU_CHANNEL_CLOSING) << "until its executor has gone";
  EXPECT_TRUE(Ended(*executor));
  EXPECT_EQ(table->State(63), VGPU_CHANNEL_CLOSING) << "the owner is not called inside its call";
  Pump();
  EXPECT_EQ(table->State(1), VGPU_CHANNEL_FREE);
  EXPECT_EQ(table->State(63), VGPU_CHANNEL_FREE);
  EXPECT_TRUE(table->any_executor());
  EXPECT_EQ(0, idle);
  executor->Die();
  Pump();
  EXPECT_EQ(table->State(0), VGPU_CHANNEL_FREE);
  EXPECT_EQ(1, idle);
  EXPECT_FALSE(table->any_executor());
  EXPECT_EQ(0u, table->open_channels());
  EXPECT_EQ((FakeOwner::Heard{
                {1, VGPU_CHANNEL_LOST}, {1, VGPU_CHANNEL_FREE}, {63, VGPU_CHANNEL_FREE}, {0, VGPU_CHANNEL_FREE}}),
            owner.states);
  table->CloseAll();
}

TEST_F(ChannelTableTest, ThereAreAsManyAsTheAbiSays) {
  FakeOwner other;
  for (uint32_t channel = 64; channel-- > 0;) {
    EXPECT_EQ(channel, *table->FindFree());
    ASSERT_EQ(std::errc{}, Open(channel));
    EXPECT_EQ(64u - channel, table->open_channels());
  }
  EXPECT_EQ(std::errc::device_or_resource_busy, table->FindFree().error().code);
  for (const uint32_t none : {64u, 65u, ~0u}) {
    EXPECT_EQ(std::errc::invalid_argument, Open(none)) << none;
    EXPECT_EQ(std::errc::invalid_argument, CodeOf(table->Close(none, &owner)));
    table->Kick(none);
    table->ExecutorFailed({vf_link::Kind::kExecutorFailed, none, 1});
    const auto unwanted = SendExecutor({vf_link::Kind::kExecutor, none, 1});
    EXPECT_TRUE(Ended(*unwanted));
  }
  for (const uint32_t channel : {0u, 63u}) {
    EXPECT_EQ(std::errc::device_or_resource_busy, Open(channel));
    EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table->Close(channel, &other))) << "somebody else's";
    EXPECT_EQ(std::errc{}, CodeOf(table->Close(channel, &owner)));
    EXPECT_EQ(std::errc::connection_already_in_progress, CodeOf(table->Close(channel, &owner)));
  }
  Pump();
  EXPECT_EQ(62u, table->open_channels());
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table->Close(0, &owner)));
}

TEST_F(ChannelTableTest, EachOpeningAsksForAnExecutorOfItsOwn) {
  const uint64_t opened = guard.count(GuardedEvent::kOpen);
  ASSERT_EQ(std::errc{}, Open(5));
  ASSERT_EQ(std::errc{}, Open(6));
  ASSERT_EQ(2u, to_vgpud.size());
  EXPECT_EQ(vf_link::Kind::kNeedExecutor, to_vgpud[0].kind);
  EXPECT_EQ(5u, to_vgpud[0].channel);
  EXPECT_EQ(1u, to_vgpud[0].generation);
  EXPECT_EQ(7u, to_vgpud[0].client_pid);
  EXPECT_EQ(2u, to_vgpud[1].generation);
  EXPECT_EQ(2u, guard.count(GuardedEvent::kOpen) - opened);
  EXPECT_EQ(2, usage_changes);
  ASSERT_TRUE(table->Close(5, &owner));
  Pump();
  EXPECT_EQ(3, usage_changes);
  ASSERT_EQ(3u, to_vgpud.size());
  EXPECT_EQ(vf_link::Kind::kChannelClosed, to_vgpud[2].kind);
  EXPECT_EQ(5u, to_vgpud[2].channel);
  EXPECT_EQ(1u, to_vgpud[2].generation);
  ASSERT_EQ(std::errc{}, Open(5));
  // Of the one before: too late.
  const auto late = SendExecutor({vf_link::Kind::kExecutor, 5, 1});
  EXPECT_TRUE(Ended(*late));
  EXPECT_EQ(vf_link::Kind::kKillExecutor, to_vgpud.back().kind) << "a pipe cannot be killed: vgpud is asked";
  EXPECT_EQ(1u, to_vgpud.back().generation);
  table->ExecutorFailed({vf_link::Kind::kExecutorFailed, 5, 1});
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(5));
  const auto executor = SendExecutor({vf_link::Kind::kExecutor, 5, 3});
  EXPECT_FALSE(Ended(*executor));
  const auto second = SendExecutor({vf_link::Kind::kExecutor, 5, 3});
  EXPECT_TRUE(Ended(*second)) << "it has one";
  table->ExecutorFailed({vf_link::Kind::kExecutorFailed, 5, 3});
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(5));
}

TEST_F(ChannelTableTest, AChannelThatClosedAndOpenedAgainBeforeTheLoopWentOnStaysOpen) {
  ASSERT_EQ(std::errc{}, Open(0));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  ASSERT_EQ(std::errc{}, Open(0));
  table->ExecutorFailed({vf_link::Kind::kExecutorFailed, 0, 2});
  ASSERT_EQ(VGPU_CHANNEL_LOST, table->State(0));
  ASSERT_TRUE(table->Close(0, &owner));
  EXPECT_EQ(VGPU_CHANNEL_CLOSING, table->State(0));
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_FREE, table->State(0));
}

TEST_F(ChannelTableTest, AnExecutorLearnsWhatItIsFor) {
  ledgers.vram.SetQuota(12'345);
  ASSERT_EQ(std::errc{}, Open(9, Pieces(2)));
  ASSERT_TRUE(table->AddBuffer(9, &owner, 4, Pieces(1)));
  const auto executor = SendExecutor();
  executor->Drain();
  ASSERT_EQ(3u, executor->messages.size());
  const auto attach = *executor->messages[0].As<exec_link::Attach>();
  EXPECT_EQ(exec_link::Kind::kAttach, attach.kind);
  EXPECT_EQ(9u, attach.channel);
  EXPECT_EQ(12'345u, attach.vram_quota);
  EXPECT_EQ(7u, attach.guest_pid);
  EXPECT_EQ(0u, attach.doorbells_per_second) << "its kicks are counted here";
  EXPECT_EQ(0u, attach.watched);
  EXPECT_EQ(1u, attach.asks_before_loads);
  EXPECT_EQ(std::string(63, 'n'), std::string(attach.vf_name)) << "a long name is cut";
  EXPECT_EQ(2u, executor->messages[0].fds.size());
  const auto areas = executor->Areas(exec_link::Kind::kMapArea);
  ASSERT_EQ(2u, areas.size());
  EXPECT_EQ(0u, areas[0].area);
  EXPECT_EQ(2u, areas[0].count);
  EXPECT_EQ(4u, areas[1].area);
}

TEST_F(ChannelTableTest, AClientThatRingsItselfIsCountedByItsExecutor) {
  ChannelRequest request = Request({});
  request.kick = nullptr;
  ASSERT_TRUE(table->Open(9, std::move(request)));
  const auto executor = SendExecutor();
  executor->Drain();
  EXPECT_EQ(50'000u, executor->messages[0].As<exec_link::Attach>()->doorbells_per_second);
  table->Kick(9);
}

TEST_F(ChannelTableTest, KicksReachOpenChannelsOnly) {
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  executor->Drain();
  const int kick = executor->messages[0].fds[0].get();
  table->Kick(1);
  table->Kick(64);
  EXPECT_EQ(Signals::kNone, TakeSignals(kick));
  table->Kick(0);
  EXPECT_EQ(Signals::kSome, TakeSignals(kick));
  EXPECT_EQ(3u, guard.count(GuardedEvent::kDoorbell));
  ASSERT_TRUE(table->Close(0, &owner));
  table->Kick(0);
  EXPECT_EQ(Signals::kNone, TakeSignals(kick));
}

TEST_F(ChannelTableTest, BuffersHaveNumbersAndALimit) {
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table->AddBuffer(0, &owner, 1, {})));
  ASSERT_EQ(std::errc{}, Open(0));
  for (const uint32_t bad : {0u, 0x80000000u, ~0u})
    EXPECT_EQ(std::errc::invalid_argument, CodeOf(table->AddBuffer(0, &owner, bad, {}))) << bad;
  EXPECT_EQ(std::errc{}, CodeOf(table->AddBuffer(0, &owner, 0x7fffffff, {})));
  EXPECT_EQ(std::errc::file_exists, CodeOf(table->AddBuffer(0, &owner, 0x7fffffff, {})));
  for (uint32_t buffer = 1; buffer < 4096; ++buffer) ASSERT_TRUE(table->AddBuffer(0, &owner, buffer, {})) << buffer;
  EXPECT_EQ(std::errc::no_space_on_device, CodeOf(table->AddBuffer(0, &owner, 4096, {})));
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table->RemoveBuffer(0, &owner, 4096)));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 17));
  EXPECT_EQ((FakeOwner::Heard{{0, 17}}), owner.gone);
  EXPECT_EQ(std::errc{}, CodeOf(table->AddBuffer(0, &owner, 4096, {})));
  ASSERT_TRUE(table->Close(0, &owner));
  EXPECT_EQ(std::errc::no_such_file_or_directory, CodeOf(table->AddBuffer(0, &owner, 17, {}))) << "it ends";
}

TEST_F(ChannelTableTest, ABufferIsGoneWhenTheExecutorHasLetGoAndIsAskedOnce) {
  constexpr uint64_t kAt = 0x4000'0000;
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  for (const uint32_t buffer : {1u, 2u}) ASSERT_TRUE(table->AddBuffer(0, &owner, buffer, Pieces(1, kAt)));
  EXPECT_EQ(2u, executor->Areas(exec_link::Kind::kMapArea).size());
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 1));
  EXPECT_EQ(std::errc::connection_already_in_progress, CodeOf(table->RemoveBuffer(0, &owner, 1)));
  int dropped = 0;
  ASSERT_FALSE(table->Drop({Iova{kAt}, 4096}, [&](Result<void> result) { dropped += result ? 1 : 100; }));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 2)) << "while it is taken away";
  EXPECT_TRUE(owner.gone.empty());
  const auto asked = executor->Areas(exec_link::Kind::kUnmapArea);
  ASSERT_EQ(2u, asked.size());
  EXPECT_EQ(1u, asked[0].area);
  EXPECT_EQ(2u, asked[1].area);
  Unmapped(*executor, 1);
  EXPECT_EQ((FakeOwner::Heard{{0, 1}}), owner.gone);
  EXPECT_EQ(0, dropped);
  Unmapped(*executor, 2);
  EXPECT_EQ((FakeOwner::Heard{{0, 1}, {0, 2}}), owner.gone);
  EXPECT_EQ(1, dropped);
  Unmapped(*executor, 2);
  EXPECT_EQ(2u, owner.gone.size());
  ASSERT_TRUE(table->AddBuffer(0, &owner, 2, Pieces(1, kAt))) << "the number is free";
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 2));
  Unmapped(*executor, 2);
  EXPECT_EQ(3u, owner.gone.size());
}

TEST_F(ChannelTableTest, BuffersThatAreBeingRemovedAreGoneWithTheExecutor) {
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  const auto executor = SendExecutor();
  for (const uint32_t buffer : {1u, 2u, 3u}) ASSERT_TRUE(table->AddBuffer(0, &owner, buffer, Pieces(1)));
  for (const uint32_t buffer : {1u, 3u}) ASSERT_TRUE(table->RemoveBuffer(0, &owner, buffer));
  const uint64_t faults = guard.count(GuardedEvent::kFault);
  executor->Die();
  Pump();
  EXPECT_EQ((FakeOwner::Heard{{0, 1}, {0, 3}}), owner.gone);
  EXPECT_EQ((FakeOwner::Heard{{0, VGPU_CHANNEL_LOST}}), owner.states);
  EXPECT_EQ(1u, guard.count(GuardedEvent::kFault) - faults);
  EXPECT_EQ(Signals::kSome, TakeSignals(called[0].get())) << "the client looks";
  EXPECT_EQ(1u, Sent(vf_link::Kind::kChannelClosed));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 2));
  EXPECT_EQ(3u, owner.gone.size());
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_EQ(1u, Sent(vf_link::Kind::kChannelClosed)) << "said once";
  EXPECT_EQ(1u, guard.count(GuardedEvent::kFault) - faults) << "and counted once";
  ASSERT_EQ(std::errc{}, Open(0));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_EQ(2u, Sent(vf_link::Kind::kChannelClosed));
}

TEST_F(ChannelTableTest, AnOwnerThatIsGoneHearsNothingAndOthersKeepTheirs) {
  FakeOwner other;
  for (const uint32_t channel : {0u, 31u, 63u}) {
    ChannelRequest request = Request(Pieces(1));
    if (channel == 31) request.owner = &other;
    ASSERT_TRUE(table->Open(channel, std::move(request)));
  }
  ASSERT_EQ(std::errc{}, Open(1, Pieces(1)));
  const auto executor = SendExecutor();
  ASSERT_TRUE(table->AddBuffer(1, &owner, 8, Pieces(1)));
  ASSERT_TRUE(table->RemoveBuffer(1, &owner, 8));
  ASSERT_EQ(std::errc{}, Open(2, Pieces(1)));
  const auto closing = SendExecutor();
  ASSERT_TRUE(table->Close(2, &owner));
  table->Abandon(&owner);
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(31));
  for (const uint32_t channel : {0u, 63u}) EXPECT_EQ(VGPU_CHANNEL_FREE, table->State(channel));
  EXPECT_TRUE(Ended(*executor));
  executor->Die();
  closing->Die();
  Pump();
  EXPECT_EQ(1u, table->open_channels());
  EXPECT_TRUE(owner.states.empty());
  EXPECT_TRUE(owner.gone.empty());
  EXPECT_TRUE(other.states.empty());
}

TEST_F(ChannelTableTest, AnErrorOfItsExecutorIsAFaultOfAClosedChannel) {
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  const uint32_t sticky = 700;
  ASSERT_EQ(4, ::pwrite(file->get(), &sticky, 4, 0x98));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_EQ(1u, guard.count(GuardedEvent::kFault));
  ASSERT_EQ(std::errc{}, Open(0));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_EQ(1u, guard.count(GuardedEvent::kFault));
}

TEST_F(ChannelTableTest, MemoryIsTakenFromThoseWhoHaveItAndFromNobodyElse) {
  constexpr uint64_t kAt = 0x4000'0000;
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1, kAt)));  // its channel area, no executor yet
  ASSERT_EQ(std::errc{}, Open(63, Pieces(1, kAt + 0x10000)));
  const auto area = SendExecutor();  // its channel area
  ASSERT_EQ(std::errc{}, Open(1, Pieces(1, kAt + 0x20000)));
  const auto buffer = SendExecutor();  // only a buffer
  ASSERT_TRUE(table->AddBuffer(1, &owner, 1, Pieces(1, kAt + 0x11000)));
  ASSERT_TRUE(table->AddBuffer(1, &owner, 2, Pieces(1, kAt + 0x30000)));
  EXPECT_TRUE(table->any_guest_memory());
  EXPECT_TRUE(table->Drop({Iova{kAt + 0x1000}, 0xf000}, [](Result<void>) { FAIL(); })) << "between two";
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(0));

  int dropped = 0;
  EXPECT_FALSE(table->Drop({Iova{kAt}, 0x12000}, [&](Result<void> result) { dropped += result ? 1 : 100; }));
  EXPECT_EQ(VGPU_CHANNEL_LOST, table->State(0));
  EXPECT_TRUE(Ended(*area));
  EXPECT_FALSE(Ended(*buffer));
  ASSERT_EQ(1u, buffer->Areas(exec_link::Kind::kUnmapArea).size());
  Unmapped(*buffer, 1);
  EXPECT_EQ(0, dropped);
  area->Die();
  Pump();
  EXPECT_EQ(1, dropped);
  EXPECT_EQ(VGPU_CHANNEL_LOST, table->State(63));
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(1));
  EXPECT_TRUE(table->Drop({Iova{kAt}, 0x12000}, [](Result<void>) { FAIL(); })) << "nobody has it any more";
  buffer->Die();
  Pump();
  EXPECT_FALSE(table->any_guest_memory());
}

TEST_F(ChannelTableTest, WhoKeepsMemoryIsKilledAndNobodyElse) {
  constexpr uint64_t kAt = 0x4000'0000;
  std::vector<std::unique_ptr<FakeExecutor>> executors;
  for (const uint32_t channel : {0u, 1u, 2u, 63u}) {
    ASSERT_EQ(std::errc{}, Open(channel, Pieces(1, channel == 63 ? kAt : 0)));
    executors.push_back(SendExecutor());
  }
  ASSERT_TRUE(table->AddBuffer(0, &owner, 1, Pieces(1, kAt)));
  ASSERT_TRUE(table->AddBuffer(0, &owner, 2, Pieces(1)));
  ASSERT_TRUE(table->AddBuffer(1, &owner, 1, Pieces(1)));
  ASSERT_EQ(std::errc{}, Open(62));
  to_vgpud.clear();
  int dropped = 0;
  ASSERT_FALSE(table->Drop({Iova{kAt}, 4096}, [&](Result<void> result) { dropped += result ? 1 : 100; }));
  std::set<uint32_t> killed;
  while (killed.size() < 2) {
    event_base_loop(loop.base(), EVLOOP_ONCE);
    for (const vf_link::Executor& message : to_vgpud) killed.insert(message.channel);
  }
  EXPECT_EQ((std::set<uint32_t>{0, 63}), killed);
  executors[0]->Die();
  executors[3]->Die();
  Pump();
  EXPECT_EQ(1, dropped);
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(1));
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(2));
}

}  // namespace
}  // namespace vgpud::vfio
