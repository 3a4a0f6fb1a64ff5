// SPDX-License-Identifier: Apache-2.0
// One virtual function: everything in vgpud-vf behind the command line, and the link to vgpud.
#pragma once

#include <memory>

#include "base/event_loop.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "vfio/channel/channel_server.h"
#include "vfio/channel/message_queue.h"
#include "vfio/vfio_server.h"

namespace vgpud::vfio {

class Vf {
 public:
  struct Sockets {
    UniqueFd link;      // to vgpud
    UniqueFd vfio;      // listens, SOCK_STREAM
    UniqueFd channels;  // listens, SOCK_SEQPACKET
  };
  // Waits for vgpud's kConfigure (at most 10 s) and answers it. `client_memory`: clients of the channel socket may
  // bring memory of their own. From then on everything happens in `loop`, which is stopped when the VF has ended.
  [[nodiscard]] static Result<std::unique_ptr<Vf>> Start(EventLoop& loop, std::string name, Sockets sockets,
                                                         const EventBudgets& budgets, bool client_memory);

  // Does vgpud want to watch this process's jail?
  bool watched() const { return watched_; }
  // The watch of it (base/jail/jail.h), for vgpud.
  void TellWatched(UniqueFd watch);

 private:
  struct Parts {
    std::string name;
    Sockets sockets;
    vf_link::Configure configure;
    SliceView slices;
    EventBudgets budgets;
    bool client_memory = false;
  };
  Vf(EventLoop& loop, Parts parts);

  void OnLink();
  void Handle(Message& message);
  void HandleExecutor(Message& message);
  void HandleExecutorFailed(Message& message);
  void HandleInfo(Message& message);
  void HandleReset(Message& message);
  void HandleShutdown(Message& message);
  void HandlePing(Message& message);
  void HandleAdopt(Message& message);
  void HandleQuotas(Message& message);
  struct MessageSpec;
  static const MessageSpec kMessages[];

  [[nodiscard]] bool ToVgpud(const vf_link::Executor& message);
  void UsageChanged();
  void ReportUsage();
  vf_link::Events CountEvents() const;
  void ReportEvents();
  void ClientChanged(bool connected);
  void End(const char* why);
  void EndWhenIdle();

  EventLoop& loop_;
  VfFigures figures_;
  UniqueFd link_;
  MessageQueue to_vgpud_;
  SliceView slices_;
  MemoryLedgers ledgers_;
  EventGuard guard_;          // of the VM
  EventGuard channel_guard_;  // of the clients of the channel socket: neither pays for what the other does
  ChannelTable channels_;
  PciFunction function_;
  VfioServer vfio_;
  ChannelServer channel_server_;
  bool link_alive_ = true;
  bool watched_ = false;
  bool usage_changed_ = false;  // and not yet told
  bool ending_ = false;
  EventLoop::WatchPtr link_watch_;
  EventLoop::WatchPtr end_timer_;
  EventLoop::WatchPtr usage_timer_;
  EventLoop::WatchPtr events_timer_;
  vf_link::Events reported_;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
