// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/control_page.h"

#include <sys/mman.h>

#include "base/signal_socket.h"
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

class ControlPageTest : public VfRig {};

TEST_F(ControlPageTest, Bar0ShowsTheVf) {
  figures.slice_us = 2000;
  figures.weight = 300;
  EXPECT_EQ(VGPU_MAGIC, ReadRegister(VGPU_REG_MAGIC));
  EXPECT_EQ(VGPU_ABI_VERSION, ReadRegister(VGPU_REG_ABI_VERSION));
  EXPECT_EQ(1u << 30, ReadRegister(VGPU_REG_VRAM_LO));
  EXPECT_EQ(2000u, ReadRegister(VGPU_REG_SLICE_US));
  EXPECT_EQ(300u, ReadRegister(VGPU_REG_WEIGHT));
  char name[64];
  ASSERT_TRUE(function->Read(wire::kBar0, VGPU_REG_NAME, std::as_writable_bytes(std::span{name})));
  EXPECT_STREQ("rig", name);
  std::vector<std::byte> all(VGPU_BAR0_BYTES);
  EXPECT_TRUE(function->Read(wire::kBar0, 0, all));
  EXPECT_FALSE(function->Read(wire::kBar0, 1, all));
  EXPECT_TRUE(function->Write(wire::kBar0, 0, all)) << "accepted, and without effect";
}

TEST_F(ControlPageTest, CommandsWithoutAPageAreNotCounted) {
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ));
  SetControlPage(kControlAt + 8);
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ));
  SetControlPage(0xdead0000);
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ));
}

TEST_F(ControlPageTest, CreateSendsTheExecutorItsAreaAndFds) {
  SetControlPage();
  const auto executor = OpenWithExecutor(3);
  EXPECT_EQ(VGPU_CHANNEL_OPEN, Page()->channel_state[3]);
  ASSERT_EQ(1u, to_vgpud.size());
  EXPECT_EQ(vf_link::Kind::kNeedExecutor, to_vgpud[0].kind);
  EXPECT_EQ(3u, to_vgpud[0].channel);
  EXPECT_EQ(4711u, to_vgpud[0].client_pid);
  executor->Drain();
  ASSERT_EQ(2u, executor->messages.size());
  const auto attach = *executor->messages[0].As<exec_link::Attach>();
  EXPECT_EQ(exec_link::Kind::kAttach, attach.kind);
  EXPECT_EQ(3u, attach.channel);
  EXPECT_EQ(figures.vram_bytes, attach.vram_quota);
  ASSERT_EQ(2u, executor->messages[0].fds.size());
  const auto area = *executor->messages[1].As<exec_link::Area>();
  EXPECT_EQ(exec_link::Kind::kMapArea, area.kind);
  EXPECT_EQ(0u, area.area);
  EXPECT_EQ(VGPU_CHANNEL_MIN_BYTES, area.total_bytes);
  EXPECT_EQ(1u, area.total_pieces);
  EXPECT_EQ(1u, executor->messages[1].fds.size());

  WriteRegister(VGPU_REG_DOORBELL(3), 1);
  EXPECT_EQ(Signals::kSome, TakeSignals(executor->messages[0].fds[0].get())) << "doorbell -> kick";
  WriteRegister(VGPU_REG_DOORBELL(4), 1);
  EXPECT_EQ(Signals::kNone, TakeSignals(executor->messages[0].fds[0].get()));
  SendSignal(executor->messages[0].fds[1].get());
  Pump();
  EXPECT_TRUE(DrainEventFd(msi.get())) << "call -> MSI";
}

