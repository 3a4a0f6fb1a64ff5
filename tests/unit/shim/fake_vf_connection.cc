// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shim/fake_vf_connection.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"

namespace vgpud {
namespace {

constexpr size_t kMaxFds = 3;

bool SendReply(int socket, const vgpu_sock_reply& reply, std::span<const int> fds) {
  iovec data{const_cast<vgpu_sock_reply*>(&reply), sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof reply);
}

int MakeMemory(uint64_t bytes, std::span<std::byte>* out) {
  const int fd = memfd_create("fake_vf", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return -1;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  *out = {static_cast<std::byte*>(at), bytes};
  return fd;
}

}  // namespace

void ServeConnection(int socket, const std::function<void(FakeExecutor&)>& opened) {
  std::unique_ptr<FakeExecutor> executor;
  uint32_t next_buffer = 1;
  vgpu_sock_request request;
  while (recv(socket, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request)) {
    vgpu_sock_reply reply{};
    reply.op = request.op;
    std::span<std::byte> memory;
    if (request.op == VGPU_SOCK_OPEN && executor == nullptr) {
      int kick[2], call[2];
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, kick) != 0 ||
          socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, call) != 0)
        return;
      const int fds[] = {MakeMemory(VGPU_CHANNEL_BYTES, &memory), kick[0], call[0]};
      executor = std::make_unique<FakeExecutor>(memory, kick[1], call[1]);
      if (opened) opened(*executor);
      reply.info = FakeInfo(VGPU_CHANNEL_BYTES);
      SendReply(socket, reply, fds);
      for (const int fd : fds) close(fd);
    } else if (request.op == VGPU_SOCK_BUFFER_ALLOC && executor != nullptr) {
      const int fds[] = {MakeMemory(request.bytes, &memory)};
      reply.buffer = next_buffer++;
      executor->AddBuffer(reply.buffer, memory);
      SendReply(socket, reply, fds);
      close(fds[0]);
    } else if (request.op == VGPU_SOCK_BUFFER_FREE && executor != nullptr) {
      executor->RemoveBuffer(request.buffer);
      SendReply(socket, reply, {});
    } else {
      reply.status = -EINVAL;
      SendReply(socket, reply, {});
    }
  }
}

}  // namespace vgpud
