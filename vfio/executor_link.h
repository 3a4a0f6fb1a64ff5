// One executor process as vgpud-vf sees it: the socket to it, its pidfd, the areas it maps and the VRAM it has been
// granted. Ends it: first politely (EOF on the link), then with SIGKILL.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "base/exec_link.h"
#include "base/message.h"
#include "vfio/dma_table.h"
#include "vfio/message_queue.h"

namespace vgpud {

// Memory that an executor maps: the channel area (id 0) or a buffer.
struct Area {
  std::vector<FilePiece> pieces;
  uint64_t bytes = 0;

  bool Overlaps(const IovaRange& range) const;
};

// SIGKILL; nothing when the process is dead already.
void KillProcess(const UniqueFd& pidfd);

class ExecutorLink {
 public:
  struct Events {
    std::function<void(uint32_t area)> unmapped;         // kUnmapped came
    std::function<exec_link::Vram(int64_t delta)> vram;  // kVramRequest: the answer
    std::function<void()> dead;                          // the process is gone; the last event
  };
  ExecutorLink(EventLoop& loop, UniqueFd socket, UniqueFd pidfd, Events events);

  void Attach(const exec_link::Attach& attach, std::vector<SharedFd> fds);
  void MapArea(uint32_t id, const Area& area);
  void UnmapArea(uint32_t id);
  // Tells the executor to exit by closing the link; kills it when it has not gone after kExitGrace.
  void End();
  void Kill();

 private:
  static constexpr std::chrono::milliseconds kExitGrace{100};
  void OnMessage();
  void Handle(const Message& message);
  void OnDead();

  UniqueFd socket_;
  UniqueFd pidfd_;
  Events events_;
  std::unique_ptr<MessageQueue> out_;
  EventLoop::WatchPtr readable_;
  EventLoop::WatchPtr death_;
  EventLoop::WatchPtr kill_timer_;
  bool ending_ = false;
};

}  // namespace vgpud
