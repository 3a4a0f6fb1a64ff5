// SPDX-License-Identifier: Apache-2.0
// Where the figures of a virtual function come from: no way that opens a channel, which would cost an executor.
//   in a guest      /sys/class/vgpu/vgpuN/status (the kernel module asks vgpud-vf)
//   without a VM    the channel socket in VGPU_CHANNEL, which answers STATUS before OPEN
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"

namespace vgpud::nvml {

// As the guest sees it. Without a VM there is no PCI function: all zero, as cuDeviceGetPCIBusId says.
struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  // The figures of now: 0 or an errno. ENOSYS: the host or the guest's driver is too old to tell. Any thread.
  virtual int Read(vgpu_status* status) const = 0;

  PciAddress pci;
  std::optional<unsigned> number;  // N of /dev/vgpuN
};

std::unique_ptr<Source> OpenSocket(const std::string& path);
// Of those that there are in `folder`, by their numbers.
std::vector<std::unique_ptr<Source>> FindDevices(const std::string& folder);

// All that this process may use. VGPU_CHANNEL comes first, as for libcuda.so.1.
std::vector<std::unique_ptr<Source>> FindSources();

}  // namespace vgpud::nvml
