// SPDX-License-Identifier: Apache-2.0
// The rules of vgpu_abi.h for the commands of the control page, and what the host writes there.
#include <event2/event.h>
#include <sys/mman.h>

#include "base/signal_socket.h"
#include "guest-driver-shim/include/uapi/vgpu_status.h"
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

class ControlCommandsTest : public VfRig {
 protected:
  // Runs it as it is.
  int Run(const vgpu_ctrl_cmd& command) {
    Page()->cmd = command;
    Page()->cmd.status = 12345;
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    return static_cast<int>(Page()->cmd.status);
  }
  vgpu_ctrl_cmd Good(uint32_t op) {
    vgpu_ctrl_cmd command{};
    command.op = op;
    if (op == VGPU_CTRL_BUFFER_ADD || op == VGPU_CTRL_BUFFER_REMOVE) command.buffer = 1;
    if (op == VGPU_CTRL_CHANNEL_CREATE || op == VGPU_CTRL_BUFFER_ADD) {
      command.seg_count = 1;
      command.seg_list = kSegmentsAt;
      *Ram<vgpu_segment>(kSegmentsAt) = ChannelSegments()[0];
    }
    return command;
  }
};

TEST_F(ControlCommandsTest, EachCommandTakesItsFieldsAndTheOthersAreZero) {
  SetControlPage();
  FillHeader();
  vgpud_there = false;
  struct Field {
    const char* name;
    void (*set)(vgpu_ctrl_cmd&);
    std::vector<uint32_t> taken_by;
  };
  const Field fields[] = {
      {"buffer", [](vgpu_ctrl_cmd& c) { c.buffer = 1; }, {VGPU_CTRL_BUFFER_ADD, VGPU_CTRL_BUFFER_REMOVE}},
      {"seg_count", [](vgpu_ctrl_cmd& c) { c.seg_count = 1; }, {VGPU_CTRL_CHANNEL_CREATE, VGPU_CTRL_BUFFER_ADD}},
      {"seg_list",
       [](vgpu_ctrl_cmd& c) { c.seg_list = kSegmentsAt; },
       {VGPU_CTRL_CHANNEL_CREATE, VGPU_CTRL_BUFFER_ADD}},
      {"pages", [](vgpu_ctrl_cmd& c) { c.flags = 1; }, {VGPU_CTRL_CHANNEL_CREATE, VGPU_CTRL_BUFFER_ADD}},
      {"other flags", [](vgpu_ctrl_cmd& c) { c.flags = 2; }, {}},
      {"client_pid", [](vgpu_ctrl_cmd& c) { c.client_pid = 1; }, {VGPU_CTRL_CHANNEL_CREATE}},
      {"mbz[0]", [](vgpu_ctrl_cmd& c) { c.mbz[0] = 1; }, {}},
      {"mbz[1]", [](vgpu_ctrl_cmd& c) { c.mbz[1] = 1ull << 63; }, {}},
      {"mbz[2]", [](vgpu_ctrl_cmd& c) { c.mbz[2] = 1; }, {}},
      {"mbz2", [](vgpu_ctrl_cmd& c) { c.mbz2 = 1; }, {}},
  };
  const std::pair<uint32_t, int> commands[] = {{VGPU_CTRL_CHANNEL_CREATE, -ENODEV},
                                               {VGPU_CTRL_CHANNEL_DESTROY, -ENOENT},
                                               {VGPU_CTRL_BUFFER_ADD, -ENOENT},
                                               {VGPU_CTRL_BUFFER_REMOVE, -ENOENT},
                                               {VGPU_CTRL_STATUS, 0}};
  for (const auto& [op, otherwise] : commands) {
    EXPECT_EQ(otherwise, Run(Good(op))) << op;
    for (const Field& field : fields) {
      vgpu_ctrl_cmd command = Good(op);
      field.set(command);
      const bool taken = std::count(field.taken_by.begin(), field.taken_by.end(), op) != 0;
      EXPECT_EQ(taken ? otherwise : -EINVAL, Run(command)) << op << " " << field.name;
    }
    for (const uint32_t channel : {64u, 65u, ~0u}) {
      vgpu_ctrl_cmd command = Good(op);
      command.channel = channel;
      EXPECT_EQ(-EINVAL, Run(command)) << op << " " << channel;
    }
    vgpu_ctrl_cmd last = Good(op);
    last.channel = 63;
    EXPECT_EQ(op == VGPU_CTRL_STATUS ? -EINVAL : otherwise, Run(last)) << op;
  }
  for (const uint32_t op : {0u, 6u, ~0u}) EXPECT_EQ(-ENOSYS, Run(Good(op))) << op;
}