TEST_F(ControlPageTest, RefusesBadCommands) {
  SetControlPage();
  FillHeader();
  const auto good = ChannelSegments();
  EXPECT_EQ(-ENOSYS, Command(99, 0));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, VGPU_MAX_CHANNELS, 0, good));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 1, good)) << "buffer must be zero";
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{kChannelAt, 0x1000}})) << "too small";
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{kChannelAt + 1, VGPU_CHANNEL_MIN_BYTES}}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{kChannelAt, 0}}));
  EXPECT_EQ(-EFAULT, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{0xdead0000, VGPU_CHANNEL_MIN_BYTES}}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{~0ull - 0xfff, 0x2000}}));
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kChannelAt, 0x1000}}));
  Ram<vgpu_channel_header>(kChannelAt)->magic = 1;
  EXPECT_EQ(-EPROTONOSUPPORT, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, good));
  EXPECT_TRUE(to_vgpud.empty());
  FillHeader();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, good));
  EXPECT_EQ(-EBUSY, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, good));
}

TEST_F(ControlPageTest, SegmentListBeyondMemoryIsAFault) {
  SetControlPage();
  vgpu_ctrl_cmd command{};
  command.op = VGPU_CTRL_CHANNEL_CREATE;
  command.seg_list = kRamBase + kRamBytes - 16;
  command.seg_count = 2;
  for (const uint32_t count : {2u, VGPU_MAX_SEGMENTS, VGPU_MAX_SEGMENTS + 1, ~0u}) {
    command.seg_count = count;
    Page()->cmd = command;
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    EXPECT_EQ(count <= VGPU_MAX_SEGMENTS ? -EFAULT : -EINVAL, Page()->cmd.status) << count;
  }
}

TEST_F(ControlPageTest, UnsharedMemoryIsAFault) {
  SetControlPage();
  ForeignFd none;
  ASSERT_TRUE(function->dma.Map({Iova{1ull << 32}, 1 << 24}, {true, true}, none, 0));
  EXPECT_EQ(-EFAULT, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, {{1ull << 32, VGPU_CHANNEL_MIN_BYTES}}));
}

TEST_F(ControlPageTest, NoVgpudNoChannel) {
  SetControlPage();
  FillHeader();
  vgpud_there = false;
  EXPECT_EQ(-ENODEV, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  vgpud_there = true;
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
}

TEST_F(ControlPageTest, DestroyEndsTheExecutorAndFreesWhenItIsDead) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  executor->Drain();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
  EXPECT_EQ(-EALREADY, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_CLOSING, Page()->channel_state[0]);
  EXPECT_EQ(-EBUSY, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments())) << "its executor still dies";
  const auto end = ReceiveMessage(executor->socket.get());
  ASSERT_FALSE(end);
  EXPECT_EQ(std::errc::not_connected, end.error().code) << "told to exit by EOF";
  DrainEventFd(msi.get());
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_FREE, Page()->channel_state[0]);
  EXPECT_TRUE(DrainEventFd(msi.get()));
  EXPECT_EQ(vf_link::Kind::kChannelClosed, to_vgpud.back().kind);
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
}

TEST_F(ControlPageTest, DestroyBeforeTheExecutorCame) {
  SetControlPage();
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_FREE, Page()->channel_state[0]);
  const vf_link::Executor closed = to_vgpud.back();
  EXPECT_EQ(vf_link::Kind::kChannelClosed, closed.kind);
  const auto late = SendExecutor();
  const auto end = ReceiveMessage(late->socket.get());
  ASSERT_FALSE(end);
  EXPECT_EQ(std::errc::not_connected, end.error().code) << "a late executor gets nothing";
}

TEST_F(ControlPageTest, DeadExecutorIsALostChannelWithASayableError) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  slices.slot_page().slots[0].state = static_cast<uint32_t>(ExecState::kRunning);
  ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Vram{exec_link::Kind::kVramRequest, 0, 4096, 0}));
  Pump();
  EXPECT_EQ(4096u, ledgers.vram.used());
  executor->Drain();
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, Page()->channel_state[0]);
  EXPECT_TRUE(DrainEventFd(msi.get()));
  const auto* header = Ram<vgpu_channel_header>(kChannelAt);
  EXPECT_EQ(VGPU_CHANNEL_LOST, header->state);
  EXPECT_EQ(719u, header->sticky_error);
  EXPECT_NE('\0', header->error_text[0]);
  EXPECT_EQ(static_cast<uint32_t>(ExecState::kNone), slices.slot_page().slots[0].state);
  EXPECT_EQ(0u, ledgers.vram.used());
  EXPECT_EQ(vf_link::Kind::kChannelClosed, to_vgpud.back().kind);
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kChannelAt, 0x1000}}));
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, 0));
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_FREE, Page()->channel_state[0]);
  EXPECT_EQ(2u, to_vgpud.size()) << "closed is said once";
}

