// SPDX-License-Identifier: Apache-2.0
// The VF as a PCI function: its regions, interrupts, guest memory and resets. The vfio-user server drives it.
#pragma once

#include <span>

#include "vfio/device/bar0.h"
#include "vfio/device/config_space.h"
#include "vfio/device/control_page.h"
#include "vfio/device/irq_table.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

class PciFunction {
 public:
  PciFunction(EventLoop& loop, ChannelTable& channels, const VfFigures& figures, EventGuard& guard)
      : control_(loop, channels, dma, irqs, figures, guard),
        bar0_(figures, irqs, channels, control_),
        channels_(channels),
        figures_(figures),
        guard_(guard) {}

  // EINVAL when there is no region `index`. A region that this function does not have is 0 bytes long.
  [[nodiscard]] static Result<wire::RegionInfo> RegionInfo(uint32_t index);
  //   EINVAL  [offset, + size) is not inside the region
  [[nodiscard]] Result<void> Read(uint32_t region, uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> Write(uint32_t region, uint64_t offset, std::span<const std::byte> in);
  // FLR, DEVICE_RESET: the state after power-on. The client's memory and eventfds stay. Does not wait for executors.
  void Reset();
  // vgpud resets the VF under a guest that runs. What the guest has set up of the PCI function stays.
  void ResetByHost();
  // From now on it answers as a slot without a device: reads are all ones, writes have no effect.
  void Vanish() { vanished_ = true; }
  // The client is gone: everything of it goes.
  void Disconnect();

  DmaTable dma;
  IrqTable irqs;

 private:
  ConfigSpace config_;
  ControlPage control_;
  Bar0 bar0_;
  ChannelTable& channels_;
  const VfFigures& figures_;
  EventGuard& guard_;
  bool vanished_ = false;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
