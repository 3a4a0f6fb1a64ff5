// SPDX-License-Identifier: Apache-2.0
// Host memory of the channel: who must wait for it, who fails without it.
#pragma once

#include <optional>

#include "base/host_memory.h"
#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/stream_work.h"

namespace vgpud::exec {

class HostMemoryWaits {
 public:
  // All outlive it.
  HostMemoryWaits(Channel& channel, StreamWork& work, HostMemory& memory)
      : channel_(channel), work_(work), memory_(memory) {}

  // Before an entry that leaves something behind; `image_bytes`: beside what its payload takes. nullopt: there is
  // memory for it, and it need not be asked again.
  std::optional<EntryVerdict> Admit(RingEntry& entry, uint64_t image_bytes);
  // Asks for the memory that kernels wait for, one after the other, so that a large request that is refused does not
  // take a small one with it.
  void Serve();
  // After a step of `op` that got nowhere for lack of `bytes`. False: there are none and nobody will give some back.
  bool SetShort(Op& op, uint64_t bytes);
  // A step is over: the one that got memory last has had its chance.
  void StepOver();

 private:
  Op* Next();
  bool OthersHoldMemory(const Op& op);

  Channel& channel_;
  StreamWork& work_;
  HostMemory& memory_;
  bool serve_next_ = false;  // when the one that has been served has had a step
};

}  // namespace vgpud::exec
