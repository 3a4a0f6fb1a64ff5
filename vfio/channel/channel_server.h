// SPDX-License-Identifier: Apache-2.0
// channel.sock: the way to the VF without a VM (vgpu_channel_sock.h). One connection = one channel; its memory is
// allocated here, sealed against any change of size, and shared with the client and its executor.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/log.h"
#include "vfio/channel/channel_peer.h"
#include "vfio/channel/channel_table.h"
#include "vfio/channel/vf_figures.h"

namespace vgpud::vfio {

class ChannelServer {
 public:
  ChannelServer(EventLoop& loop, UniqueFd listener, ChannelTable& channels, const VfFigures& figures,
                EventGuard& guard);
  ~ChannelServer();

 private:
  class Connection;
  void OnConnect();
  void Remove(uint64_t id);
  // Of all connections, and of those that are gone but have left something to do (FileWork).
  std::vector<Peer> Peers();
  // One more request or connection. When a budget is used up nobody is read from for a while.
  void Count();
  // Reads from nobody for so long.
  void Hold(Ns time);
  // Counts the file as long as anybody has it.
  SharedFd CountBufferFile(SharedFd file);

  EventLoop& loop_;
  UniqueFd listener_;
  ChannelTable& channels_;
  const VfFigures& figures_;
  EventGuard& guard_;
  const size_t max_buffer_files_;
  const std::shared_ptr<size_t> buffer_files_ = std::make_shared<size_t>(0);
  EventLoop::WatchPtr accept_;
  EventLoop::WatchPtr go_on_;
  bool held_ = false;  // until `go_on_` fires
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  uint64_t next_id_ = 0;
  std::vector<std::weak_ptr<const Peer>> peers_;
  LogLimiter limiter_;
};

}  // namespace vgpud::vfio
