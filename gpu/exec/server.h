// The I/O thread of vgpud-exec: link to vgpud-vf, doorbell, ring.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/message.h"
#include "gpu/exec/area.h"
#include "gpu/exec/executor.h"

namespace vgpud {

class Server {
 public:
  using MakeGpu = std::function<std::unique_ptr<Gpu>(uint64_t vram_bytes)>;
  // `drill`: test mode; what it has to say is logged at the end.
  Server(UniqueFd link, MakeGpu make_gpu, std::unique_ptr<PreemptDrill> drill = nullptr);
  // Serves until vgpud-vf closes the link, then exits the process at once, whatever the GPU thread does. Returns only
  // with the error that makes going on impossible.
  [[nodiscard]] Error Run();

 private:
  [[nodiscard]] Result<void> Loop();
  // Reads what the link holds; true when there was something.
  [[nodiscard]] Result<bool> DrainLink();
  [[nodiscard]] Result<void> Handle(Message message);
  [[nodiscard]] Result<void> Attach(Message message);
  [[nodiscard]] Result<void> MapArea(const Message& message);
  [[nodiscard]] Result<void> UnmapArea(const Message& message);
  [[nodiscard]] Result<void> Start();
  // Sends what the ledger wants to ask and takes the answers in; true when there was something.
  [[nodiscard]] Result<bool> ServeVramRequests();
  [[nodiscard]] Result<void> Send(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> Sleep(Core::Ring ring);
  bool SpinForWork();
  [[noreturn]] void End() const;

  UniqueFd link_;
  MakeGpu make_gpu_;
  std::unique_ptr<PreemptDrill> drill_;
  UniqueFd progress_;  // the GPU thread has made progress
  UniqueFd sched_event_;
  UniqueFd kick_;
  UniqueFd call_;
  exec_link::Attach attach_{};
  Mapping slice_page_;
  std::unordered_map<uint32_t, std::unique_ptr<GuestArea>> areas_;
  std::deque<Message> unread_;  // arrived while a VRAM answer was awaited
  std::unique_ptr<Executor> executor_;
};

}  // namespace vgpud
