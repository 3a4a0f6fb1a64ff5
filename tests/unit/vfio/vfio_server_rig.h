// SPDX-License-Identifier: Apache-2.0
// A VF without processes behind its vfio-user socket, and clients that speak to it in bytes.
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>

#include "tests/scratch_dir.h"
#include "tests/unit/vfio/vf_rig.h"
#include "vfio/vfio_server.h"

namespace vgpud::vfio {
using Op = wire::Command;

template <class T>
std::string Bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T>
T As(const std::string& bytes, size_t at = 0) {
  T value{};
  EXPECT_LE(at + sizeof value, bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Answer {
  wire::Header head;
  std::string body;
};

// The client's end of a connection.
class TestClient {
 public:
  explicit TestClient(const std::string& path) : socket_(*ConnectUnix(path, SOCK_STREAM)) {}

  static std::string Message(uint16_t id, Op command, const std::string& body = "", uint32_t flags = 0) {
    return Bytes(wire::Header{id, static_cast<uint16_t>(command), static_cast<uint32_t>(16 + body.size()), flags, 0}) +
           body;
  }
  void Send(const std::string& bytes, std::vector<int> fds = {}) {
    ASSERT_TRUE(SendMessage(socket_.get(), std::as_bytes(std::span{bytes}), fds));
  }
  // The next answer, if it is here in whole.
  std::optional<Answer> Next() {
    Receive();
    if (received_.size() < sizeof(wire::Header)) return {};
    const auto head = As<wire::Header>(received_);
    EXPECT_GE(head.bytes, sizeof head);
    if (received_.size() < head.bytes) return {};
    Answer answer{head, received_.substr(sizeof head, head.bytes - sizeof head)};
    received_.erase(0, head.bytes);
    return answer;
  }
  // Has the server ended the connection?
  bool Ended() {
    Receive();
    return ended_;
  }
  void Close() { socket_.Reset(); }
  int get() const { return socket_.get(); }

 private:
  void Receive() {
    char bytes[65536];
    ssize_t n = 0;
    while ((n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) received_.append(bytes, n);
    ended_ = n == 0 || errno != EAGAIN;
  }
  UniqueFd socket_;
  std::string received_;
  bool ended_ = false;
};

class VfioServerRig : public VfRig {
 protected:
  using VfRig::VfRig;
  void SetUp() override {
    server_ = std::make_unique<VfioServer>(loop, *ListenUnix(path_, SOCK_STREAM), *function, *channels, figures, guard,
                                           [this](bool there) { changes_.push_back(there); });
  }

  // One turn of the loop: each event that is due now, once.
  void Turn() { event_base_loop(loop.base(), EVLOOP_NONBLOCK | EVLOOP_ONCE); }
  std::unique_ptr<TestClient> Connect(bool version = true) {
    auto client = std::make_unique<TestClient>(path_);
    Pump();
    if (version) {
      EXPECT_EQ(0u, Call(*client, Op::kVersion, Bytes(wire::Version{})).head.error);
    }
    return client;
  }
  Answer Call(TestClient& client, Op command, const std::string& body = "", std::vector<int> fds = {},
              uint32_t flags = 0) {
    const uint16_t id = ++id_;
    client.Send(TestClient::Message(id, command, body, flags), std::move(fds));
    Pump();
    const auto answer = client.Next();
    if (!answer) {
      ADD_FAILURE() << "no answer to command " << static_cast<int>(command);
      return {};
    }
    EXPECT_EQ(id, answer->head.id);
    EXPECT_EQ(static_cast<int>(command), answer->head.command);
    EXPECT_EQ(answer->head.error == 0 ? 0x01u : 0x21u, answer->head.flags);
    EXPECT_TRUE(answer->head.error == 0 || answer->body.empty());
    return *answer;
  }
  uint32_t Error(TestClient& client, Op command, const std::string& body = "", std::vector<int> fds = {},
                 uint32_t flags = 0) {
    return Call(client, command, body, std::move(fds), flags).head.error;
  }
  static std::string Map(uint64_t iova, uint64_t bytes, uint32_t flags = 3, uint64_t offset = 0) {
    return Bytes(wire::DmaMap{32, flags, offset, iova, bytes});
  }
  static std::string Unmap(uint64_t iova, uint64_t bytes, uint32_t flags = 0) {
    return Bytes(wire::DmaUnmap{24, flags, iova, bytes});
  }
  static std::string Access(uint64_t offset, uint32_t region, uint32_t bytes) {
    return Bytes(wire::RegionAccess{offset, region, bytes});
  }

  const ScratchDir scratch_;
  const std::string path_ = scratch_.path() + "/vfio.sock";
  std::vector<bool> changes_;  // clients that came and went
  std::unique_ptr<VfioServer> server_;
  uint16_t id_ = 0;
};

}  // namespace vgpud::vfio
