// SPDX-License-Identifier: Apache-2.0
// What work of this context is on the GPU or may be: a stream of the driver for each kernel that runs, so that kernels
// of different guest streams can run together, and for those that are launched behind it; and one for copies. The
// executor keeps the order between guest streams itself (gpu/exec/channel/streams.h): it starts nothing before what it
// waits for has ended, but for what is launched behind that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/cuda/card.h"

namespace vgpud::driver {

// A place in a stream, and the event that tells when the work there is done.
struct LaneStream {
  Stream stream = nullptr;
  uint64_t ended_ns = 0;  // when the last kernel that has ended here was seen to
};
struct Lane {
  std::shared_ptr<LaneStream> on;
  Event done = nullptr;
  Stream stream() const { return on->stream; }
};

// What can be launched behind a kernel that is on the GPU.
struct Place {
  Lane lane;
  std::optional<uint32_t> expected;  // nullopt: anything; else what goes in turns, while the stop word is that
};

// What was on the GPU when it had to be left, counted over the life of a context.
struct Ends {
  uint64_t by_safepoints = 0;  // launches that left with blocks in their middle
  uint64_t by_blocks = 0;      // launches that left blocks for a later turn, and none of those
  uint64_t by_gate = 0;        // kernels that had to be waited for, because they can't be stopped
};

// The GPU thread, but for copies().
class Lanes {
 public:
  explicit Lanes(const Card& card) : card_(card) {}
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // A lane without work.
  GpuResult<Lane> Take();
  // What goes there runs when the work of `lane` is over.
  GpuResult<Lane> TakeBehind(const Lane& lane);
  // Its work is over.
  void GiveBack(Lane lane);
  // It may still have work, and nobody wants to know of it any more.
  void Abandon(Lane lane);
  // Lanes that were taken, and not given back or abandoned.
  uint32_t taken() const { return taken_; }

  Ends ends;
  // Kernels that can't be stopped: the events of those that are on the GPU, and how long they will take together as far
  // as that is known. Kept by them.
  std::vector<Event> gate_events;
  uint64_t gate_ns = 0;
  uint64_t waits = 0;  // how often all lanes were waited for

  // Where copies and fills run; nullptr with an error from the driver. Any thread that may copy.
  GpuResult<Stream> copies();

 private:
  const Card& card_;
  GpuResult<Event> TakeEvent();

  std::vector<Stream> free_streams_;
  std::vector<Event> free_events_;
  Stream copies_ = nullptr;
  uint32_t taken_ = 0;
};

}  // namespace vgpud::driver
