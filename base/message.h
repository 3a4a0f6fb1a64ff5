// SPDX-License-Identifier: Apache-2.0
// Messages between our own processes: one SOCK_SEQPACKET datagram each, plain structs, with file descriptors.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/foreign_fd.h"
#include "base/result.h"

namespace vgpud {

inline constexpr size_t kMaxMessageFds = 16;
// What the kernel delivers at most (SCM_MAX_FD). Who takes fewer has the rest closed by the kernel while it receives,
// and that may take long.
inline constexpr size_t kMaxReceivedFds = 253;
inline constexpr size_t kMaxMessageBytes = 64 * 1024;

struct Message {
  std::vector<std::byte> bytes;
  std::vector<ForeignFd> fds;
  // The process that sent it, where the socket was asked to say (AskForSenders): its pidfd, or that it had ended.
  UniqueFd sender = {};
  bool sender_gone = false;

  // A copy of the T that the message starts with; an error when it is shorter.
  template <class T>
  [[nodiscard]] Result<T> As() const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes.size() < sizeof(T)) return Fail(std::errc::bad_message, "message too short");
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

// Sends one message, `tail` right behind `head`. Does not block: a full socket is EAGAIN.
[[nodiscard]] Result<void> SendMessage(int socket, std::span<const std::byte> head, std::span<const int> fds = {},
                                       std::span<const std::byte> tail = {});
template <class T>
[[nodiscard]] Result<void> SendStruct(int socket, const T& value, std::span<const int> fds = {},
                                      std::span<const std::byte> tail = {}) {
  static_assert(std::is_trivially_copyable_v<T>);
  return SendMessage(socket, std::as_bytes(std::span{&value, 1}), fds, tail);
}
// From now on each message that `socket` (AF_UNIX) receives says who sent it; a listening socket hands that down to its
// connections. False when the kernel can't (before Linux 6.5): then no message does.
bool AskForSenders(int socket);
// Receives one message; fds arrive owned. EAGAIN when there is none, ENOTCONN when the peer is gone, EMSGSIZE when
// data or fds were cut off, or more than kMaxMessageFds came.
[[nodiscard]] Result<Message> ReceiveMessage(int socket);

}  // namespace vgpud
