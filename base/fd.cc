// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace vgpud {

void UniqueFd::Reset(int fd) {
  // close() is never retried: on Linux the fd is gone even when EINTR is returned.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<UniqueFd> Dup(int fd) {
  UniqueFd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 0)};
  if (!copy) return FailErrno(fmt::format("dup of fd {}", fd));
  return copy;
}

Result<UniqueFd> MakeSealedMemfd(const std::string& name, uint64_t bytes) {
  UniqueFd fd{::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!fd) return FailErrno(fmt::format("memfd_create({})", name));
  // Not with ftruncate: a jailed process may not have that, because it could shorten files of others with it.
  if (bytes == 0 || ::pwrite(fd.get(), "", 1, static_cast<off_t>(bytes - 1)) != 1)
    return FailErrno(fmt::format("memfd {}: size {}", name, bytes));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return FailErrno(fmt::format("memfd {}: seal", name));
  return fd;
}

Result<void> CheckSealedMemfd(int fd, uint64_t bytes, std::string_view what) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno(fmt::format("{}: fstat", what));
  // -1: a file of a kind that cannot be sealed. Its owner could cut it off under us.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (!S_ISREG(st.st_mode) || seals < 0) return Fail(std::errc::bad_message, fmt::format("{} is not a memfd", what));
  constexpr int kWanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if ((seals & kWanted) != kWanted)
    return Fail(
        std::errc::bad_message,
        fmt::format("{} is not sealed against changes of its size (seals {:#x} of {:#x})", what, seals, kWanted));
  if (st.st_size < 0 || static_cast<uint64_t>(st.st_size) != bytes)
    return Fail(std::errc::bad_message, fmt::format("{} has {} bytes instead of {}", what, st.st_size, bytes));
  return {};
}

Result<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return FailErrno("pipe");
  return Pipe{UniqueFd{fds[0]}, UniqueFd{fds[1]}};
}

Result<UniqueFd> MakeEventFd() {
  UniqueFd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!fd) return FailErrno("eventfd");
  return fd;
}

void SignalEventFd(int fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
}

bool DrainEventFd(int fd) {
  uint64_t count = 0;
  return ::read(fd, &count, sizeof count) == sizeof count && count != 0;
}

Result<SocketPair> MakeSeqpacketPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) return FailErrno("socketpair");
  return SocketPair{UniqueFd{fds[0]}, UniqueFd{fds[1]}};
}

namespace {

Result<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Fail(
        std::errc::filename_too_long,
        fmt::format("socket path \"{}\" has {} bytes, a Unix socket takes 1 to {} (use a shorter --runtime-dir)", path,
                    path.size(), sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<UniqueFd> ListenUnix(const std::string& path, int type) {
  const sockaddr_un address = TRY(UnixAddress(path));
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0) {
    if (!S_ISSOCK(st.st_mode))
      return Fail(std::errc::file_exists, fmt::format("{} exists and is not a socket; remove it first", path));
    ::unlink(path.c_str());
  }
  UniqueFd fd{::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd) return FailErrno("socket");
  const mode_t old = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(old);
  if (bound != 0) return FailErrno(fmt::format("bind {}", path));
  if (::listen(fd.get(), 64) != 0) return FailErrno(fmt::format("listen {}", path));
  return fd;
}

bool HasHungUp(int socket) {
  pollfd peer{socket, POLLRDHUP, 0};
  return ::poll(&peer, 1, 0) == 1;
}

bool HasLeft(int socket) {
  pollfd peer{socket, 0, 0};
  return ::poll(&peer, 1, 0) == 1;
}

Result<UniqueFd> ConnectUnix(const std::string& path, int type) {
  const sockaddr_un address = TRY(UnixAddress(path));
  UniqueFd fd{::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)};
  if (!fd) return FailErrno("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return FailErrno(fmt::format("connect {}", path));
  return fd;
}

}  // namespace vgpud
