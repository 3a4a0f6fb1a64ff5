// SPDX-License-Identifier: Apache-2.0
// The VF's interrupts as eventfds of the client (SET_IRQS): MSI, or the interrupt line where the guest does not use
// MSI.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/foreign_fd.h"
#include "base/log.h"
#include "base/result.h"
#include "vfio/wire/wire.h"

namespace vgpud::vfio {

class IrqTable {
 public:
  // EINVAL when `index` is no interrupt of a PCI device.
  [[nodiscard]] static Result<wire::IrqInfo> Info(uint32_t index);
  // Carries out a checked SET_IRQS; `data` is what follows the struct.
  //   EINVAL  unknown index, flags, start/count out of range, wrong number of fds or bytes, or an fd that is no eventfd
  // Takes the descriptor that it keeps out of `fds`.
  [[nodiscard]] Result<void> Set(const wire::SetIrqs& request, std::span<const std::byte> data,
                                 std::span<ForeignFd> fds);
  // Raises `irq` when the client has given an eventfd for it; otherwise the guest does not listen. A client that makes
  // us wait there (see bounded_write.h) loses it, with a line in the log.
  void Raise(wire::Irq irq);
  // The one interrupt that the device has. The line stays up until the guest takes it.
  void Interrupt();
  // Is the line up? Not any more.
  bool TakeLine();
  void Clear();

 private:
  // Every interrupt of this device has at most one vector.
  std::array<ForeignFd, wire::kIrqs> events_;
  bool line_ = false;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
