// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"
#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/channel/pci_address.h"
#include "guest-driver-shim/libcuda/channel/transport.h"

namespace vgpud::cuda {
namespace {

constexpr size_t kMaxFds = 4;
constexpr int kMostCallsAtOnce = 512;

class ChannelSocket : public Transport {
 public:
  ChannelSocket(OwnedFd socket, bool maps_buffers) : socket_(KnownFd(std::move(socket))), maps_buffers_(maps_buffers) {}
  ~ChannelSocket() override {
    if (!area_.empty()) munmap(area_.data(), area_.size());
  }

  bool Start(std::string* why) {
    vgpu_sock_request request{};
    request.op = VGPU_SOCK_OPEN;
    request.bytes = VGPU_ABI_VERSION;
    request.client_pid = static_cast<uint32_t>(getpid());
    vgpu_sock_reply reply{};
    std::vector<OwnedFd> fds;
    const int error = Ask(request, &reply, &fds);
    if (error != 0) {
      *why = std::string("the virtual function refused the channel: ") + strerror(error);
      return false;
    }
    if (fds.size() != 3) {
      *why = "the virtual function answered without its three descriptors";
      return false;
    }
    info_ = reply.info;
    if ((info_.pci_domain | info_.pci_bus | info_.pci_device) == 0) {
      const PciAddress address = PciAddressOf(info_.uuid);
      info_.pci_domain = address.domain;
      info_.pci_bus = address.bus;
      info_.pci_device = address.device;
    }
    void* at = MapShared(fds[0].get(), info_.channel_bytes, 0);
    if (at == nullptr) {
      *why = std::string("mapping the channel failed: ") + strerror(errno);
      return false;
    }
    area_ = {static_cast<std::byte*>(at), static_cast<size_t>(info_.channel_bytes)};
    kick_ = KnownFd(std::move(fds[1]));
    call_ = KnownFd(std::move(fds[2]));
    return true;
  }

  bool maps_buffers() const override { return maps_buffers_; }

  const char* why_lost() const override { return AreSame() ? kEnded : kClosed; }
  void CloseInChild() override {
    for (const KnownFd* each : {&socket_, &kick_, &call_}) each->CloseInChild();
  }