TEST_F(ControlPageTest, AnErrorTheExecutorReportedIsKept) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  Ram<vgpu_channel_header>(kChannelAt)->sticky_error = 700;
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, Ram<vgpu_channel_header>(kChannelAt)->state);
  EXPECT_EQ(700u, Ram<vgpu_channel_header>(kChannelAt)->sticky_error);
}

TEST_F(ControlPageTest, SpawnFailureIsALostChannel) {
  SetControlPage();
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  vf_link::Executor failed = to_vgpud.back();
  failed.kind = vf_link::Kind::kExecutorFailed;
  --failed.generation;
  channels->ExecutorFailed(failed);
  EXPECT_EQ(VGPU_CHANNEL_OPEN, Page()->channel_state[0]) << "of an earlier user of this number";
  ++failed.generation;
  channels->ExecutorFailed(failed);
  EXPECT_EQ(VGPU_CHANNEL_LOST, Page()->channel_state[0]);
}

TEST_F(ControlPageTest, BuffersTravelAndComeBack) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  std::vector<vgpu_segment> scattered;
  for (uint64_t i = 0; i < 3000; ++i) scattered.push_back({kRamBase + 0x400000 + (2999 - i) * 0x1000, 0x1000});
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 7, scattered));
  EXPECT_EQ(-EEXIST, Command(VGPU_CTRL_BUFFER_ADD, 0, 7, {{kChannelAt, 0x1000}}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_BUFFER_ADD, 0, 0, {{kChannelAt, 0x1000}}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_BUFFER_ADD, 0, 0x80000000u, {{kChannelAt, 0x1000}}));
  uint32_t pieces = 0;
  for (const auto& area : executor->Areas(exec_link::Kind::kMapArea)) {
    if (area.area != 7) continue;
    EXPECT_EQ(pieces, area.first_piece);
    EXPECT_EQ(3000u, area.total_pieces);
    pieces += area.count;
  }
  EXPECT_EQ(3000u, pieces);
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 7));
  EXPECT_EQ(-EALREADY, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 7));
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 8));
  Pump();
  EXPECT_EQ(0u, Page()->buffer_ack[0]) << "not before the executor has let go";
  ASSERT_EQ(1u, executor->Areas(exec_link::Kind::kUnmapArea).size());
  DrainEventFd(msi.get());
  ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 7}));
  Pump();
  EXPECT_EQ(1u, Page()->buffer_ack[0]);
  EXPECT_TRUE(DrainEventFd(msi.get()));
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 7));
}

TEST_F(ControlPageTest, NeighbouringSegmentsBecomeOnePiece) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1,
                       {{kRamBase + 0x400000, 0x1000}, {kRamBase + 0x401000, 0x3000}, {kRamBase + 0x405000, 0x1000}}));
  const auto areas = executor->Areas(exec_link::Kind::kMapArea);
  EXPECT_EQ(2u, areas.back().total_pieces);
  EXPECT_EQ(0x5000u, areas.back().total_bytes);
}

TEST_F(ControlPageTest, SegmentsAreCommandsAsWell) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  const uint64_t before = guard.count(GuardedEvent::kCommand);
  std::vector<vgpu_segment> segments;
  for (uint64_t i = 0; i < 3200; ++i) segments.push_back({kRamBase + 0x800000 + (i & 1) * 0x2000, 4096});
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, segments));
  EXPECT_EQ(101u, guard.count(GuardedEvent::kCommand) - before);
}

