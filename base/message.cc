// SPDX-License-Identifier: Apache-2.0
#include "base/message.h"

#include <sys/socket.h>

#include <cerrno>

namespace vgpud {
namespace {

#ifndef SO_PASSPIDFD
constexpr int SO_PASSPIDFD = 76;  // asm-generic/socket.h, Linux 6.5
#endif
#ifndef SCM_PIDFD
constexpr int SCM_PIDFD = 4;  // linux/socket.h, Linux 6.5
#endif

int FdAt(const cmsghdr* header, size_t index) {
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header) + index * sizeof fd, sizeof fd);
  return fd;
}

// The kernel puts an error where the pidfd would be. Most are ours, as a lack of descriptors.
void TakeSender(int pidfd, Message* message) {
  if (pidfd >= 0) message->sender.Reset(pidfd);
  message->sender_gone = pidfd == -ESRCH || pidfd == -EINVAL;
}

}  // namespace

bool AskForSenders(int socket) {
  const int on = 1;
  return ::setsockopt(socket, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof on) == 0;
}

Result<void> SendMessage(int socket, std::span<const std::byte> head, std::span<const int> fds,
                         std::span<const std::byte> tail) {
  if (fds.size() > kMaxMessageFds) return Fail(std::errc::argument_list_too_long, "too many fds in one message");
  iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                    {const_cast<std::byte*>(tail.data()), tail.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = tail.empty() ? 1 : 2;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno != EINTR) return FailErrno("send to peer process");
  }
}

Result<Message> ReceiveMessage(int socket) {
  Message result;
  result.bytes.resize(kMaxMessageBytes);
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxReceivedFds * sizeof(int)) + CMSG_SPACE(sizeof(int))];
  iovec part{result.bytes.data(), result.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return FailErrno("receive from peer process");
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET) continue;
    const size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (h->cmsg_type == SCM_PIDFD && count == 1) TakeSender(FdAt(h, 0), &result);
    if (h->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; i < count; ++i) result.fds.emplace_back(FdAt(h, i));
  }
  if (n == 0) return Fail(std::errc::not_connected, "peer process closed the connection");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || result.fds.size() > kMaxMessageFds)
    return Fail(std::errc::message_size, "message or its fds were cut off");
  result.bytes.resize(static_cast<size_t>(n));
  return result;
}

}  // namespace vgpud