  void Kick() override {
    if (!kick_.IsSame()) return;  // a byte for somebody else; Sleep tells
    const char any = 1;
    (void)!send(kick_.get(), &any, sizeof any, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  Wake Sleep(int timeout_ms) override {
    pollfd p[2] = {{call_.get(), POLLIN, 0}, {socket_.get(), POLLRDHUP, 0}};
    const int n = poll(p, 2, timeout_ms);
    if (!AreSame()) return Wake::kLost;
    if (n <= 0) return Wake::kTimeout;
    if ((p[0].revents & POLLIN) != 0 && TakeCalls()) return Wake::kEvent;
    return (p[0].revents & POLLHUP) != 0 || (p[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 ? Wake::kLost
                                                                                                  : Wake::kEvent;
  }

  int AllocBuffer(uint64_t bytes, Buffer* out) override {
    if (!maps_buffers_) return ENOTSUP;
    vgpu_sock_request request{};
    request.op = VGPU_SOCK_BUFFER_ALLOC;
    request.bytes = bytes;
    vgpu_sock_reply reply{};
    std::vector<OwnedFd> fds;
    if (const int error = Ask(request, &reply, &fds)) return error;
    if (fds.size() != 1) return EPROTO;
    void* at = MapShared(fds[0].get(), bytes, 0);
    const int error = errno;
    *out = {reply.buffer, at, bytes, 0};
    if (at != nullptr) return 0;
    FreeBuffer(*out);
    return error;
  }

  int ImportBuffer(int fd, uint64_t offset, uint64_t bytes, Buffer* out) override {
    if ((info_.features & VGPU_FEATURE_CLIENT_MEMORY) == 0) return ENOTSUP;
    vgpu_sock_request request{};
    request.op = VGPU_SOCK_BUFFER_IMPORT;
    request.bytes = bytes;
    request.offset = offset;
    vgpu_sock_reply reply{};
    std::vector<OwnedFd> fds;
    if (const int error = Ask(request, &reply, &fds, fd)) return error;
    *out = {reply.buffer, nullptr, bytes, 0};
    return 0;
  }

  bool MapAgain(const Buffer& buffer, void* at) override {
    return mremap(buffer.address, 0, buffer.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
  }

  int FreeBuffer(const Buffer& buffer) override {
    if (buffer.address != nullptr) munmap(buffer.address, buffer.bytes);
    vgpu_sock_request request{};
    request.op = VGPU_SOCK_BUFFER_FREE;
    request.buffer = buffer.id;
    vgpu_sock_reply reply{};
    std::vector<OwnedFd> fds;
    return Ask(request, &reply, &fds);
  }

 private:
  bool AreSame() const { return socket_.IsSame() && kick_.IsSame() && call_.IsSame(); }

  // False: there were none, and there may never be one again.
  bool TakeCalls() {
    char any[8];
    ssize_t n = recv(call_.get(), any, sizeof any, MSG_DONTWAIT);
    const bool some = n > 0 || (n < 0 && errno == EAGAIN);
    for (int more = 0; n > 0 && more < kMostCallsAtOnce; ++more) n = recv(call_.get(), any, sizeof any, MSG_DONTWAIT);
    return some;
  }

  // 0 or an errno. `fd` goes with it, unless it is negative.
  int Send(const vgpu_sock_request& request, int fd) {
    if (fd < 0) return send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) < 0 ? errno : 0;
    iovec data{const_cast<vgpu_sock_request*>(&request), sizeof request};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0 ? errno : 0;
  }

  // One request, one reply. 0 or an errno; takes over the descriptors whatever else happens.
  int Ask(const vgpu_sock_request& request, vgpu_sock_reply* reply, std::vector<OwnedFd>* fds, int fd = -1) {
    MutexLock lock(ask_mutex_);
    if (!socket_.IsSame()) return EPIPE;
    fds->reserve(kMaxFds);
    lock_check::BeforeWait();
    int error;
    do {
      error = Send(request, fd);
    } while (error == EINTR);
    if (error != 0) return error;

    ssize_t n;
    iovec data{reply, sizeof *reply};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    do {
      n = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int received;
        memcpy(&received, CMSG_DATA(c) + at, sizeof received);
        fds->emplace_back(received);
      }
    }
    if (n == 0) return ECONNRESET;
    if (n != sizeof *reply || reply->op != request.op) return EPROTO;
    return -reply->status;
  }

  KnownFd socket_, kick_, call_;
  const bool maps_buffers_;
  Mutex ask_mutex_{lock_rank::kAsk};
};

}  // namespace

namespace {

constexpr char kOpenAlready[] = "fd:";

// -1 and a sentence in `why`.
int Connect(const std::string& path, std::string* why) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    *why = path + ": the path is longer than a socket address can be";
    return -1;
  }
  memcpy(address.sun_path, path.c_str(), path.size());
  OwnedFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_fd || connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    *why = path + ": " + strerror(errno);
    return -1;
  }
  return socket_fd.release();
}

// The descriptor that "fd:N" names, if it is a socket.
int TakeOver(const std::string& name, std::string* why) {
  char* end = nullptr;
  const long fd = strtol(name.c_str() + sizeof kOpenAlready - 1, &end, 10);
  int type = 0;
  socklen_t bytes = sizeof type;
  if (*end == '\0' && fd >= 0 && fd <= INT_MAX &&
      getsockopt(static_cast<int>(fd), SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET) {
    return static_cast<int>(fd);
  }
  *why = name + ": there is no open connection with that number";
  return -1;
}

}  // namespace

std::unique_ptr<Transport> OpenChannelSocket(const std::string& path, std::string* why) {
  const bool open_already = path.rfind(kOpenAlready, 0) == 0;
  OwnedFd socket_fd(open_already ? TakeOver(path, why) : Connect(path, why));
  if (!socket_fd) return nullptr;
  auto channel = std::make_unique<ChannelSocket>(std::move(socket_fd), !open_already);
  if (!channel->Start(why)) {
    *why = path + ": " + *why;
    return nullptr;
  }
  return channel;
}

}  // namespace vgpud::cuda
