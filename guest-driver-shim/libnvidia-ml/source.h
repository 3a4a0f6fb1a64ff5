// SPDX-License-Identifier: Apache-2.0
// Where the figures of a virtual function come from: no way that opens a channel, which would cost an executor.
//   in a guest      VGPU_IOC_STATUS of /dev/vgpuN (the kernel module asks vgpud-vf)
//   without a VM    the channel sockets in VGPU_CHANNEL (libcuda/channel/channel_list.h), which answer STATUS before
//   OPEN
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "guest-driver-shim/libcuda/channel/pci_address.h"

namespace vgpud::nvml {

using cuda::PciAddress;

class Source {
 public:
  virtual ~Source() = default;
  // The figures of now: 0 or an errno. ENOSYS: the host or the guest's driver is too old to tell. Any thread.
  virtual int Read(vgpu_status* status) const = 0;

  std::optional<PciAddress> pci;   // as the guest sees it; without a VM it is on no bus
  std::optional<unsigned> number;  // N of /dev/vgpuN
};

std::unique_ptr<Source> OpenSocket(const std::string& path);
// Of those that there are in `folder`, by their numbers; their device files are in `files`.
std::vector<std::unique_ptr<Source>> FindDevices(const std::string& folder, const std::string& files);

// All that this process may use. VGPU_CHANNEL comes first, as for libcuda.so.1.
std::vector<std::unique_ptr<Source>> FindSources();

}  // namespace vgpud::nvml