TEST_F(ControlPageTest, HugePagesAreNotSharedInParts) {
  constexpr uint64_t kHuge = 2 << 20, kHugeAt = 0x40000000;
  const UniqueFd file{::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | (21u << 26))};
  if (!file || ::ftruncate(file.get(), 2 * kHuge) != 0) GTEST_SKIP() << "no huge pages in this kernel";
  ForeignFd shared{*Dup(file.get())};
  ASSERT_TRUE(function->dma.Map({Iova{kHugeAt}, 2 * kHuge}, {true, true}, shared, 0));
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kHugeAt, 4096}}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kHugeAt + 4096, kHuge}}));
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kHugeAt + kHuge, kHuge}}));
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 2, {{kHugeAt, kHuge / 2}, {kHugeAt + kHuge / 2, kHuge / 2}}));
}

// It can't have read what it answers, and the pieces would wait for it while nobody counts them any more.
TEST_F(ControlPageTest, DropWaitsForTheExecutorAndLeavesOtherMemoryAlone) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kRamBase + 0x800000, 0x1000}}));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 2, {{kRamBase + 0x900000, 0x1000}}));
  EXPECT_TRUE(channels->Drop({Iova{kRamBase + 0xa00000}, 0x100000}, [](Result<void>) { FAIL(); }));
  bool done = false;
  ASSERT_FALSE(channels->Drop({Iova{kRamBase + 0x800000}, 0x100000}, [&](Result<void> r) { done = r.has_value(); }));
  Pump();
  EXPECT_FALSE(done);
  const auto asked = executor->Areas(exec_link::Kind::kUnmapArea);
  ASSERT_EQ(1u, asked.size());
  EXPECT_EQ(1u, asked[0].area);
  ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 1}));
  Pump();
  EXPECT_TRUE(done);
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 1)) << "the guest removes it as usual";
  EXPECT_EQ(1u, Page()->buffer_ack[0]);
}

TEST_F(ControlPageTest, DropOfTheChannelAreaEndsItsExecutor) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  bool done = false;
  ASSERT_FALSE(channels->Drop({Iova{kChannelAt}, 0x1000}, [&](Result<void> r) { done = r.has_value(); }));
  Pump();
  EXPECT_FALSE(done);
  executor->Die();
  Pump();
  EXPECT_TRUE(done);
  EXPECT_EQ(VGPU_CHANNEL_LOST, channels->State(0));
}

TEST_F(ControlPageTest, ResetForgetsTheGuestButNotDyingExecutors) {
  SetControlPage();
  const auto first = OpenWithExecutor(0);
  const auto second = OpenWithExecutor(1);
  const uint16_t flr = 0x8000;
  ASSERT_TRUE(function->Write(wire::kConfig, kExpressCap + 8, std::as_bytes(std::span{&flr, 1})));
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_ADDR_LO));
  DrainEventFd(msi.get());
  first->Die();
  Pump();
  EXPECT_FALSE(DrainEventFd(msi.get())) << "nobody listens after a reset";
  EXPECT_EQ(VGPU_CHANNEL_FREE, channels->State(0));
  SetBusMaster(true);
  SetControlPage();
  FillHeader();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  EXPECT_EQ(-EBUSY, Command(VGPU_CTRL_CHANNEL_CREATE, 1, 0, ChannelSegments())) << "still dying";
  second->Die();
  Pump();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 1, 0, ChannelSegments()));
}

TEST_F(ControlPageTest, WithoutBusMasterNothingIsReadOrWritten) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  const auto status = [this] {
    uint16_t value = 0;
    EXPECT_TRUE(function->Read(wire::kConfig, kExpressCap + 10, std::as_writable_bytes(std::span{&value, 1})));
    return value;
  };
  EXPECT_EQ(0, status());
  SetBusMaster(false);
  EXPECT_EQ(0x20, status()) << "transactions pending: the executor still has the guest's memory";
  const vgpu_ctrl_page before = *Page();
  executor->Die();
  Pump();
  EXPECT_EQ(0, status());
  EXPECT_EQ(0, std::memcmp(&before, Page(), sizeof before)) << "nobody may write there";
  const uint64_t address = kControlAt;
  EXPECT_TRUE(function->Write(wire::kBar0, VGPU_REG_CTRL_ADDR_LO, std::as_bytes(std::span{&address, 1})));
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ)) << "a command is not run";
  SetBusMaster(true);
  FillHeader();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
}

