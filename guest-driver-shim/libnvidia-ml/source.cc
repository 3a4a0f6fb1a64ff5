// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libnvidia-ml/source.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "guest-driver-shim/libcuda/channel/channel_list.h"
#include "guest-driver-shim/libcuda/channel/os.h"

namespace vgpud::nvml {
namespace {

using cuda::OwnedFd;

constexpr unsigned kMostDevices = 16;
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};
// The fields before the list of channels: no host says less.
constexpr size_t kLeastBytes = offsetof(vgpu_status, channel);

// Text of the host's: NUL terminated from here on.
int Accept(vgpu_status* status, size_t bytes) {
  if (bytes < kLeastBytes || status->bytes < kLeastBytes) return EPROTO;
  status->name[sizeof status->name - 1] = status->gpu_name[sizeof status->gpu_name - 1] = '\0';
  return 0;
}

class Socket : public Source {
 public:
  explicit Socket(std::string path) : path_(std::move(path)) {}

  // A connection for each question: nothing is held between them, and a fork or a new vgpud changes nothing.
  int Read(vgpu_status* status) const override {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return ENAMETOOLONG;
    memcpy(address.sun_path, path_.c_str(), path_.size());
    OwnedFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket_fd) return errno;
    setsockopt(socket_fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(socket_fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return errno;
    vgpu_sock_request request{};
    request.op = VGPU_SOCK_STATUS;
    request.client_pid = static_cast<__u32>(getpid());
    if (send(socket_fd.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return errno;
    return Receive(socket_fd.get(), status);
  }

 private:
  static int Receive(int fd, vgpu_status* status) {
    vgpu_sock_status reply{};
    ssize_t n;
    do {
      n = recv(fd, &reply, sizeof reply, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    if (n == 0) return ECONNRESET;
    if (static_cast<size_t>(n) < offsetof(vgpu_sock_status, mbz) || reply.op != VGPU_SOCK_STATUS) return EPROTO;
    if (reply.status != 0) return reply.status < 0 ? -reply.status : EPROTO;
    if (static_cast<size_t>(n) < offsetof(vgpu_sock_status, vf)) return EPROTO;
    *status = reply.vf;
    return Accept(status, static_cast<size_t>(n) - offsetof(vgpu_sock_status, vf));
  }

  const std::string path_;
};

class DeviceStatus : public Source {
 public:
  explicit DeviceStatus(std::string path) : path_(std::move(path)) {}

  int Read(vgpu_status* status) const override {
    OwnedFd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return errno;
    *status = {};
    if (ioctl(file.get(), VGPU_IOC_STATUS, status) != 0) return errno == ENOTTY || errno == EOPNOTSUPP ? ENOSYS : errno;
    return Accept(status, sizeof *status);
  }

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
