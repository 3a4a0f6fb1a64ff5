// SPDX-License-Identifier: Apache-2.0
// The channels of a VF by themselves: an owner that writes down what it hears, and what vgpud is told.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/signal_socket.h"
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {

struct FakeOwner : ChannelOwner {
  using Heard = std::vector<std::pair<uint32_t, uint32_t>>;
  void ChannelState(uint32_t channel, uint32_t state) override { states.emplace_back(channel, state); }
  void BufferGone(uint32_t channel, uint32_t buffer) override { gone.emplace_back(channel, buffer); }
  Heard states;
  Heard gone;
};

class ChannelRig : public VfRig {
 protected:
  ChannelRig() {
    table = std::make_unique<ChannelTable>(loop, ledgers,
                                           ChannelTable::Config{.vf_name = std::string(70, 'n'),
                                                                .slots = &slices.slot_page(),
                                                                .guard = guard,
                                                                .to_vgpud =
                                                                    [this](const vf_link::Executor& message) {
                                                                      if (!vgpud_there) return false;
                                                                      to_vgpud.push_back(message);
                                                                      return true;
                                                                    },
                                                                .usage_changed = [this] { ++usage_changes; },
                                                                .idle = [this] { ++idle; }});
    file = std::make_shared<const UniqueFd>(*MakeSealedMemfd("memory", 1 << 20));
  }
  // `pieces` of a page each, at guest addresses from `at` on; no guest sees them when that is 0.
  Area Pieces(size_t pieces, uint64_t at = 0) const {
    Area area;
    area.bytes = pieces * 4096;
    area.pieces.assign(pieces, {file, 0, 4096, true, {}});
    for (size_t i = 0; at != 0 && i < pieces; ++i) area.pieces[i].guest = {Iova{at + i * 4096}, 4096};
    return area;
  }
  ChannelRequest Request(Area area, uint32_t pid = 7) {
    SignalSocket kick = *MakeSignalSocket(), call = *MakeSignalSocket();
    ChannelRequest request;
    request.owner = &owner;
    request.guard = &guard;
    request.area = std::move(area);
    request.client_pid = pid;
    request.kick = std::make_shared<const UniqueFd>(std::move(kick.rings));
    request.kick_ends = std::make_shared<const UniqueFd>(std::move(kick.listens));
    request.call = std::make_shared<const UniqueFd>(std::move(call.rings));
    called.push_back(std::move(call.listens));
    return request;
  }
  std::errc Open(uint32_t channel, Area area = {}) { return CodeOf(table->Open(channel, Request(std::move(area)))); }
  static std::errc CodeOf(const Result<void>& result) { return result ? std::errc{} : result.error().code; }
  // What vgpud sends when it was asked for an executor last.
  std::unique_ptr<FakeExecutor> SendExecutor() {
    vf_link::Executor message = to_vgpud.back();
    message.kind = vf_link::Kind::kExecutor;
    return SendExecutor(message);
  }
  std::unique_ptr<FakeExecutor> SendExecutor(const vf_link::Executor& message) {
    auto executor = std::make_unique<FakeExecutor>();
    SocketPair pair = *MakeSeqpacketPair();
    int ends[2];
    EXPECT_EQ(0, ::pipe2(ends, O_CLOEXEC));
    executor->socket = std::move(pair.a);
    executor->life = UniqueFd{ends[1]};
    table->ExecutorStarted(message, std::move(pair.b), UniqueFd{ends[0]});
    return executor;
  }
  // Has its link been closed, as an executor is told to exit?
  static bool Ended(FakeExecutor& executor) {
    executor.Drain();
    const auto message = ReceiveMessage(executor.socket.get());
    return !message && message.error().code != std::errc::resource_unavailable_try_again;
  }
  void Unmapped(FakeExecutor& executor, uint32_t area) {
    ASSERT_TRUE(SendStruct(executor.socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, area}));
    Pump();
  }

  FakeOwner owner;
  SharedFd file;
  std::vector<UniqueFd> called;  // of each channel, in the order in which they were opened
  int usage_changes = 0;
  int idle = 0;
  std::unique_ptr<ChannelTable> table;
};

}  // namespace vgpud::vfio