TEST_F(ControlPageTest, ListsOfSegmentsInPages) {
  SetControlPage();
  FillHeader();
  // A list of three pages for a buffer: the same page of memory again and again, and never two that follow.
  constexpr uint32_t kSegments = 2 * VGPU_SEGMENTS_PER_PAGE + 1;
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  for (uint32_t i = 0; i < kSegments; ++i)
    Ram<vgpu_segment>(kSegmentsAt + (i / VGPU_SEGMENTS_PER_PAGE) * 4096)[i % VGPU_SEGMENTS_PER_PAGE] = {kChannelAt,
                                                                                                        4096};
  const auto link = [this](uint32_t page) {
    return &Ram<vgpu_segment>(kSegmentsAt + page * 4096)[VGPU_SEGMENTS_PER_PAGE];
  };
  *link(0) = {kSegmentsAt + 4096, 0};
  *link(1) = {kSegmentsAt + 8192, 0};
  const auto add = [this](uint32_t buffer, uint32_t flags) {
    vgpu_ctrl_cmd command{};
    command.op = VGPU_CTRL_BUFFER_ADD;
    command.buffer = buffer;
    command.seg_count = kSegments;
    command.seg_list = kSegmentsAt;
    command.flags = flags;
    Page()->cmd = command;
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    return static_cast<int>(Page()->cmd.status);
  };
  EXPECT_EQ(0, add(1, VGPU_CTRL_SEGMENT_PAGES));
  EXPECT_EQ(-EINVAL, add(2, 2)) << "unknown flag";
  EXPECT_EQ(-EINVAL, add(2, 0)) << "as one piece the links are no segments";
  link(1)->addr += 8;
  EXPECT_EQ(-EINVAL, add(2, VGPU_CTRL_SEGMENT_PAGES)) << "not a page";
  *link(1) = {kSegmentsAt + 8192, 4096};
  EXPECT_EQ(-EINVAL, add(2, VGPU_CTRL_SEGMENT_PAGES)) << "not a link";
  *link(1) = {uint64_t{1} << 62, 0};
  EXPECT_EQ(-EFAULT, add(2, VGPU_CTRL_SEGMENT_PAGES)) << "not there";
}

TEST_F(ControlPageTest, SaysWhichProcessItIsForAndWhatTheDriverSpeaks) {
  SetControlPage();
  FillHeader();
  Ram<vgpu_segment>(kSegmentsAt)[0] = ChannelSegments()[0];
  vgpu_ctrl_cmd command{};
  command.op = VGPU_CTRL_CHANNEL_CREATE;
  command.seg_count = 1;
  command.seg_list = kSegmentsAt;
  command.client_pid = 815;
  Page()->cmd = command;
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(0u, Page()->cmd.status);
  EXPECT_EQ(815u, to_vgpud[0].client_pid);
  EXPECT_EQ(VGPU_ABI_OLDEST, ReadRegister(VGPU_REG_ABI_VERSION));
  EXPECT_EQ(VGPU_ABI_VERSION, ReadRegister(VGPU_REG_ABI_NEWEST));
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_DRIVER_FEATURES_LO)) << "nothing is on that the guest has not chosen";
  WriteRegister(VGPU_REG_DRIVER_FEATURES_LO, 0xffffffff);
  EXPECT_EQ(VGPU_FEATURES_ALL & VGPU_FEATURES_TRANSPORT, ReadRegister(VGPU_REG_DRIVER_FEATURES_LO));
}

