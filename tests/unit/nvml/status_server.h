// SPDX-License-Identifier: Apache-2.0
// A VF's channel socket that answers STATUS with what a test wants.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "tests/scratch_dir.h"

namespace vgpud {

class StatusServer {
 public:
  // Sends what `answer` says to each request; an empty answer ends the connection. On a thread of its own.
  using Answer = std::function<std::string(const vgpu_sock_request&)>;
  explicit StatusServer(Answer answer) : answer_(std::move(answer)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path().c_str());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener_, 8) != 0)
      abort();
    thread_ = std::thread([this] { Run(); });
  }
  ~StatusServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string path() const { return directory_.path() + "/s"; }

  static std::string Bytes(const auto& value, size_t bytes = 0) {
    return {reinterpret_cast<const char*>(&value), bytes == 0 ? sizeof value : bytes};
  }
  static std::string Reply(const vgpu_status& status) {
    return Bytes(vgpu_sock_status{VGPU_SOCK_STATUS, 0, 0, status});
  }

 private:
  void Run() {
    int connection;
    while ((connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
      vgpu_sock_request request;
      while (recv(connection, &request, sizeof request, 0) == ssize_t{sizeof request}) {
        const std::string answer = answer_(request);
        if (answer.empty()) break;
        if (send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
      }
      close(connection);
    }
  }

  const Answer answer_;
  const ScratchDir directory_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace vgpud
