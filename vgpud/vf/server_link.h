// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the link to one vgpud-vf. Whoever is at the other end, even one that was taken over: it is read
// from at a bounded rate, what it sends has the size and the descriptors of its kind, and it is found out when it no
// longer answers. Main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/foreign_fd.h"
#include "base/log.h"
#include "base/message.h"
#include "base/vf_link.h"
#include "vgpud/host/process_pulse.h"
#include "vgpud/host/watchdog.h"
#include "vgpud/model/server_report.h"
#include "vgpud/vf/link_budget.h"

namespace vgpud::daemon {

class ServerLink {
 public:
  struct Events {
    // An error says what was wrong with the message, and ends the VF.
    std::function<Result<void>(vf_link::Kind, const Message&)> on_message;
    // The VF is lost, for this reason. Nothing is read any more. Called once at most, inside the link's callbacks.
    std::function<void(const std::string& why)> on_lost;
  };
  // `socket`: our end; `server`: the process at the other; `asked`: so many questions an earlier vgpud may have asked
  // on it, whose answers are still to come. `loop` outlives this. Must not be destroyed inside its own callbacks.
  ServerLink(EventLoop& loop, std::string vf, UniqueFd socket, pid_t server, const EventBudgets& budgets, Events events,
             uint64_t asked = 0);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // Whatever descriptors it was to send have come: the kernel takes no more, where it can refuse them (Linux 6.16).
  // Elsewhere the first one that comes ends the VF.
  void RefuseFds() { (void)vgpud::RefuseFds(socket_.get()); }
  // It serves: from now on it has to answer.
  void Watch();
  // An executor of it has died.
  void CountFault() { budget_.CountFault(Now()); }
  // EAGAIN: it does not read its link.
  template <class T>
  [[nodiscard]] Result<void> Send(const T& message, std::span<const int> fds = {}) {
    return SendStruct(socket_.get(), message, fds);
  }
  ServerReport report() const;
  int fd() const { return socket_.get(); }

 private:
  void OnReadable();
  Result<void> OnMessage(const Message& message);
  Result<void> OnPong(const Message& message);
  void Lose(const std::string& why);
  void Stop();
  void SlowDown(Ns wait);
  void Look();

  const std::string vf_;
  const ForeignFd socket_;
  const Events events_;
  LinkBudget budget_;
  Watchdog watchdog_;
  ProcessPulse pulse_;
  EventLoop::WatchPtr readable_;
  EventLoop::WatchPtr resume_;
  EventLoop::WatchPtr look_;
  bool paused_ = false;
  bool stopped_ = false;
  ServerReport report_;
  LogLimiter limiter_{1};
};

}  // namespace vgpud::daemon
