// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/passed_sockets.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "vgpud/service/environment.h"

namespace vgpud::daemon {
namespace {

constexpr int kFirst = 3;
constexpr uint64_t kMost = 16;

int OptionOf(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

Result<void> Take(int fd, PassedSockets* sockets) {
  const auto refuse = [fd](std::string_view why) {
    return Fail(std::errc::invalid_argument, fmt::format("socket activation: descriptor {} {}", fd, why));
  };
  if (OptionOf(fd, SO_ACCEPTCONN) != 1 || OptionOf(fd, SO_TYPE) != SOCK_STREAM)
    return refuse("is no listening stream socket (systemd: ListenStream=, Accept=no)");
  const int domain = OptionOf(fd, SO_DOMAIN);
  if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) return refuse("is of no family that is served");
  int& place = domain == AF_UNIX ? sockets->control : sockets->metrics;
  if (place >= 0) return refuse("is the second one of its kind: one Unix socket and one of TCP can be served");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return FailErrno(fmt::format("socket activation: descriptor {}", fd));
  place = fd;
  return {};
}

}  // namespace

Result<PassedSockets> TakePassedSockets() {
  const auto pid = NumberInEnvironment("LISTEN_PID");
  const auto count = NumberInEnvironment("LISTEN_FDS");
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  PassedSockets sockets;
  if (!pid || *pid != static_cast<uint64_t>(::getpid()) || !count) return sockets;
  if (*count > kMost)
    return Fail(std::errc::invalid_argument, fmt::format("socket activation: LISTEN_FDS={} makes no sense", *count));
  for (int fd = kFirst; fd < kFirst + static_cast<int>(*count); ++fd) TRY(Take(fd, &sockets));
  return sockets;
}

Result<void> CheckListensAt(int fd, const std::string& path) {
  sockaddr_un at{};
  socklen_t size = sizeof at;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) return FailErrno("socket activation");
  const size_t length = size > offsetof(sockaddr_un, sun_path) ? size - offsetof(sockaddr_un, sun_path) : 0;
  const std::string name(at.sun_path, ::strnlen(at.sun_path, length));
  if (name != path)
    return Fail(std::errc::invalid_argument,
                fmt::format("socket activation: the socket is at {}, and clients look for it at {} (ListenStream= and "
                            "--runtime-dir must agree)",
                            name.empty() ? "no path" : name, path));
  return {};
}

}  // namespace vgpud::daemon
