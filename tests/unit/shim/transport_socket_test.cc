// SPDX-License-Identifier: Apache-2.0
// The channel socket's client, against a VF that answers well and badly.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/channel/transport.h"
#include "tests/scratch_dir.h"
#include "tests/unit/shim/fake_executor.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kBytes = VGPU_CHANNEL_MIN_BYTES;

struct Reply {
  vgpu_sock_reply head{};
  std::vector<int> fds;
  size_t bytes = sizeof head;
};

// Answers each request with what `answer` makes of it, until the client goes.
class Server {
 public:
  explicit Server(std::function<Reply(const vgpu_sock_request&)> answer) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    listener_ = OwnedFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(0, bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    EXPECT_EQ(0, listen(listener_.get(), 1));
    thread_ = std::thread([this, answer] {
      connection_ = OwnedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      vgpu_sock_request request;
      while (Receive(&request)) {
        {
          std::lock_guard lock(mutex_);
          last_ = request;
        }
        Send(answer(request));
      }
    });
  }
  ~Server() {
    shutdown(listener_.get(), SHUT_RDWR);
    if (connection_) shutdown(connection_.get(), SHUT_RDWR);
    thread_.join();
  }
  void HangUp() { shutdown(connection_.get(), SHUT_RDWR); }
  vgpu_sock_request last() {
    std::lock_guard lock(mutex_);
    return last_;
  }
  const std::string& path() const { return path_; }
  // How many descriptors came with it.
  size_t last_files() {
    std::lock_guard lock(mutex_);
    return last_files_;
  }

 private:
  bool Receive(vgpu_sock_request* request) {
    iovec data{request, sizeof *request};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const bool whole = recvmsg(connection_.get(), &message, MSG_CMSG_CLOEXEC) == ssize_t{sizeof *request};
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    std::lock_guard lock(mutex_);
    last_files_ = head == nullptr ? 0 : (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < last_files_; ++i) {
      int file;
      memcpy(&file, CMSG_DATA(head) + i * sizeof file, sizeof file);
      close(file);
    }
    return whole;
  }
  void Send(Reply reply) {
    iovec data{&reply.head, reply.bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    const size_t bytes = reply.fds.size() * sizeof(int);
    if (bytes > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(bytes);
      memcpy(CMSG_DATA(c), reply.fds.data(), bytes);
    }
    sendmsg(connection_.get(), &message, MSG_NOSIGNAL);
  }
  const ScratchDir directory_;
  const std::string path_ = directory_.path() + "/s";
  OwnedFd listener_, connection_;
  std::mutex mutex_;
  vgpu_sock_request last_{};
  size_t last_files_ = 0;
  std::thread thread_;
};

class ChannelSocketTest : public testing::Test {
 protected:
  ChannelSocketTest() : memory_(memfd_create("channel", MFD_CLOEXEC)) {
    EXPECT_EQ(0, ftruncate(memory_.get(), static_cast<off_t>(kBytes)));
    for (auto* ends : {kick_, call_}) {
      int fds[2];
      EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
      ends[0] = OwnedFd(fds[0]), ends[1] = OwnedFd(fds[1]);
    }
  }
  Reply Good(const vgpu_sock_request& request) {
    Reply reply;
    reply.head.op = request.op;
    if (request.op == VGPU_SOCK_OPEN) {
      reply.head.info = FakeInfo(kBytes);
      reply.fds = {memory_.get(), kick_[0].get(), call_[0].get()};
    } else if (request.op == VGPU_SOCK_BUFFER_ALLOC) {
      reply.head.buffer = 9;
      reply.fds = {memory_.get()};
    }
    return reply;
  }
  std::unique_ptr<Transport> Open(Server& server) { return OpenChannelSocket(server.path(), &why_); }
  OwnedFd memory_, kick_[2], call_[2];
  std::string why_;
};

TEST_F(ChannelSocketTest, OpensTheChannelThatIsHandedOver) {
  Server server([this](const vgpu_sock_request& request) { return Good(request); });
  const auto transport = Open(server);
  ASSERT_NE(nullptr, transport) << why_;
  EXPECT_EQ(uint32_t{VGPU_SOCK_OPEN}, server.last().op);
  EXPECT_EQ(uint64_t{VGPU_ABI_VERSION}, server.last().bytes);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), server.last().client_pid);
  EXPECT_EQ(kBytes, transport->area().size());
  transport->area()[100] = std::byte{42};
  char byte = 0;
  EXPECT_EQ(1, pread(memory_.get(), &byte, 1, 100));
  EXPECT_EQ(42, byte);
  transport->Kick();
  char any[8];
  EXPECT_EQ(1, recv(kick_[1].get(), any, sizeof any, 0)) << "one byte on the second descriptor";
}

TEST_F(ChannelSocketTest, SleepsUntilACallOrTheTimeOrTheEnd) {
  Server server([this](const vgpu_sock_request& request) { return Good(request); });
  const auto transport = Open(server);
  ASSERT_NE(nullptr, transport) << why_;
  EXPECT_EQ(Transport::Wake::kTimeout, transport->Sleep(0));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(1, send(call_[1].get(), "", 1, 0));
  EXPECT_EQ(Transport::Wake::kEvent, transport->Sleep(-1));
  EXPECT_EQ(Transport::Wake::kTimeout, transport->Sleep(0)) << "all calls are one";
  ASSERT_EQ(1, send(call_[1].get(), "", 1, 0));
  server.HangUp();
  EXPECT_EQ(Transport::Wake::kEvent, transport->Sleep(-1)) << "what was said before the end";
  EXPECT_EQ(Transport::Wake::kLost, transport->Sleep(-1));
}

