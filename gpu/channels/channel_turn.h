// SPDX-License-Identifier: Apache-2.0
// All that one executor has on the GPU, off it and on again, turn after turn (docs/cuda-channels.md, "Turns"). What
// there is the executor tells, and may lie; what was named once is held until the driver itself says that it is gone.
//
//   kOn --Off--> kOff --On--> kOn
//    |            \--On: refused--> kDoomed
//    +--Off: refused both ways--> kUnusable     it does not leave in time--> kDoomed
//    +--Off: what it calls freed is there--> kLied           the GPU is lost--> kLost
//
// Only kOn and kOff are left again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/channels/channel_board.h"
#include "gpu/channels/channel_switch.h"

namespace vgpud::rm {

// One thread. Each call may take as long as the driver does.
class ChannelTurn {
 public:
  enum class State : uint32_t {
    kOn,
    kOff,
    kUnusable,  // the driver does not do it with this executor: it is waited for, and killed in the end
    kDoomed,    // it can't be stopped, or not let on again: the same
    kLied,      // to be killed at once
    kLost,      // the GPU is lost: no more controls
  };
  using Read = std::function<std::optional<BoardReading>()>;

  // `files`: those that were handed over. `resumed`: somebody before may have switched it off; it counts as off then.
  ChannelTurn(std::vector<std::unique_ptr<RmFile>> files, uint32_t driver_major, Read read, bool resumed = false);

  State Off();
  State On();
  // While it is off: has it made more? That is held too. What there is then.
  State Look();
  State state() const { return state_; }
  // What was said last, when it was not "ok", in words.
  const std::string& words() const { return words_; }
  // Channels and groups that came while it was off and were held.
  uint64_t newcomers() const { return newcomers_; }

 private:
  using Key = std::pair<int, uint32_t>;  // file, client
  // What the executor says now, or said last if it can't be read.
  const BoardReading* Reading();
  ChannelSwitch* SwitchOf(const ClientChannels& client);
  State OffClient(const ClientChannels& client, bool* held);
  // Without what the driver does not know (any more); what it knows is off.
  ClientChannels StillThere(ChannelSwitch& turns, const ClientChannels& client) const;
  // Is something still there that was named before, and is not now?
  bool NamesTooFew(ChannelSwitch& turns, const ClientChannels& client);
  State Refused(const Outcome& outcome, State otherwise);

  const std::vector<std::unique_ptr<RmFile>> files_;
  const uint32_t driver_major_;
  const Read read_;
  State state_;
  std::optional<BoardReading> last_;
  std::map<Key, ChannelSwitch> switches_;
  std::map<Key, ClientChannels> named_;  // when it was last switched off
  uint32_t seen_ = 0;                    // sequence of the board
  uint64_t newcomers_ = 0;
  std::string words_;
};

}  // namespace vgpud::rm
