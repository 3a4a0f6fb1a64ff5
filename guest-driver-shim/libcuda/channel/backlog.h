// SPDX-License-Identifier: Apache-2.0
// How much of each stream's work the host has, as far as this library knows. A host takes so many operations of a
// channel, and then nothing at all until one of them ends; so a stream that waits for something must not be given all
// of that room. Its share shrinks while others have much, and there is always room for calls.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"

namespace vgpud::cuda {

// Any thread.
class Backlog {
 public:
  // Of the 4096 operations and 16 MiB of their own that an executor keeps for a channel, in units.
  static constexpr uint64_t kMost = 3840;  // for posts to all streams together; the rest is for calls
  // A stream has at most kTimesFree times what is free of kShared: alone 3072, the second that waits 341, ... When that
  // is gone it has one part of kParts of what is free in all, and one operation as long as there is room at all.
  static constexpr uint64_t kShared = 3456;
  static constexpr uint64_t kTimesFree = 8;
  static constexpr uint64_t kParts = 16;
  // So much of a stream is submitted before one asks for its completion.
  static constexpr uint64_t kGrain = 128;

  // What an operation takes: 0 if it does not wait in a stream.
  static uint64_t Units(uint32_t op, uint64_t payload_bytes);

  // An operation, and how far its stream has come when it ends.
  struct Place {
    uint32_t stream = 0;
    uint64_t position = 0;  // 0: it is in no stream
    uint64_t seqno = 0;
    uint32_t op = 0;
  };

  // May the stream be given so much more now?
  bool HasRoom(uint32_t stream, uint64_t units) const;
  // It is given to the host, by one thread at a time and in the order of the numbers. `tells`: its completion is asked
  // for. Returns `place` with its position; where there is no memory it has none, and is not counted.
  Place Add(Place place, uint64_t units, bool tells) noexcept;
  // Should the next operation of the stream ask for its completion?
  bool IsDue(uint32_t stream) const;
  // Streams whose end no completion on its way will tell: that one first if it is such a stream, and some of the
  // others; all that are held.
  std::vector<uint32_t> Silent(uint32_t stream) const;
  std::vector<uint32_t> SilentHeld() const;
  bool IsSilent(uint32_t stream) const;

  // The completion of a place has come. `failed`: perhaps it was refused, and what is before it goes on.
  void Done(const Place& place, bool failed);

  // Does any stream have an operation that waits for something else than work before it?
  bool AnyHeld() const;

 private:
  struct Stream {
    uint64_t submitted = 0;   // units
    uint64_t done = 0;        // of them
    uint64_t told = 0;        // will be known to be done when the completions that were asked for have come
    uint64_t held = 0;        // up to the latest operation that waits
    uint64_t last_seqno = 0;  // submitted latest
    uint64_t outstanding() const { return submitted - done; }
    bool is_held() const { return held > done; }
    bool is_silent() const { return submitted > told && told <= done && submitted > done; }
  };
  using Streams = std::unordered_map<uint32_t, Stream>;
  const Stream* Find(uint32_t stream) const REQUIRES(mutex_);
  void Reach(Stream& stream, uint64_t position) REQUIRES(mutex_);

  mutable Mutex mutex_{lock_rank::kBacklog};
  Streams streams_ GUARDED_BY(mutex_);  // of those that have some, and a few more
  uint64_t total_ GUARDED_BY(mutex_) = 0;
  uint64_t held_streams_ GUARDED_BY(mutex_) = 0;
};

}  // namespace vgpud::cuda
