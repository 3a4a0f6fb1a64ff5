// SPDX-License-Identifier: Apache-2.0
// The vgpud-vf of a VF: its process, the link to it, and what it says of the VF's present. Main thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/jail/syscall_watch.h"
#include "base/log.h"
#include "base/message.h"
#include "base/vf_link.h"
#include "vgpud/host/child.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/definition.h"
#include "vgpud/model/server_report.h"
#include "vgpud/vf/kept_vf.h"
#include "vgpud/vf/server_link.h"
#include "vgpud/vf/vf_spawner.h"
#include "vgpud/vf/vf_surroundings.h"

namespace vgpud::daemon {

// For clients: `used` is more than `wanted`.
std::string WhyNotLess(const std::string& vf, const VfMemory& used, const VfMemory& wanted);

class VfServer {
 public:
  struct Events {
    // What it says that is not about itself (Hello, and all about channels). An error ends the VF.
    std::function<Result<void>(vf_link::Kind, const Message&)> on_message;
    // It broke the link's rules, or no longer answers: the VF is lost.
    std::function<void(const std::string& why)> on_lost;
    // Its process has ended, and so has the link. `without_vm`: while it served nobody.
    std::function<void(const std::string& how, bool without_vm)> on_ended;
  };
  // `around` and `spawner` outlive this. `definition`: of the VF, for what it is told.
  VfServer(const VfSurroundings& around, VfSpawner& spawner, VfKeeping keeping, const VfDefinition& definition,
           Events events);

  // Starts it, with listening sockets at the paths. It answers with Hello.
  [[nodiscard]] Result<void> Launch(const std::string& vfio_socket, const std::string& channel_socket);
  // Its first message, with the VF's pages.
  [[nodiscard]] Result<void> Configure(uint32_t slice_us, uint32_t weight, std::span<const int> pages);
  // Goes on with one that an earlier vgpud has left. Listen() asks it what it knows.
  [[nodiscard]] Result<void> Adopt(KeptVf& kept);
  [[nodiscard]] Result<void> Listen(uint32_t link_version);
  // It serves, and knows that version of the link: from now on it has to answer.
  void Watch(uint32_t link_version);
  // Asks it to keep its guests within `quotas`, all of it or nothing. An error: more is in use, with the figures; or it
  // has ended. One question at a time.
  using Answer = std::function<void(ApiResult<void>)>;
  void SetQuotas(const VfMemory& quotas, Answer done);
  // Its process, link and log, for the next vgpud. Once.
  [[nodiscard]] Result<void> GiveTo(KeptVf* kept);

  bool has_process() const { return process_ != nullptr; }
  bool has_link() const { return link_ != nullptr; }
  pid_t pid() const { return process_->pid(); }  // of its process
  template <class T>
  [[nodiscard]] Result<void> Send(const T& message, std::span<const int> fds = {}) {
    if (link_ == nullptr) return Fail(std::errc::not_connected, "vgpud-vf has ended");
    return link_->Send(message, fds);
  }
  // An executor of it has died.
  void CountFault();
  void Kill();
  // Does not wait for its end.
  void Abandon();

  // What it says of now. When it is gone, so is what it had.
  struct Present {
    bool client_connected = false;
    uint64_t vram_used = 0;
    uint64_t host_memory_used = 0;
  };
  Present present() const { return link_ != nullptr ? present_ : Present{}; }
  const vf_link::Events& events() const { return events_; }
  ServerReport report() const;

 private:
  Result<void> OnMessage(vf_link::Kind kind, const Message& message);
  Result<void> OnClient(const Message& message);
  Result<void> OnUsage(const Message& message);
  Result<void> OnEvents(const Message& message);
  Result<void> OnWatched(const Message& message);
  Result<void> OnQuotasSet(const Message& message);
  void MakeLink(UniqueFd socket, uint64_t asked = 0);
  void WatchSyscalls(UniqueFd watch);
  void OnEnded();

  const VfSurroundings& around_;
  VfSpawner& spawner_;
  const VfKeeping keeping_;
  const VfDefinition definition_;
  const Events to_vf_;
  std::unique_ptr<Child> process_;
  EventLoop::WatchPtr ended_;
  std::unique_ptr<ServerLink> link_;  // while its process lives
  ServerReport last_report_;          // when it is gone
  UniqueFd log_;                      // until it is kept
  std::unique_ptr<SyscallWatch> syscalls_;
  Present present_;
  vf_link::Events events_;
  struct Question {
    VfMemory quotas;
    Answer done;
    EventLoop::WatchPtr too_long;
  };
  uint32_t link_version_ = 0;
  VfMemory quotas_;      // as it has said
  VfMemory most_usage_;  // that its figures may show
  uint64_t quotas_asked_ = 0;
  std::optional<Question> question_;
  LogLimiter limiter_{20};
};

}  // namespace vgpud::daemon
