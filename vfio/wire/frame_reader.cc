// SPDX-License-Identifier: Apache-2.0
#include "vfio/wire/frame_reader.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/message.h"

namespace vgpud::vfio {
namespace {

// Asked without asking a file system's server, who could let us wait.
bool IsSocket(int fd) {
  struct statx st {};
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && S_ISSOCK(st.stx_mode);
}

}  // namespace

FrameReader::FrameReader() : buffer_(std::make_unique<std::byte[]>(kCapacity)) {
  static_assert(kCapacity > 2 * wire::kMaxBytes);
}

FrameReader::Got FrameReader::Fill(int socket) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (kCapacity - end_ < kCapacity / 2) {
    std::memmove(&buffer_[0], &buffer_[begin_], end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxReceivedFds * sizeof(int))];
  iovec part{&buffer_[end_], kCapacity - end_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? Got::kNothing : Got::kEnd;
  Batch batch{0, {}, (message.msg_flags & MSG_CTRUNC) != 0};
  if (message.msg_controllen != 0) [[unlikely]] {
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
        ForeignFd sent{fd};
        if (IsSocket(fd))
          batch.cut = true;
        else
          batch.fds.push_back(std::move(sent));
      }
    }
  }
  if (n == 0) return Got::kEnd;
  end_ += static_cast<size_t>(n);
  if (!batch.fds.empty() || batch.cut) {
    // What waits here belongs to at most one unfinished message and the one behind it.
    size_t waiting = 0;
    for (const Batch& earlier : batches_) waiting += earlier.fds.size();
    if (waiting + batch.fds.size() > 2 * wire::kMaxFds) {
      batch.fds.clear();
      batch.cut = true;
    }
    if (batches_.size() >= 2 * wire::kMaxFds) {
      batches_.erase(batches_.begin() + 1);
      batch.cut = true;
    }
    batch.at = stream_at_begin_ + (end_ - begin_) - 1;
    batches_.push_back(std::move(batch));
  }
  return Got::kData;
}

FrameReader::Cut FrameReader::Next(Frame* frame) {
  const size_t have = end_ - begin_;
  if (have < sizeof(wire::Header)) return Cut::kPartial;
  std::memcpy(&frame->header, &buffer_[begin_], sizeof frame->header);
  const uint32_t bytes = frame->header.bytes;
  if (bytes < sizeof(wire::Header) || bytes > wire::kMaxBytes) return Cut::kBroken;
  if (have < bytes) return Cut::kPartial;
  frame->body = {&buffer_[begin_ + sizeof(wire::Header)], bytes - sizeof(wire::Header)};
  frame->fds_cut = false;
  if (!frame->fds.empty()) frame->fds.clear();
  if (!batches_.empty()) TakeFds(stream_at_begin_, stream_at_begin_ + bytes, frame);
  begin_ += bytes;
  stream_at_begin_ += bytes;
  return Cut::kFrame;
}

void FrameReader::TakeFds(uint64_t from, uint64_t to, Frame* frame) {
  for (Batch& batch : batches_) {
    if (batch.at < from || batch.at >= to) continue;
    frame->fds_cut |= batch.cut;
    for (ForeignFd& fd : batch.fds) {
      if (frame->fds.size() < wire::kMaxFds)
        frame->fds.push_back(std::move(fd));
      else
        frame->fds_cut = true;
    }
  }
  std::erase_if(batches_, [to](const Batch& batch) { return batch.at < to; });
}

}  // namespace vgpud::vfio
