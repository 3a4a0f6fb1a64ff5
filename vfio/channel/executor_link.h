// SPDX-License-Identifier: Apache-2.0
// One executor process as vgpud-vf sees it: the socket to it, its pidfd, the areas it maps and the VRAM it has been
// granted. Ends it: first politely (EOF on the link), then with SIGKILL.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "base/exec_link.h"
#include "base/jail/syscall_watch.h"
#include "base/message.h"
#include "vfio/channel/event_guard.h"
#include "vfio/channel/executor_memory.h"
#include "vfio/channel/message_queue.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

// SIGKILL; nothing when the process is dead already.
// False: this process may not, as one in another pid namespace.
[[nodiscard]] bool KillProcess(const UniqueFd& pidfd);

class ExecutorLink {
 public:
  struct Events {
    std::function<void(uint32_t area)> unmapped;                            // kUnmapped came
    std::function<exec_link::Vram(const exec_link::Vram& request)> memory;  // kVramRequest, kHostRequest: the answer
    std::function<void(const exec_link::Doorbells&)> doorbells;
    std::function<bool()> load;  // kLoadRequest, answered with AllowLoad; false: not understood
    std::function<void(uint64_t code_bytes)> loaded;
    std::function<void()> dead;  // the process is gone; the last event
    // It made a system call that it has no business with, and is being killed for it.
    std::function<void(const std::string& name)> offended;
    // It has to end, and this process can't do it: somebody who can is to be asked.
    std::function<void()> kill;
  };
  ExecutorLink(EventLoop& loop, UniqueFd socket, UniqueFd pidfd, Events events);

  // First of all. attach.watched: it will be watched if it can be.
  void Attach(const exec_link::Attach& attach, std::vector<SharedFd> fds);
  void MapArea(uint32_t id, const Area& area);
  void UnmapArea(uint32_t id);
  void AllowLoad();
  void TellQuotas(const exec_link::Quotas& quotas);
  // Tells the executor to exit by closing the link; kills it when it has not gone after kExitGrace.
  void End();
  void Kill();

 private:
  static constexpr std::chrono::milliseconds kExitGrace{100};
  // How it gets at guest memory.
  enum class Memory {
    kUndecided,  // it has not said yet whether it can be watched: areas wait
    kByFiles,    // it gets the files
    kWatched,    // each of its mappings is decided here
  };
  // Each allocation is one, and waits for its answer. What is beyond that is read later.
  static constexpr uint32_t kMessagesPerSecond = 20'000;
  void OnMessage();
  void Handle(Message message);
  Result<void> OnWatched(Message message);
  void SendArea(uint32_t id, const Area& area);
  SyscallWatch::Verdict Judge(const SyscallWatch::Call& call);
  SyscallWatch::Verdict Offend(const SyscallWatch::Call& call);
  void OnDead();

  EventLoop& loop_;
  ForeignFd socket_;
  UniqueFd pidfd_;
  Events events_;
  std::unique_ptr<MessageQueue> out_;
  EventLoop::WatchPtr readable_;
  EventLoop::WatchPtr death_;
  EventLoop::WatchPtr kill_timer_;
  EventLoop::WatchPtr go_on_;
  EventGuard guard_;  // only kMessage
  bool ending_ = false;
  Memory memory_ = Memory::kByFiles;
  std::vector<std::pair<uint32_t, Area>> waiting_areas_;  // while it is kUndecided
  ExecutorMemory mapped_;
  std::map<uint32_t, uint64_t> unmapping_;  // areas that it is to give up: out_->accepted() with the message
  std::unique_ptr<SyscallWatch> watch_;     // of the thread that maps
  std::unique_ptr<SyscallWatch> workers_;   // of the others, which have nothing to ask
};

}  // namespace vgpud::vfio
