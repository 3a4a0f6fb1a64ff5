// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/readiness.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "base/log.h"

namespace vgpud::daemon {
namespace {

void NotifyServiceManager(std::string_view text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  const size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (!fd ||
      ::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size) < 0)
    LOG(kWarning, "NOTIFY_SOCKET {} takes no message", path);
}

}  // namespace

void NotifyReady(int ready_fd) {
  if (ready_fd >= 0) {
    const UniqueFd fd{ready_fd};
    if (::write(fd.get(), "1", 1) != 1) LOG(kWarning, "--ready-fd {} takes no byte", ready_fd);
  }
  NotifyServiceManager("READY=1");
}

void NotifyStopping() { NotifyServiceManager("STOPPING=1"); }

}  // namespace vgpud::daemon
