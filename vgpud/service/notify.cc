// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/notify.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "base/log.h"
#include "vgpud/service/environment.h"

namespace vgpud::daemon {
namespace {

const char* ManagerPath() {
  const char* path = std::getenv("NOTIFY_SOCKET");
  return path != nullptr && (path[0] == '/' || path[0] == '@') && std::strlen(path) < sizeof(sockaddr_un::sun_path)
             ? path
             : nullptr;
}

void Notify(std::string_view text) {
  const char* path = ManagerPath();
  if (path == nullptr) return;
  sockaddr_un address{};
  const size_t length = std::strlen(path);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  // A manager that is not reading must not stop the main loop: it hears of the next one.
  if (!fd || ::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                      reinterpret_cast<const sockaddr*>(&address), size) < 0)
    LOG(kWarning, "NOTIFY_SOCKET {} takes no message", path);
}

}  // namespace

void NotifyReady(int ready_fd) {
  if (ready_fd >= 0) {
    const UniqueFd fd{ready_fd};
    if (::write(fd.get(), "1", 1) != 1) LOG(kWarning, "--ready-fd {} takes no byte", ready_fd);
  }
  Notify("READY=1");
}

void NotifyReloading() { Notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", MonotonicNs() / 1000)); }
void NotifyStopping() { Notify("STOPPING=1"); }
void NotifyStatus(const std::string& line) { Notify("STATUS=" + line.substr(0, line.find('\n'))); }
void NotifyAlive() { Notify("WATCHDOG=1"); }

bool HasServiceManager() { return ManagerPath() != nullptr; }

std::optional<Ns> WatchdogInterval() {
  const auto us = NumberInEnvironment("WATCHDOG_USEC");
  const auto pid = NumberInEnvironment("WATCHDOG_PID");
  constexpr uint64_t kLongestUs = uint64_t{24} * 3600 * 1'000'000;
  if (!HasServiceManager() || !us || *us == 0 || *us > kLongestUs) return std::nullopt;
  if (pid && *pid != static_cast<uint64_t>(::getpid())) return std::nullopt;
  return std::chrono::microseconds{*us};
}

}  // namespace vgpud::daemon