TEST_F(ControlCommandsTest, StatusIsWrittenIntoThePageWhenAskedFor) {
  SetControlPage();
  figures.gpu_percent = 42;
  std::memset(Page()->reserved, 0x55, sizeof Page()->reserved);
  const auto* const said = Ram<vgpu_status>(kControlAt + VGPU_CTRL_PAGE_STATUS);
  EXPECT_EQ(-ENOSYS, Run(Good(6)));
  EXPECT_EQ(0x55555555u, said->gpu_percent);
  EXPECT_EQ(0, Run(Good(VGPU_CTRL_STATUS)));
  EXPECT_EQ(uint32_t{sizeof(vgpu_status)}, said->bytes);
  EXPECT_EQ(42u, said->gpu_percent);
  EXPECT_EQ(0u, said->channel[0].id);
  const auto* const bytes = Ram<uint8_t>(kControlAt);
  EXPECT_EQ(0x55, bytes[VGPU_CTRL_PAGE_STATUS - 1]);
  EXPECT_EQ(0x55, bytes[VGPU_CTRL_PAGE_STATUS + sizeof(vgpu_status)]) << "and nothing beside it";
  figures.gpu_percent = 43;
  EXPECT_EQ(42u, said->gpu_percent);
  EXPECT_EQ(0, Run(Good(VGPU_CTRL_STATUS)));
  EXPECT_EQ(43u, said->gpu_percent);
}

TEST_F(ControlCommandsTest, SegmentsAreWholePagesOfMemoryThatIsThere) {
  SetControlPage();
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  struct {
    vgpu_segment segment;
    int status;
  } const cases[] = {
      {{kRamBase, 4096}, 0},
      {{kRamBase + kRamBytes - 4096, 4096}, 0},
      {{kRamBase, 0}, -EINVAL},
      {{kRamBase + 1, 4096}, -EINVAL},
      {{kRamBase + 2048, 4096}, -EINVAL},
      {{kRamBase, 4095}, -EINVAL},
      {{kRamBase, 4097}, -EINVAL},
      {{kRamBase, 2048}, -EINVAL},
      {{kRamBase - 4096, 4096}, -EFAULT},
      {{kRamBase + kRamBytes, 4096}, -EFAULT},
      {{kRamBase + kRamBytes - 4096, 8192}, -EFAULT},
      {{~0ull - 4095, 8192}, -EINVAL},
  };
  uint32_t buffer = 1;
  for (const auto& c : cases)
    EXPECT_EQ(c.status, Command(VGPU_CTRL_BUFFER_ADD, 0, buffer++, {c.segment}))
        << std::hex << c.segment.addr << "+" << c.segment.bytes;
  for (const auto& [count, status] :
       std::initializer_list<std::pair<uint32_t, int>>{{0, -EINVAL}, {65536, 0}, {65537, -EINVAL}, {~0u, -EINVAL}}) {
    vgpu_ctrl_cmd command = Good(VGPU_CTRL_BUFFER_ADD);
    command.buffer = buffer++;
    command.seg_list = kChannelAt + 0x100000;
    command.seg_count = count;
    for (uint32_t i = 0; i < std::min(count, 65536u); ++i) Ram<vgpu_segment>(command.seg_list)[i] = {kRamBase, 4096};
    EXPECT_EQ(status, Run(command)) << count;
  }
}

TEST_F(ControlCommandsTest, SegmentsOfMoreBytesThanThereAreAddressesAreRefused) {
  constexpr uint64_t kQuarter = uint64_t{1} << 62;
  const UniqueFd file{::memfd_create("huge", MFD_CLOEXEC)};
  ASSERT_EQ(0, ::ftruncate(file.get(), static_cast<off_t>(kQuarter)));
  ForeignFd shared{*Dup(file.get())};
  ASSERT_TRUE(function->dma.Map({Iova{kQuarter}, kQuarter}, {true, true}, shared, 0));
  SetControlPage();
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 0, 0, ChannelSegments()));
  const vgpu_segment quarter{kQuarter, kQuarter};
  EXPECT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {quarter, quarter, quarter}));
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_BUFFER_ADD, 0, 2, {quarter, quarter, quarter, quarter}));
}