TEST_F(ControlPageTest, RefusesOpensBeyondTheBudgetToDriversThatAskAgain) {
  SetControlPage();
  FillHeader();
  Ram<vgpu_segment>(kSegmentsAt)[0] = ChannelSegments()[0];
  const auto open = [this] {
    vgpu_ctrl_cmd command{};
    command.op = VGPU_CTRL_CHANNEL_CREATE;
    command.seg_count = 1;
    command.seg_list = kSegmentsAt;
    Page()->cmd = command;
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    return static_cast<int32_t>(Page()->cmd.status);
  };
  EXPECT_FALSE(guard.Refuses(GuardedEvent::kOpen, Now())) << "from now on the time counts";
  guard.Count(GuardedEvent::kOpen, 1'000'000);
  WriteRegister(VGPU_REG_DRIVER_FEATURES_LO, VGPU_FEATURE_BUSY);
  EXPECT_EQ(-EBUSY, open());
  WriteRegister(VGPU_REG_DRIVER_FEATURES_LO, 0);
  EXPECT_EQ(0, open()) << "an older driver would fail the program; it is answered late instead";
}

TEST_F(ControlPageTest, RefusesBuffersBeyondTheBudgetOfCommandsToDriversThatAskAgain) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  const std::vector<vgpu_segment> page = {{kRamBase + 0x800000, 4096}};
  EXPECT_FALSE(guard.Refuses(GuardedEvent::kCommand, Now())) << "from now on the time counts";
  guard.Count(GuardedEvent::kCommand, 1'000'000'000);
  WriteRegister(VGPU_REG_DRIVER_FEATURES_LO, VGPU_FEATURE_BUSY);
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, page)) << "an older driver would fail the program";
  WriteRegister(VGPU_REG_DRIVER_FEATURES_LO, VGPU_FEATURE_BUSY_BUFFERS);
  EXPECT_EQ(-EBUSY, Command(VGPU_CTRL_BUFFER_ADD, 0, 2, page));
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 1)) << "what gives back is never refused";
}

TEST_F(ControlPageTest, ResetByTheHostReportsChannelsAsLost) {
  SetControlPage();
  const auto executor = OpenWithExecutor(3);
  DrainEventFd(msi.get());
  function->ResetByHost();
  EXPECT_EQ(VGPU_CHANNEL_LOST, Page()->channel_state[3]);
  EXPECT_TRUE(DrainEventFd(msi.get()));
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_ADDR_LO)) << "to be set anew";
  executor->Die();
  Pump();
  SetControlPage();
  FillHeader();
  EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 3, 0, ChannelSegments())) << "bus mastering is on as before";
}

TEST_F(ControlPageTest, WithoutMsiTheLineGoesUpUntilItIsTaken) {
  const UniqueFd line = *MakeEventFd();
  ForeignFd event{*Dup(line.get())};
  ASSERT_TRUE(function->irqs.Set({20, wire::kIrqDataNone | wire::kIrqTrigger, wire::kMsi, 0, 0}, {}, {}));
  ASSERT_TRUE(
      function->irqs.Set({20, wire::kIrqDataEventFd | wire::kIrqTrigger, wire::kIntx, 0, 1}, {}, std::span{&event, 1}));
  const auto unmask = [this] {
    EXPECT_TRUE(function->irqs.Set({20, wire::kIrqDataNone | wire::kIrqUnmask, wire::kIntx, 0, 1}, {}, {}));
  };
  function->irqs.Interrupt();
  EXPECT_TRUE(DrainEventFd(line.get()));
  function->irqs.Interrupt();
  EXPECT_FALSE(DrainEventFd(line.get())) << "is up already";
  unmask();
  EXPECT_TRUE(DrainEventFd(line.get())) << "nobody has taken it";
  EXPECT_EQ(VGPU_IRQ_PENDING, ReadRegister(VGPU_REG_IRQ_STATUS));
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_IRQ_STATUS));
  unmask();
  EXPECT_FALSE(DrainEventFd(line.get()));
}

TEST_F(ControlPageTest, AllChannelsAtOnce) {
  SetControlPage();
  FillHeader();
  for (uint32_t i = 0; i < VGPU_MAX_CHANNELS; ++i)
    EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, i, 0, ChannelSegments()));
  EXPECT_EQ(std::errc::device_or_resource_busy, channels->FindFree().error().code);
  for (uint32_t i = 0; i < VGPU_MAX_CHANNELS; ++i) EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, i));
  Pump();
  EXPECT_EQ(0u, channels->open_channels());
}

}  // namespace
}  // namespace vgpud::vfio
