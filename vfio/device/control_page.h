// SPDX-License-Identifier: Apache-2.0
// The control page of the guest kernel (struct vgpu_ctrl_page): runs its commands and keeps its channel states. All
// of it is hostile bytes in guest memory: copied once, checked, then used.
#pragma once

#include <array>

#include "base/event_loop.h"
#include "base/log.h"
#include "vfio/channel/channel_table.h"
#include "vfio/channel/vf_figures.h"
#include "vfio/device/irq_table.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

class ControlPage : public ChannelOwner {
 public:
  ControlPage(EventLoop& loop, ChannelTable& channels, const DmaTable& dma, IrqTable& irqs, const VfFigures& figures,
              EventGuard& guard);

  // BAR0 CTRL_ADDR: 0 or an address that is not page aligned = no page.
  void SetAddress(uint64_t address);
  // Without it the page is neither read nor written, and no command is run.
  void SetBusMaster(bool on) { bus_master_ = on; }
  uint64_t address() const { return address_; }
  // BAR0 CTRL_SEQ. A kick that cannot read or answer its command (no page, memory not shared) is not counted; that is
  // how the guest learns of it, and the log names the fix.
  uint32_t commands_run() const { return commands_run_; }
  // BAR0 CTRL_KICK: runs the command in the page, for a driver that uses these features.
  void RunCommand(uint64_t driver_features);
  // FLR, DEVICE_RESET, no bus master any more or the client's end: the guest's channels end, nothing is reported back.
  void Reset();
  // A reset that the guest knows nothing of: the same, but its channels are reported as lost first.
  void ResetAndTell();

  void ChannelState(uint32_t channel, uint32_t state) override;
  void BufferGone(uint32_t channel, uint32_t buffer) override;

 private:
  [[nodiscard]] Result<void> Execute(const vgpu_ctrl_cmd& command);
  [[nodiscard]] Result<void> ChannelCreate(const vgpu_ctrl_cmd& command);
  [[nodiscard]] Result<void> ChannelDestroy(const vgpu_ctrl_cmd& command);
  [[nodiscard]] Result<void> BufferAdd(const vgpu_ctrl_cmd& command);
  [[nodiscard]] Result<void> BufferRemove(const vgpu_ctrl_cmd& command);
  [[nodiscard]] Result<void> Status(const vgpu_ctrl_cmd& command);
  struct CommandSpec;
  static const CommandSpec kCommands[];

  // EBUSY: the budget of `event` is used up, and the driver, which uses `feature`, asks again.
  [[nodiscard]] Result<void> CheckBudget(uint64_t feature, GuardedEvent event);
  // Reads the command's segment list and finds the memory behind it.
  [[nodiscard]] Result<void> ReadSegmentPages(Iova page, std::span<vgpu_segment> out, size_t per_page) const;
  [[nodiscard]] Result<Area> ReadSegments(const vgpu_ctrl_cmd& command) const;
  void SetState(uint32_t channel, uint32_t state);
  void Write(size_t offset, const void* data, size_t bytes);
  void OnCall(uint32_t channel);
  // Later when there have been too many: nothing is lost, an interrupt says "look", not how often.
  void Interrupt();

  EventLoop& loop_;
  ChannelTable& channels_;
  const DmaTable& dma_;
  IrqTable& irqs_;
  const VfFigures& figures_;
  EventGuard& guard_;
  const EventLoop::WatchPtr late_interrupt_;
  bool interrupt_waits_ = false;
  bool bus_master_ = false;
  uint64_t driver_features_ = 0;  // of the command that runs
  uint64_t address_ = 0;
  uint32_t commands_run_ = 0;
  bool arrays_written_ = false;  // the page has our channel_state, buffer_ack and events
  std::array<uint32_t, VGPU_MAX_CHANNELS> state_{};
  std::array<uint32_t, VGPU_MAX_CHANNELS> buffer_ack_{};
  std::array<uint32_t, VGPU_MAX_CHANNELS> events_{};
  struct Call {
    UniqueFd listens;
    EventLoop::WatchPtr watch;
  };
  std::array<Call, VGPU_MAX_CHANNELS> calls_;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
