// SPDX-License-Identifier: Apache-2.0
// Messages on their way to one of our own processes. Sends at once while the socket takes them and keeps the rest, in
// order, until it does: nothing is lost and nobody waits.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "base/event_loop.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

class MessageQueue {
 public:
  // `socket` (SOCK_SEQPACKET) stays the caller's and must outlive the queue.
  MessageQueue(EventLoop& loop, int socket);

  // False when the peer is gone; what is queued is then dropped. Its EOF is seen by whoever reads the socket.
  bool Send(std::span<const std::byte> bytes, std::vector<SharedFd> fds = {});
  template <class T>
  bool SendStruct(const T& value, std::vector<SharedFd> fds = {}) {
    return Send(std::as_bytes(std::span{&value, 1}), std::move(fds));
  }
  size_t waiting() const { return queue_.size(); }
  // Messages that were to be sent so far, and those of them that the socket has taken: the first so many.
  uint64_t accepted() const { return accepted_; }
  uint64_t sent() const { return accepted_ - queue_.size(); }

 private:
  struct Item {
    std::vector<std::byte> bytes;
    std::vector<SharedFd> fds;
  };
  enum class Sent { kYes, kFull, kGone };
  Sent TrySend(std::span<const std::byte> bytes, const std::vector<SharedFd>& fds);
  void OnWritable();

  int socket_;
  bool gone_ = false;
  uint64_t accepted_ = 0;
  std::deque<Item> queue_;
  EventLoop::WatchPtr writable_;  // paused while the queue is empty
};

}  // namespace vgpud::vfio
