// SPDX-License-Identifier: Apache-2.0
// The vfio-user server: one client at a time on the VF's socket. Each message is answered at once, except DMA_UNMAP
// of memory that executors map; what the client sends behind that waits, in order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/log.h"
#include "vfio/device/pci_function.h"
#include "vfio/wire/frame_reader.h"

namespace vgpud::vfio {

class VfioServer {
 public:
  // `listener` is bound and listens. `client_changed` hears of every client that comes (true) or goes.
  VfioServer(EventLoop& loop, UniqueFd listener, PciFunction& function, ChannelTable& channels,
             const VfFigures& figures, EventGuard& guard, std::function<void(bool)> client_changed);
  ~VfioServer();
  bool connected() const { return client_ != nullptr; }
  // Lets no other client in, and ends the connection of the one that is here as soon as it has sent nothing for a
  // while: QEMU stops the virtual CPU that waits for an answer, for 5 s when none comes.
  void Retire();
  // Ends the connection of the client, if there is one.
  void Disconnect(const char* why);

 private:
  struct Client;
  struct Reply;
  struct CommandSpec;
  static const CommandSpec kCommands[];
  static const CommandSpec* Find(uint16_t command);

  void OnConnect();
  void OnReadable();
  void OnWritable();
  // Serves what has arrived in whole. False when nothing more may be served now (gone, waiting, or not read from).
  [[nodiscard]] bool ServeFrames();
  void Serve(Frame& frame);
  void BeginTurn();
  // Has the client used up a budget, or its part of this turn of the loop? Then it is not read from for a while.
  [[nodiscard]] bool Throttle();
  [[nodiscard]] Result<void> Dispatch(Frame& frame, Reply& reply);
  void Send(const std::byte* data, size_t bytes);
  void SendError(const wire::Header& request, std::errc code);
  // Reads once; looks a little longer when the client is about to send its next message.
  [[nodiscard]] FrameReader::Got Receive();

  [[nodiscard]] Result<void> HandleVersion(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleDmaMap(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleDmaUnmap(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleDeviceInfo(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleRegionInfo(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleIrqInfo(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleSetIrqs(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleRegionRead(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleRegionWrite(Frame& frame, Reply& reply);
  [[nodiscard]] Result<void> HandleReset(Frame& frame, Reply& reply);
  void FinishUnmap(const wire::Header& request, const wire::DmaUnmap& unmap, Result<void> dropped);

  EventLoop& loop_;
  UniqueFd listener_;
  PciFunction& function_;
  ChannelTable& channels_;
  const VfFigures& figures_;
  EventGuard& guard_;
  std::function<void(bool)> client_changed_;
  EventLoop::WatchPtr accept_;
  EventLoop::WatchPtr accept_again_;
  EventLoop::WatchPtr silence_;
  bool retires_ = false;
  std::unique_ptr<Reply> reply_;
  std::unique_ptr<Client> client_;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
