// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libnvidia-ml/source.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "guest-driver-shim/libcuda/channel/channel_list.h"
#include "guest-driver-shim/libcuda/channel/vf_status.h"

namespace vgpud::nvml {
namespace {

constexpr unsigned kMostDevices = 16;
class Socket : public Source {
 public:
  explicit Socket(std::string path) : path_(std::move(path)) {}

  int Read(vgpu_status* status) const override { return cuda::ReadStatusOfSocket(path_, status); }

 private:
  const std::string path_;
};

class DeviceStatus : public Source {
 public:
  explicit DeviceStatus(std::string path) : path_(std::move(path)) {}

  int Read(vgpu_status* status) const override { return cuda::ReadStatusOfFile(path_, status); }

 private:
  const std::string path_;
};

// The link `device` of a class device ends with its PCI address.
std::optional<PciAddress> AddressOf(const std::string& folder) {
  char target[512];
  const ssize_t n = readlink((folder + "/device").c_str(), target, sizeof target - 1);
  if (n <= 0) return std::nullopt;
  target[n] = '\0';
  const char* last = strrchr(target, '/');
  unsigned domain, bus, device;
  if (sscanf(last != nullptr ? last + 1 : target, "%x:%x:%x", &domain, &bus, &device) != 3) return std::nullopt;
  return PciAddress{domain, bus, device};
}

}  // namespace

std::unique_ptr<Source> OpenSocket(const std::string& path) { return std::make_unique<Socket>(path); }

std::vector<std::unique_ptr<Source>> FindDevices(const std::string& folder, const std::string& files) {
  std::vector<std::unique_ptr<Source>> found;
  for (unsigned n = 0; n < kMostDevices; ++n) {
    const std::string one = folder + "/vgpu" + std::to_string(n);
    if (access(one.c_str(), F_OK) != 0) continue;
    auto source = std::make_unique<DeviceStatus>(files + "/vgpu" + std::to_string(n));
    source->pci = AddressOf(one);
    source->number = n;
    found.push_back(std::move(source));
  }
  return found;
}

std::vector<std::unique_ptr<Source>> FindSources() {
  const auto channels = cuda::ChannelsOfEnvironment();
  if (!channels) return FindDevices("/sys/class/vgpu", "/dev");
  std::vector<std::unique_ptr<Source>> found;
  for (const std::string& path : channels->sockets) found.push_back(OpenSocket(path));
  return found;
}

}  // namespace vgpud::nvml