TEST_F(ControlCommandsTest, APieceContinuesTheOneBeforeItInFileAndMemoryAndAccess) {
  const auto map = [this](uint64_t at, uint64_t offset, const UniqueFd& file) {
    ForeignFd shared{*Dup(file.get())};
    ASSERT_TRUE(function->dma.Map({Iova{at}, 0x1000}, {true, true}, shared, offset));
  };
  const UniqueFd other = *MakeSealedMemfd("other", 0x4000);
  constexpr uint64_t kAt = 0x4000'0000;
  map(kAt, 0x1000, ram);
  map(kAt + 0x1000, 0x2000, ram);    // goes on
  map(kAt + 0x2000, 0x3000, other);  // another file
  map(kAt + 0x3000, 0x5000, ram);    // after a gap in the file
  map(kAt + 0x5000, 0x6000, ram);    // after a gap in the memory
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kAt, 0x4000}, {kAt + 0x5000, 0x1000}}));
  executor->Drain();
  const Message& message = executor->messages.back();
  const auto area = *message.As<exec_link::Area>();
  EXPECT_EQ(0x5000u, area.total_bytes);
  ASSERT_EQ(4u, area.count);
  std::vector<exec_link::Piece> pieces(4);
  ASSERT_EQ(sizeof area + 4 * sizeof pieces[0], message.bytes.size());
  std::memcpy(pieces.data(), message.bytes.data() + sizeof area, 4 * sizeof pieces[0]);
  const std::pair<uint64_t, uint64_t> expected[] = {
      {0x1000, 0x2000}, {0x3000, 0x1000}, {0x5000, 0x1000}, {0x6000, 0x1000}};
  const uint32_t fds[] = {0, 1, 0, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(expected[i].first, pieces[i].offset) << i;
    EXPECT_EQ(expected[i].second, pieces[i].bytes) << i;
    EXPECT_EQ(fds[i], pieces[i].fd_index) << i;
    EXPECT_EQ(1u, pieces[i].writable) << i;
  }
}

TEST_F(ControlCommandsTest, AChannelAreaHasAHeaderOfAVersionThatIsSpoken) {
  SetControlPage();
  const uint64_t apart = kChannelAt + 0x100000;
  const std::vector<vgpu_segment> segments = {{kChannelAt, 4096}, {apart, VGPU_CHANNEL_MIN_BYTES - 4096}};
  *Ram<vgpu_channel_header>(apart) = {};
  struct {
    uint32_t magic, version;
    int status;
  } const cases[] = {{VGPU_MAGIC, 1, 0},
                     {VGPU_MAGIC, 0, -EPROTONOSUPPORT},
                     {VGPU_MAGIC, 2, -EPROTONOSUPPORT},
                     {VGPU_MAGIC + 1, 1, -EPROTONOSUPPORT},
                     {0, 1, -EPROTONOSUPPORT}};
  uint32_t channel = 0;
  for (const auto& c : cases) {
    FillHeader();
    Ram<vgpu_channel_header>(kChannelAt)->magic = c.magic;
    Ram<vgpu_channel_header>(kChannelAt)->abi_version = c.version;
    EXPECT_EQ(c.status, Command(VGPU_CTRL_CHANNEL_CREATE, channel++, 0, segments)) << c.magic << " " << c.version;
  }
  FillHeader();
  EXPECT_EQ(-EINVAL, Command(VGPU_CTRL_CHANNEL_CREATE, channel, 0,
                             {{kChannelAt, 4096}, {apart, VGPU_CHANNEL_MIN_BYTES - 8192}}));
  EXPECT_EQ(4711u, to_vgpud.back().client_pid) << "where older drivers say it";
}

TEST_F(ControlCommandsTest, APageIsAtAnAlignedAddressThatIsNotZero) {
  const UniqueFd low = *MakeSealedMemfd("low", 0x3000);
  const Mapping memory = *Mapping::Shared(low.get(), 0, 0x3000);
  ForeignFd shared{*Dup(low.get())};
  ASSERT_TRUE(function->dma.Map({Iova{0}, 0x3000}, {true, true}, shared, 0));
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  const std::vector<std::byte> nothing(0x3000);
  for (const uint64_t address : {uint64_t{0}, uint64_t{8}, uint64_t{0x800}, uint64_t{0x1008}}) {
    SetControlPage(address);
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ)) << address;
    SendSignal(executor->messages.empty() ? (executor->Drain(), executor->messages[0].fds[1].get())
                                          : executor->messages[0].fds[1].get());
    Pump();
    EXPECT_EQ(0, std::memcmp(nothing.data(), memory.At<std::byte>(0), nothing.size())) << address;
  }
  SetControlPage(0x1000);
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(1u, ReadRegister(VGPU_REG_CTRL_SEQ));
  EXPECT_EQ(static_cast<uint32_t>(-ENOSYS), memory.At<vgpu_ctrl_page>(0x1000)->cmd.status);
}

