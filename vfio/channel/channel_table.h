// SPDX-License-Identifier: Apache-2.0
// The VF's channels: one guest process and its executor each. Opens, ends and tracks them for both kinds of owners
// (the guest's control page and channel.sock). Never waits: slow endings come back as events to the owner.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/log.h"
#include "base/slice_page.h"
#include "base/vf_link.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "vfio/channel/charged_files.h"
#include "vfio/channel/event_guard.h"
#include "vfio/channel/executor_link.h"
#include "vfio/channel/held_area.h"
#include "vfio/channel/load_queue.h"
#include "vfio/memory/file_work.h"
#include "vfio/memory/memory_ledger.h"

namespace vgpud::vfio {

// Whoever opened a channel. Called from the event loop, never inside a call of the owner to the table, except
// BufferGone, which may come before RemoveBuffer returns.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  virtual void ChannelState(uint32_t channel, uint32_t state) = 0;  // VGPU_CHANNEL_LOST or _FREE
  virtual void BufferGone(uint32_t channel, uint32_t buffer) = 0;   // after RemoveBuffer: its memory is free
};

struct ChannelRequest {
  ChannelOwner* owner = nullptr;
  EventGuard* guard = nullptr;  // of the owner's side: pays for the opening, how the channel ends, modules it loads
  Area area;
  uint32_t client_pid = 0;  // for logs
  // Of the host, which shares the area's file with us: what has to be written there may have to wait. None: a guest.
  FileWork::Client client;
  // Ends of signal sockets (base/signal_socket.h). Kick: work for the executor; call: something for the guest process.
  SharedFd kick;       // rings; none: the client rings itself, and the executor keeps count
  SharedFd kick_ends;  // listens: for the executor, given away with Attach
  SharedFd call;       // rings
};

inline constexpr size_t kMaxBuffersPerChannel = 4096;
inline constexpr size_t kMaxPiecesPerVf = 1 << 20;

class ChannelTable {
 public:
  struct Config {
    std::string vf_name;
    SlotPage* slots = nullptr;
    EventGuard& guard;  // counts kicks
    // Sends to vgpud; false when it is gone.
    std::function<bool(const vf_link::Executor&)> to_vgpud;
    // Memory in use or the number of channels changed.
    std::function<void()> usage_changed;
    // The last executor has died.
    std::function<void()> idle = [] {};
    bool watch_executors = false;  // this host can (base/jail/jail.h)
  };
  ChannelTable(EventLoop& loop, MemoryLedgers& ledgers, Config config);
  ~ChannelTable();

  // Opens channel `index`.  EINVAL no such index   EBUSY in use or its last executor still dies   ENOMEM too many
  // pieces
  //   ENODEV no vgpud to start an executor
  [[nodiscard]] Result<void> Open(uint32_t index, ChannelRequest request);
  // Ends it; the owner is told when it is VGPU_CHANNEL_FREE.  ENOENT not open   EALREADY ends already
  [[nodiscard]] Result<void> Close(uint32_t index, const ChannelOwner* owner);
  //   EEXIST id in use   ENOENT no such channel or it is lost   ENOSPC too many buffers   ENOMEM too many pieces
  [[nodiscard]] Result<void> AddBuffer(uint32_t index, const ChannelOwner* owner, uint32_t buffer, Area area);
  //   ENOENT no such buffer   EALREADY being removed
  [[nodiscard]] Result<void> RemoveBuffer(uint32_t index, const ChannelOwner* owner, uint32_t buffer);
  // Wakes the channel's executor; nothing when there is none.
  void Kick(uint32_t index);
  // Ends every channel of `owner`, which is not called for them any more.
  void Abandon(const ChannelOwner* owner);
  // Ends every channel of everyone; the owners are told.
  void CloseAll();

  // The quotas of the ledgers are others now: tells the executors.
  void QuotasChanged();
  // Executors that start from now on don't understand that.
  void NewExecutorsTakeNoQuotas() { tells_new_ones_ = false; }

  // Messages of vgpud.
  void ExecutorStarted(const vf_link::Executor& message, UniqueFd socket, UniqueFd pidfd);
  void ExecutorFailed(const vf_link::Executor& message);
  // Of each channel that has, or waits for, an executor: for a vgpud that has to find out.
  std::vector<vf_link::Channel> Describe() const;

  // Takes [range] away from every executor that maps a part of it; `done` is called when none does any more, with an
  // error when even killing did not help in time. True: nothing to wait for, `done` is not called.
  [[nodiscard]] bool Drop(IovaRange range, std::function<void(Result<void>)> done);
  void CancelDrop() { drop_.reset(); }

  uint32_t State(uint32_t index) const;  // VGPU_CHANNEL_*
  // The highest free index, for owners that do not choose.  EBUSY all in use
  [[nodiscard]] Result<uint32_t> FindFree() const;
  uint32_t open_channels() const;
  // Files of clients, counted as the VF's host memory.
  ChargedFiles& files() { return files_; }
  bool any_executor() const;
  const MemoryLedger& vram() const { return ledgers_.vram; }
  const SlotPage& slots() const { return *config_.slots; }
  // Does any executor have a guest's memory?
  bool any_guest_memory() const { return InUse({Iova{0}, ~uint64_t{0}}); }

 private:
  struct Buffer {
    HeldArea area;
    bool removing = false;  // the owner wants it gone
    bool dropping = false;  // kUnmapArea is on its way
  };
  struct Channel {
    uint32_t state = VGPU_CHANNEL_FREE;
    uint64_t generation = 0;
    bool told_vgpud_closed = false;
    ChannelRequest request;  // but for its area
    HeldArea area;
    std::map<uint32_t, Buffer> buffers;
    std::unique_ptr<ExecutorLink> executor;
    exec_link::Doorbells doorbells;  // as its executor said last
  };
  struct PendingDrop {
    IovaRange range;
    std::function<void(Result<void>)> done;
    bool killed = false;
    EventLoop::WatchPtr timer;
  };

  [[nodiscard]] Result<Channel*> Find(uint32_t index, const ChannelOwner* owner);
  Channel* Current(const vf_link::Executor& message);
  void Unmapped(uint32_t index, uint32_t area);
  exec_link::Vram ChangeMemory(uint32_t index, const exec_link::Vram& request);
  void CountDoorbells(uint32_t index, const exec_link::Doorbells& now);
  bool QueueLoad(uint32_t index);
  void CountLoaded(uint32_t index, uint64_t code_bytes);
  void ServeLoads(EventGuard* guard);
  void ExecutorDead(uint32_t index);
  void Offended(uint32_t index, const std::string& name);
  void AskToKill(vf_link::Executor executor);
  void Lose(uint32_t index);
  void Free(uint32_t index);
  void TellClosed(Channel& channel, uint32_t index);
  bool InUse(const IovaRange& range) const;
  void CheckDrop();
  void DropTimeout();

  EventLoop& loop_;
  MemoryLedgers& ledgers_;
  Config config_;
  PieceBudget pieces_{kMaxPiecesPerVf};
  std::array<Channel, VGPU_MAX_CHANNELS> channels_;
  uint64_t generations_ = 0;
  bool tells_new_ones_ = false;  // they may have been started with the quotas of before
  std::shared_ptr<PendingDrop> drop_;
  struct Loads {
    LoadQueue queue;
    EventLoop::WatchPtr timer;
    bool waits = false;
  };
  std::map<EventGuard*, Loads> loads_;  // of each side
  LogLimiter limiter_{20};
  ChargedFiles files_{loop_, ledgers_.host, config_.usage_changed};
};

}  // namespace vgpud::vfio
