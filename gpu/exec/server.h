// SPDX-License-Identifier: Apache-2.0
// The I/O thread of vgpud-exec: link to vgpud-vf, doorbell, ring.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "base/token_bucket.h"
#include "gpu/exec/card_memory.h"
#include "gpu/exec/executor.h"
#include "gpu/exec/host_work.h"
#include "gpu/exec/memory/area.h"

namespace vgpud::exec {

class Server {
 public:
  using MakeGpu = std::function<std::unique_ptr<Gpu>(uint64_t vram_bytes)>;
  // `memory`: what this process may take of the host's memory; asks vgpud-vf for more of it.
  Server(UniqueFd link, MakeGpu make_gpu, HostMemory& memory);
  // Waits for vgpud-vf's first message, before anything of a guest. Does vgpud-vf want to watch this process's jail?
  [[nodiscard]] Result<bool> AwaitAttach();
  // After that.
  const GrantPage& grant_page() const { return slices_.grant_page(); }
  // The watches of it (base/jail/jail.h), that of this thread and that of the others, for vgpud-vf; invalid ones: there
  // are none. This process keeps none.
  [[nodiscard]] Result<void> TellWatched(UniqueFd own, UniqueFd workers);
  // Before Run: the GPU thread needs no processor while the GPU computes, so that it lacks none.
  void ComputesElsewhere() { computes_elsewhere_ = true; }
  // Before Run: the files of the guest's buffers stay open, where they come with the messages.
  void KeepFiles() { keeps_files_ = true; }
  // Before Run: called when the channel is over.
  void AtEnd(std::function<void()> last_words) { last_words_ = std::move(last_words); }
  // Before Run: called when the quotas of the VF have changed, with both together.
  void OnQuotas(std::function<Result<void>(uint64_t bytes)> changed) { quotas_changed_ = std::move(changed); }
  // Before Run: the card has less memory than was promised.
  void ShareCard() { shares_card_ = true; }
  // Before Run: starts a thread that runs what it is given.
  void StartThreadsBy(std::function<void(std::function<void()>)> start) { start_thread_ = std::move(start); }
  // Serves until vgpud-vf closes the link or going on is impossible, then exits the process at once, whatever the GPU
  // thread does.
  [[noreturn]] void Run();

 private:
  [[nodiscard]] Result<void> Loop();
  // Reads what the link holds; true when there was something.
  [[nodiscard]] Result<bool> DrainLink();
  [[nodiscard]] Result<void> Handle(Message message);
  [[nodiscard]] Result<void> Attach(Message message);
  [[nodiscard]] Result<void> MapArea(Message message);
  [[nodiscard]] Result<void> UnmapArea(const Message& message);
  [[nodiscard]] Result<void> SetQuotas(const Message& message);
  [[nodiscard]] Result<void> Start();
  // Asks vgpud-vf for the memory that is wanted and takes the answers in; true when there was something.
  [[nodiscard]] Result<bool> ServeMemoryRequests();
  [[nodiscard]] Result<void> AskForLoad();
  [[nodiscard]] Result<exec_link::Vram> AskLedger(exec_link::Kind kind, exec_link::Kind answer, int64_t delta);
  [[nodiscard]] Result<void> Send(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> Sleep(ChannelEngine::Ring ring);
  // Takes the kicks that woke it.
  void OnKick();
  // Tells vgpud-vf of kicks, at most once a second. How long until there is something to tell; none: nothing.
  [[nodiscard]] Result<std::optional<Ns>> ReportDoorbells(TimePoint now);
  void CountWork();
  bool SpinForWork();
  [[noreturn]] void End() const;

  UniqueFd link_;
  MakeGpu make_gpu_;
  bool computes_elsewhere_ = false;
  bool keeps_files_ = false;
  bool shares_card_ = false;
  HostMemory& memory_;
  std::function<void(std::function<void()>)> start_thread_;
  std::function<void()> last_words_ = [] {};
  std::function<Result<void>(uint64_t bytes)> quotas_changed_ = [](uint64_t) -> Result<void> { return {}; };
  UniqueFd progress_;  // the GPU thread has made progress
  UniqueFd kick_;      // signal sockets (base/signal_socket.h)
  UniqueFd call_;
  std::optional<TokenBucket> doorbells_;
  std::optional<HostWork> work_;
  std::optional<CardMemory> card_;
  TimePoint work_counted_at_{};
  uint64_t doorbells_told_ = 0;
  TimePoint doorbells_told_at_{};
  exec_link::Attach attach_{};
  GuestWindow window_;
  GuestWindow buffer_window_{KernelReach().shared(), ReachSpace::kAlignment};
  SliceView slices_;
  std::unordered_map<uint32_t, std::unique_ptr<GuestArea>> areas_;
  bool link_told_ = true;       // it had something when this thread slept last
  std::deque<Message> unread_;  // arrived while an answer of the ledger was awaited
  std::unique_ptr<Executor> executor_;
};

}  // namespace vgpud::exec
