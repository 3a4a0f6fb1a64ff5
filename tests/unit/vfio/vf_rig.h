// SPDX-License-Identifier: Apache-2.0
// A VF without processes: guest RAM in a memfd, BAR0 as the guest writes it, and the other ends of its executors.
#pragma once

#include <event2/event.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/exec_link.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "vfio/device/pci_function.h"

namespace vgpud::vfio {

inline constexpr uint64_t kRamBase = 0x100000;
inline constexpr uint64_t kRamBytes = 16 << 20;
inline constexpr uint64_t kControlAt = kRamBase;            // where the rig puts the control page
inline constexpr uint64_t kSegmentsAt = kRamBase + 0x1000;  // and segment lists
inline constexpr uint64_t kChannelAt = kRamBase + 0x100000;

// An executor as vgpud-vf sees it. Its pidfd is the read end of a pipe: it becomes readable when Die() closes the
// other.
struct FakeExecutor {
  UniqueFd socket;
  UniqueFd life;
  std::vector<Message> messages;

  void Die() {
    life.Reset();
    socket.Reset();
  }
  void Drain() {
    for (;;) {
      auto message = ReceiveMessage(socket.get());
      if (!message) return;
      messages.push_back(std::move(*message));
    }
  }
  std::vector<exec_link::Area> Areas(exec_link::Kind kind) {
    Drain();
    std::vector<exec_link::Area> areas;
    for (const Message& message : messages)
      if (*message.As<exec_link::Kind>() == kind) areas.push_back(*message.As<exec_link::Area>());
    return areas;
  }
};

class VfRig : public testing::Test {
 protected:
  explicit VfRig(const EventBudgets& budgets = kDefaultEventBudgets) : guard{budgets, TimePoint{}, [] {}} {
    figures.name = "rig";
    figures.vram_bytes = 1 << 30;
    ledgers.vram.SetQuota(figures.vram_bytes);
    ledgers.host.SetQuota(figures.vram_bytes);
    slice_memory = *MakeSliceMemory("rig");
    slices = *MapSlices(slice_memory.grant_fd.get(), slice_memory.slots_fd.get());
    channels = std::make_unique<ChannelTable>(loop, ledgers,
                                              ChannelTable::Config{figures.name, &slices.slot_page(), guard,
                                                                   [this](const vf_link::Executor& message) {
                                                                     if (!vgpud_there) return false;
                                                                     to_vgpud.push_back(message);
                                                                     return true;
                                                                   },
                                                                   [] {}});
    function = std::make_unique<PciFunction>(loop, *channels, figures, guard);
    ram = *MakeSealedMemfd("ram", kRamBytes);
    view = *Mapping::Shared(ram.get(), 0, kRamBytes);
    ForeignFd shared{*Dup(ram.get())};
    EXPECT_TRUE(function->dma.Map({Iova{kRamBase}, kRamBytes}, {true, true}, shared, 0));
    msi = *MakeEventFd();
    ForeignFd event{*Dup(msi.get())};
    EXPECT_TRUE(function->irqs.Set({20, wire::kIrqDataEventFd | wire::kIrqTrigger, wire::kMsi, 0, 1}, {},
                                   std::span{&event, 1}));
    SetBusMaster(true);
  }

  // As the guest does with the Command register.
  void SetBusMaster(bool on) {
    const uint16_t command = on ? 0x0006 : 0x0002;
    EXPECT_TRUE(function->Write(wire::kConfig, 4, std::as_bytes(std::span{&command, 1})));
  }

  template <class T>
  T* Ram(uint64_t guest_address) {
    return view.At<T>(guest_address - kRamBase);
  }
  vgpu_ctrl_page* Page() { return Ram<vgpu_ctrl_page>(kControlAt); }

  void Pump() {
    for (int i = 0; i < 5; ++i) event_base_loop(loop.base(), EVLOOP_NONBLOCK);
  }
  uint32_t ReadRegister(uint32_t offset) {
    uint32_t value = 0;
    EXPECT_TRUE(function->Read(wire::kBar0, offset, std::as_writable_bytes(std::span{&value, 1})));
    return value;
  }
  void WriteRegister(uint32_t offset, uint32_t value) {
    EXPECT_TRUE(function->Write(wire::kBar0, offset, std::as_bytes(std::span{&value, 1})));
  }
  void SetControlPage(uint64_t address = kControlAt) {
    const uint64_t value = address;
    EXPECT_TRUE(function->Write(wire::kBar0, VGPU_REG_CTRL_ADDR_LO, std::as_bytes(std::span{&value, 1})));
  }
  // Runs a command as the guest kernel does; its status.
  int Command(uint32_t op, uint32_t channel, uint32_t buffer = 0, std::vector<vgpu_segment> segments = {}) {
    vgpu_ctrl_cmd command{};
    command.op = op;
    command.channel = channel;
    command.buffer = buffer;
    command.seg_count = static_cast<uint32_t>(segments.size());
    command.seg_list = segments.empty() ? 0 : kSegmentsAt;
    command.status = 12345;
    std::copy(segments.begin(), segments.end(), Ram<vgpu_segment>(kSegmentsAt));
    Page()->cmd = command;
    const uint32_t before = ReadRegister(VGPU_REG_CTRL_SEQ);
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
    EXPECT_EQ(before + 1, ReadRegister(VGPU_REG_CTRL_SEQ));
    return Page()->cmd.status;
  }
  void FillHeader(uint64_t at = kChannelAt) {
    *Ram<vgpu_channel_header>(at) = {};
    Ram<vgpu_channel_header>(at)->magic = VGPU_MAGIC;
    Ram<vgpu_channel_header>(at)->abi_version = VGPU_ABI_VERSION;
    Ram<vgpu_channel_header>(at)->unused_pid = 4711;
  }
  static std::vector<vgpu_segment> ChannelSegments(uint64_t at = kChannelAt) { return {{at, VGPU_CHANNEL_MIN_BYTES}}; }
  // Opens `channel` and, as vgpud does, sends its executor.
  std::unique_ptr<FakeExecutor> OpenWithExecutor(uint32_t channel) {
    const uint64_t at = kChannelAt + channel * 0x100000;
    FillHeader(at);
    EXPECT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, channel, 0, ChannelSegments(at)));
    return SendExecutor();
  }
  std::unique_ptr<FakeExecutor> SendExecutor() {
    auto executor = std::make_unique<FakeExecutor>();
    SocketPair pair = *MakeSeqpacketPair();
    int ends[2];
    EXPECT_EQ(0, ::pipe2(ends, O_CLOEXEC));
    executor->socket = std::move(pair.a);
    executor->life = UniqueFd{ends[1]};
    vf_link::Executor message = to_vgpud.back();
    message.kind = vf_link::Kind::kExecutor;
    channels->ExecutorStarted(message, std::move(pair.b), UniqueFd{ends[0]});
    return executor;
  }

  EventLoop loop;
  VfFigures figures;
  MemoryLedgers ledgers;
  EventGuard guard;
  SliceMemory slice_memory;
  SliceView slices;
  bool vgpud_there = true;
  std::vector<vf_link::Executor> to_vgpud;
  std::unique_ptr<ChannelTable> channels;
  std::unique_ptr<PciFunction> function;
  UniqueFd ram;
  Mapping view;
  UniqueFd msi;
};

}  // namespace vgpud::vfio
