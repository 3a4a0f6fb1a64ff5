// The VF's interrupts as eventfds of the client (SET_IRQS). Only MSI is ever raised; the guest driver needs it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "vfio/wire.h"

namespace vgpud {

class IrqTable {
 public:
  // EINVAL when `index` is no interrupt of a PCI device.
  [[nodiscard]] static Result<wire::IrqInfo> Info(uint32_t index);
  // Carries out a checked SET_IRQS; `data` is what follows the struct.
  //   EINVAL  unknown index, flags, start/count out of range, wrong number of fds or bytes, or an fd that is no eventfd
  [[nodiscard]] Result<void> Set(const wire::SetIrqs& request, std::span<const std::byte> data,
                                 std::vector<UniqueFd> fds);
  // Raises `irq` when the client has given an eventfd for it; otherwise the guest does not listen.
  void Raise(wire::Irq irq) const;
  void Clear();

 private:
  // Every interrupt of this device has at most one vector.
  std::array<UniqueFd, wire::kIrqs> events_;
};

}  // namespace vgpud