TEST_F(ChannelSocketTest, TheEndOfTheExecutorIsTheEnd) {
  Server server([this](const vgpu_sock_request& request) { return Good(request); });
  const auto transport = Open(server);
  ASSERT_NE(nullptr, transport) << why_;
  call_[0] = OwnedFd();
  call_[1] = OwnedFd();
  EXPECT_EQ(Transport::Wake::kLost, transport->Sleep(-1));
}

TEST_F(ChannelSocketTest, BuffersAreMappedAndNamed) {
  Server server([this](const vgpu_sock_request& request) { return Good(request); });
  const auto transport = Open(server);
  ASSERT_NE(nullptr, transport) << why_;
  Transport::Buffer buffer;
  ASSERT_EQ(0, transport->AllocBuffer(8192, &buffer));
  EXPECT_EQ(9u, buffer.id);
  EXPECT_EQ(8192u, buffer.bytes);
  EXPECT_EQ(8192u, server.last().bytes);
  memset(buffer.address, 1, 8192);
  EXPECT_EQ(0, transport->FreeBuffer(buffer));
  EXPECT_EQ(uint32_t{VGPU_SOCK_BUFFER_FREE}, server.last().op);
  EXPECT_EQ(9u, server.last().buffer);
}

TEST_F(ChannelSocketTest, AFileIsImportedWhereTheVfTakesSome) {
  for (const uint64_t features : {uint64_t{0}, uint64_t{VGPU_FEATURE_CLIENT_MEMORY}}) {
    Server server([&](const vgpu_sock_request& request) {
      Reply reply = Good(request);
      if (request.op == VGPU_SOCK_OPEN) reply.head.info.features |= features;
      if (request.op == VGPU_SOCK_BUFFER_IMPORT) reply.head.buffer = 11;
      return reply;
    });
    const auto transport = Open(server);
    ASSERT_NE(nullptr, transport) << why_;
    Transport::Buffer buffer;
    if (features == 0) {
      EXPECT_EQ(ENOTSUP, transport->ImportBuffer(memory_.get(), 4096, 8192, &buffer));
      EXPECT_EQ(uint32_t{VGPU_SOCK_OPEN}, server.last().op) << "it was not asked";
      continue;
    }
    ASSERT_EQ(0, transport->ImportBuffer(memory_.get(), 4096, 8192, &buffer));
    EXPECT_EQ(11u, buffer.id);
    EXPECT_EQ(nullptr, buffer.address) << "it is not mapped here";
    EXPECT_EQ(uint32_t{VGPU_SOCK_BUFFER_IMPORT}, server.last().op);
    EXPECT_EQ(4096u, server.last().offset);
    EXPECT_EQ(8192u, server.last().bytes);
    EXPECT_EQ(1u, server.last_files());
    EXPECT_EQ(0, transport->FreeBuffer(buffer));
    EXPECT_EQ(0u, server.last_files());
  }
}

TEST_F(ChannelSocketTest, BadAnswersAreErrors) {
  const struct {
    const char* name;
    void (*spoil)(Reply&);
    int alloc;
    const char* why;
  } rows[] = {{"refused", [](Reply& r) { r.head.status = -ENOSPC, r.fds.clear(); }, ENOSPC, "No space left"},
              {"cut off", [](Reply& r) { --r.bytes; }, EPROTO, "Protocol error"},
              {"nothing", [](Reply& r) { r.bytes = 0; }, ECONNRESET, "Connection reset"},
              {"another answer", [](Reply& r) { r.head.op = VGPU_SOCK_BUFFER_FREE; }, EPROTO, "Protocol error"},
              {"without descriptors", [](Reply& r) { r.fds.clear(); }, EPROTO, "three descriptors"},
              {"one descriptor too many", [](Reply& r) { r.fds.push_back(r.fds[0]); }, EPROTO, "three descriptors"}};
  for (const auto& row : rows) {
    Server spoilt([&](const vgpu_sock_request& request) {
      Reply reply = Good(request);
      row.spoil(reply);
      return reply;
    });
    EXPECT_EQ(nullptr, Open(spoilt)) << row.name;
    EXPECT_NE(std::string::npos, why_.find(row.why)) << row.name << ": " << why_;
    EXPECT_EQ(0u, why_.find(spoilt.path())) << why_;
    Server later([&](const vgpu_sock_request& request) {
      Reply reply = Good(request);
      if (request.op == VGPU_SOCK_BUFFER_ALLOC) row.spoil(reply);
      return reply;
    });
    const auto transport = Open(later);
    ASSERT_NE(nullptr, transport);
    Transport::Buffer buffer;
    EXPECT_EQ(row.alloc, transport->AllocBuffer(4096, &buffer)) << row.name;
  }
}

TEST_F(ChannelSocketTest, ASocketThatIsNotThereIsNamed) {
  EXPECT_EQ(nullptr, OpenChannelSocket("/nonexistent/vf.sock", &why_));
  EXPECT_EQ("/nonexistent/vf.sock: No such file or directory", why_);
  const std::string longest(sizeof(sockaddr_un::sun_path) - 1, 'x');
  EXPECT_EQ(nullptr, OpenChannelSocket(longest, &why_));
  EXPECT_EQ(longest + ": No such file or directory", why_);
  EXPECT_EQ(nullptr, OpenChannelSocket(longest + "x", &why_));
  EXPECT_EQ(longest + "x: the path is longer than a socket address can be", why_);
  EXPECT_EQ(nullptr, OpenDeviceFile("/nonexistent/vgpu0", &why_));
  EXPECT_EQ("/nonexistent/vgpu0: No such file or directory", why_);
  EXPECT_EQ(nullptr, OpenDeviceFile("/dev/null", &why_));
  EXPECT_EQ(0u, why_.find("/dev/null: VGPU_IOC_INFO failed: ")) << why_;
}

}  // namespace
}  // namespace vgpud::cuda
