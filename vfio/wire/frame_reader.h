// SPDX-License-Identifier: Apache-2.0
// Cuts the byte stream of a vfio-user client into messages, in whatever pieces they arrive, and gives each the file
// descriptors that came with it. One recvmsg takes as many messages as there are; nothing is allocated unless
// descriptors come.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/foreign_fd.h"
#include "vfio/wire/wire.h"

namespace vgpud::vfio {

struct Frame {
  wire::Header header;
  std::span<const std::byte> body;  // valid until the next Fill()
  std::vector<ForeignFd> fds;
  bool fds_cut = false;  // more than wire::kMaxFds came, or a socket, or our fd table is full: some are lost
};

class FrameReader {
 public:
  FrameReader();

  enum class Got { kData, kNothing, kEnd };
  // Receives once, without waiting. kEnd: the peer is gone or the socket is broken. Sockets are not kept: if one were
  // the peer's own end of this connection, we would never hear that the peer is gone.
  [[nodiscard]] Got Fill(int socket);

  enum class Cut { kFrame, kPartial, kBroken };
  // Takes the next complete message out. kBroken: a size below the header's or above wire::kMaxBytes; where the
  // next message starts is then unknown, so the connection cannot go on. `frame->header` is valid even then.
  //
  // Descriptors belong to the message that holds the last byte of the read that brought them: the kernel ends a read
  // behind the piece of data that carries descriptors, and a client sends them with (a part of) their own message.
  [[nodiscard]] Cut Next(Frame* frame);

 private:
  struct Batch {
    uint64_t at;  // stream position of the read's last byte
    std::vector<ForeignFd> fds;
    bool cut;
  };
  void TakeFds(uint64_t from, uint64_t to, Frame* frame);

  static constexpr size_t kCapacity = 4 * 64 * 1024;
  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t stream_at_begin_ = 0;
  std::vector<Batch> batches_;
};

}  // namespace vgpud::vfio
