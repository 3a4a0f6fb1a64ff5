// SPDX-License-Identifier: Apache-2.0
// The control API over its socket, on a daemon without VFs, in this process.
#pragma once

#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/scratch_dir.h"
#include "vgpud/control/control.h"
#include "vgpud/live/configuration.h"
#include "vgpud/registry/vf_service.h"

namespace vgpud::daemon {

using namespace std::chrono_literals;
using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
  Json json() const { return Json::parse(body, nullptr, false); }
  std::string error() const { return json().value("error", ""); }
  std::string field() const { return json().value("field", ""); }
};

struct ControlBed {
  explicit ControlBed(const std::string& state_dir = "") {
    ::signal(SIGPIPE, SIG_IGN);  // as vgpud does
    config_.host_ram_bytes = uint64_t{1} << 40;
    config_.runtime_dir = scratch_.path();
    config_.state_dir = state_dir.empty() ? scratch_.path() + "/state" : state_dir;
    config_.scheduler.waiter.fifo_priority = 0;
    config_.scheduler.switcher.preempt_timeout = 12ms;
    config_.gpus.push_back(config_);
    cgroups_ = std::make_unique<CgroupTree>(
        CgroupTree::Host{.root = scratch_.path() + "/none", .self = "", .pid = -1, .id = "x"});
    replies_watch_ = loop_.OnReadable(event_.get(), [this] {
      DrainEventFd(event_.get());
      replies_.RunAll();
    });
    Begin();
    control_ = *Control::Serve(loop_, Control::Served(*vfs_), socket());
  }
  ~ControlBed() { Leave(); }
  ControlBed(const ControlBed&) = delete;
  ControlBed& operator=(const ControlBed&) = delete;
  // A daemon of the configuration as it is now, which nobody can reach yet.
  void Begin() {
    Leave();
    vfs_ = *VfService::Make({loop_, replies_, config_, confinement_, *cgroups_, mover_});
  }
  // `with_rights`: the rights of config_.access hold, and there are requests about the configuration.
  void Serve(const ClientLimits& limits, bool with_rights = false) {
    control_.reset();
    if (with_rights)
      configuration_ =
          std::make_unique<Configuration>(vfs_->gpus(), vfs_->changes(), vfs_->limits(), Told{config_, {}, {}}, [this] {
            return Told{config_, {}, {}};
          });
    control_ = *Control::Serve(loop_, Control::Served(*vfs_), socket(), configuration_.get(), {}, limits);
  }
  void Leave() {
    control_.reset();
    metrics_.reset();
    configuration_.reset();
    vfs_.reset();
  }
  std::string socket() const { return config_.runtime_dir + "/control.sock"; }

  // Sends `text` and serves until the connection is closed.
  std::string Exchange(const UniqueFd& client, const std::string& text) {
    std::string answer;
    size_t sent = 0;
    EventLoop::WatchPtr writer, reader;
    writer = loop_.OnWritable(client.get(), [&] {
      const ssize_t n = ::send(client.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<size_t>(n);
      if (n <= 0 || sent == text.size()) writer->Pause();
    });
    reader = loop_.OnReadable(client.get(), [&] {
      std::array<char, 4096> piece;
      const ssize_t n = ::recv(client.get(), piece.data(), piece.size(), 0);
      if (n > 0) return void(answer.append(piece.data(), static_cast<size_t>(n)));
      reader->Pause();
      loop_.Stop();
    });
    loop_.Run();
    return answer;
  }
  static Answer Parse(const std::string& text) {
    Answer reply;
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos || !text.starts_with("HTTP/1.1 ")) return reply;
    reply.status = std::stoi(text.substr(9, 3));
    reply.head = text.substr(0, end + 2);
    reply.body = text.substr(end + 4);
    if (reply.head.find("chunked") == std::string::npos) return reply;
    std::string whole;
    for (size_t at = 0; at < reply.body.size();) {
      const size_t line = reply.body.find("\r\n", at);
      const size_t bytes = std::stoul(reply.body.substr(at, line - at), nullptr, 16);
      whole += reply.body.substr(line + 2, bytes);
      at = line + 2 + bytes + 2;
    }
    reply.body = whole;
    return reply;
  }
  Answer Raw(const std::string& text) {
    return Parse(Exchange(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK), text));
  }
  Answer Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    const std::string length = body.empty() ? "" : fmt::format("Content-Length: {}\r\n", body.size());
    return Raw(fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n{}", method, path, length, body));
  }

  const ScratchDir scratch_;
  EventLoop loop_;
  UniqueFd event_ = *MakeEventFd();
  TaskQueue replies_{event_.get()};
  EventLoop::WatchPtr replies_watch_;
  Config config_;
  VfConfinement confinement_;
  std::unique_ptr<CgroupTree> cgroups_;
  Worker mover_{"mover", 10, replies_};
  std::unique_ptr<VfService> vfs_;
  std::unique_ptr<Configuration> configuration_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Control> metrics_;
};

}  // namespace vgpud::daemon
