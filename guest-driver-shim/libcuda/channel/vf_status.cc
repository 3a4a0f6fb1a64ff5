// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/vf_status.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "guest-driver-shim/libcuda/channel/os.h"

namespace vgpud::cuda {
namespace {

// The fields before the list of channels: no host says less.
constexpr size_t kLeastBytes = offsetof(vgpu_status, channel);

// Text of the host's: NUL terminated from here on.
int Accept(vgpu_status* status, size_t bytes) {
  if (bytes < kLeastBytes || status->bytes < kLeastBytes) return EPROTO;
  status->name[sizeof status->name - 1] = status->gpu_name[sizeof status->gpu_name - 1] = '\0';
  return 0;
}

int Receive(int fd, vgpu_status* status) {
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

}  // namespace

int ReadStatusOfSocket(const std::string& path, vgpu_status* status, std::chrono::milliseconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  memcpy(address.sun_path, path.c_str(), path.size());
  OwnedFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_fd) return errno;
  const timeval most{.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
  setsockopt(socket_fd.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(socket_fd.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return errno;
  vgpu_sock_request request{};
  request.op = VGPU_SOCK_STATUS;
  request.client_pid = static_cast<__u32>(getpid());
  if (send(socket_fd.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return errno;
  return Receive(socket_fd.get(), status);
}

int ReadStatusOfFile(const std::string& path, vgpu_status* status) {
  OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno;
  *status = {};
  if (ioctl(file.get(), VGPU_IOC_STATUS, status) != 0) return errno == ENOTTY || errno == EOPNOTSUPP ? ENOSYS : errno;
  return Accept(status, sizeof *status);
}

}  // namespace vgpud::cuda
