// SPDX-License-Identifier: Apache-2.0
// A context whose memory can be taken off the card for a while, so that VFs may be promised more than the card has
// (docs/oversubscription.md): it lies in the host's memory then, and comes back to the addresses that it had.
#pragma once

#include <cstdint>

#include "gpu/gpu.h"

namespace vgpud {

class Evictable {
 public:
  virtual ~Evictable() = default;
  // Evictable bytes that are on the card, and bytes that are evicted or not restored yet. Nothing of the context may
  // run while there are any of the latter.
  virtual uint64_t on_card() const = 0;
  virtual uint64_t off_card() const = 0;
  // Takes all of it off, as far as the host has memory for it. What the card had is overwritten before it is given
  // back. Nothing of the context runs. Bytes that have left the card.
  virtual GpuResult<uint64_t> Evict() = 0;

  enum class Back {
    kAll,      // everything is where it was
    kNoRoom,   // the card has not so much now: nothing has changed
    kStopped,  // the stop word changed: the rest follows with the next call
  };
  // `*bytes` grows by what has come back.
  virtual GpuResult<Back> BringBack(const StopWord& stop, uint64_t* bytes) = 0;
};

}  // namespace vgpud