TEST_F(ControlCommandsTest, ANewPageHasAllThatWasInTheOldOneAndIsTheGuestsBetweenChanges) {
  SetControlPage();
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 63, 0, ChannelSegments()));
  const auto executor = SendExecutor();
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 63, 1, {{kRamBase + 0x800000, 0x1000}}));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 63, 1));
  ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 1}));
  executor->Drain();
  SendSignal(executor->messages[0].fds[1].get());
  Pump();
  EXPECT_EQ(3u, ReadRegister(VGPU_REG_CTRL_SEQ));

  const uint64_t moved = kRamBase + 0x10000;
  std::memset(Ram<char>(moved), 0xee, 4096);
  Ram<vgpu_ctrl_page>(moved)->cmd = {};
  SetControlPage(moved);
  EXPECT_EQ(0u, ReadRegister(VGPU_REG_CTRL_SEQ)) << "counts anew";
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(1u, ReadRegister(VGPU_REG_CTRL_SEQ));
  auto* page = Ram<vgpu_ctrl_page>(moved);
  for (uint32_t channel = 0; channel < 64; ++channel) {
    EXPECT_EQ(channel == 63 ? VGPU_CHANNEL_OPEN : VGPU_CHANNEL_FREE, page->channel_state[channel]) << channel;
    EXPECT_EQ(channel == 63 ? 1u : 0u, page->buffer_ack[channel]) << channel;
    EXPECT_EQ(channel == 63 ? 1u : 0u, page->events[channel]) << channel;
  }
  for (const uint8_t byte : page->reserved) ASSERT_EQ(0xee, byte);
  page->channel_state[5] = 77;
  WriteRegister(VGPU_REG_CTRL_KICK, 1);
  EXPECT_EQ(77u, page->channel_state[5]);

  // Its next user begins at 0.
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, page->channel_state[63]);
  SetControlPage();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_DESTROY, 63));
  Pump();
  EXPECT_EQ(1u, Page()->buffer_ack[63]);
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 63, 0, ChannelSegments()));
  EXPECT_EQ(0u, Page()->buffer_ack[63]);
}

TEST_F(ControlCommandsTest, CallsAreCountedWhereTheirChannelLooks) {
  SetControlPage();
  const auto first = OpenWithExecutor(0);
  const auto other = OpenWithExecutor(5);
  first->Drain();
  other->Drain();
  for (int i = 0; i < 3; ++i) {
    SendSignal(other->messages[0].fds[1].get());
    Pump();
  }
  SendSignal(first->messages[0].fds[1].get());
  Pump();
  EXPECT_EQ(1u, Page()->events[0]);
  EXPECT_EQ(3u, Page()->events[5]);
  EXPECT_EQ(0u, Page()->events[1]);
}

TEST_F(ControlCommandsTest, AResetByTheHostTellsOfEveryChannel) {
  SetControlPage();
  const auto first = OpenWithExecutor(0);
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 63, 0, ChannelSegments()));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 63, 1, {{kRamBase, 0x1000}}));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kRamBase, 0x1000}}));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 1));
  ASSERT_TRUE(SendStruct(first->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 1}));
  Pump();
  function->ResetByHost();
  for (uint32_t channel = 0; channel < 64; ++channel)
    EXPECT_EQ(channel % 63 == 0 ? VGPU_CHANNEL_LOST : VGPU_CHANNEL_FREE, Page()->channel_state[channel]) << channel;
  EXPECT_EQ(1u, Page()->buffer_ack[0]);
  SetControlPage();
  EXPECT_EQ(-ENOENT, Command(VGPU_CTRL_CHANNEL_DESTROY, 63));
  EXPECT_EQ(VGPU_CHANNEL_FREE, Page()->channel_state[63]) << "and the guest begins anew";
  EXPECT_EQ(0u, Page()->buffer_ack[0]);
}

TEST_F(ControlCommandsTest, InterruptsBeyondTheBudgetComeLaterAsOne) {
  constexpr uint32_t kInterrupts = EventGuard::Bit(GuardedEvent::kInterrupt);
  const auto raised = [this] {
    uint64_t count = 0;
    return ::read(msi.get(), &count, sizeof count) == sizeof count ? count : 0;
  };
  SetControlPage();
  const auto first = OpenWithExecutor(0);
  const auto second = OpenWithExecutor(1);
  const auto third = OpenWithExecutor(2);
  guard.Count(GuardedEvent::kInterrupt, 50'001);
  EXPECT_EQ(Ns{0}, guard.Wait(kInterrupts, Now())) << "from now on the time counts";
  guard.Count(GuardedEvent::kInterrupt, 55'000);  // 100 ms
  first->Die();
  second->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, Page()->channel_state[1]);
  uint64_t late = raised();
  EXPECT_EQ(0u, late);
  while (late == 0) {
    event_base_loop(loop.base(), EVLOOP_ONCE);
    late = raised();
  }
  EXPECT_EQ(1u, late);
  guard.Count(GuardedEvent::kInterrupt, 5'000);
  third->Die();
  Pump();
  function->Reset();
  bool over = false;
  const auto timer = loop.Timer([&] { over = true; });
  timer->Arm(guard.Wait(kInterrupts, Now()));
  while (!over) event_base_loop(loop.base(), EVLOOP_ONCE);
  Pump();
  EXPECT_EQ(0u, raised()) << "nobody waits for it any more";
}

}  // namespace
}  // namespace vgpud::vfio
