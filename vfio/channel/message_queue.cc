// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/message_queue.h"

#include <cerrno>
#include <utility>

#include "base/message.h"

namespace vgpud::vfio {

MessageQueue::MessageQueue(EventLoop& loop, int socket)
    : socket_(socket), writable_(loop.OnWritable(socket, [this] { OnWritable(); })) {
  writable_->Pause();
}

bool MessageQueue::Send(std::span<const std::byte> bytes, std::vector<SharedFd> fds) {
  if (gone_) return false;
  ++accepted_;
  if (queue_.empty()) {
    const Sent sent = TrySend(bytes, fds);
    if (sent != Sent::kFull) return sent == Sent::kYes;
    writable_->Resume();
  }
  queue_.push_back({{bytes.begin(), bytes.end()}, std::move(fds)});
  return true;
}

MessageQueue::Sent MessageQueue::TrySend(std::span<const std::byte> bytes, const std::vector<SharedFd>& fds) {
  int numbers[kMaxMessageFds];
  size_t count = 0;
  for (const SharedFd& fd : fds) numbers[count++] = fd->get();
  const auto sent = SendMessage(socket_, bytes, std::span<const int>{numbers, count});
  if (sent) return Sent::kYes;
  // ETOOMANYREFS: too many descriptors are on their way already.
  if (const int code = static_cast<int>(sent.error().code); code == EAGAIN || code == ENOBUFS || code == ETOOMANYREFS)
    return Sent::kFull;
  gone_ = true;
  queue_.clear();
  return Sent::kGone;
}

void MessageQueue::OnWritable() {
  while (!queue_.empty()) {
    const Sent sent = TrySend(queue_.front().bytes, queue_.front().fds);
    if (sent == Sent::kFull) return;
    if (sent == Sent::kYes) queue_.pop_front();
  }
  writable_->Pause();
}

}  // namespace vgpud::vfio
