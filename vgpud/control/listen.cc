// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/listen.h"

#include <event2/util.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

uint16_t PortOf(const sockaddr_storage& at) {
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

}  // namespace

Result<UniqueFd> ListenForClients(const std::string& path) {
  UniqueFd listener = TRY(ListenUnix(path, SOCK_STREAM));
  if (::listen(listener.get(), kBacklog) != 0) return FailErrno(fmt::format("listen {}", path));
  if (::chmod(path.c_str(), 0660) != 0) LOG(kWarning, "{}: cannot set its mode to 0660", path);
  return listener;
}

Result<UniqueFd> ListenTcp(const std::string& address) {
  sockaddr_storage at{};
  int bytes = sizeof at;
  if (evutil_parse_sockaddr_port(address.c_str(), reinterpret_cast<sockaddr*>(&at), &bytes) != 0 ||
      address.find(':') == std::string::npos || PortOf(at) == 0)
    return Fail(std::errc::invalid_argument,
                fmt::format("--metrics-listen \"{}\" is not an address and a port (write it like 127.0.0.1:9477 or "
                            "[::1]:9477)",
                            address));
  UniqueFd listener{::socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int yes = 1;
  socklen_t length = sizeof at;
  if (!listener || ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), static_cast<socklen_t>(bytes)) != 0 ||
      ::listen(listener.get(), kBacklog) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
    return FailErrno(fmt::format("--metrics-listen {}: cannot listen there", address));
  std::array<char, NI_MAXSERV> port{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&at), length, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV);
  LOG(kInfo, "metrics for Prometheus at {} port {}", address, port.data());
  return listener;
}

}  // namespace vgpud::daemon
