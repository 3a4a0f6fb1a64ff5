// SPDX-License-Identifier: Apache-2.0
// Streams: FIFOs of operations and CUDA's rules for the order between them. Pure: no GPU, no clock, no threads.
//
// Within a stream: submission order. The legacy default stream and every blocking stream order each other: an
// operation of one waits for all earlier operations of the other. Streams created NON_BLOCKING are ordered by events
// only. (CUDA driver API, "Stream synchronization behavior".) Since each stream is a FIFO of rising seqnos, "all
// earlier work of X is done" is "X is empty or its head is younger".
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gpu/exec/channel/events.h"
#include "gpu/exec/channel/op.h"

namespace vgpud::exec {

struct Stream : std::enable_shared_from_this<Stream> {
  bool legacy = false;
  bool blocking = true;  // ordered against the legacy stream
  std::deque<std::unique_ptr<Op>> queue;
  uint64_t room = 0;  // that its launches may need (SpillRoom::RoomFor), as far as it was asked for
  size_t rooms = 0;   // of that size that are there for it
};

class Streams {
 public:
  Streams();

  static constexpr size_t kMaxStreams = 16384;
  bool Full() const { return by_id_.size() >= kMaxStreams; }
  // nullptr if there is no such stream.
  Stream* Find(uint32_t id) const;
  // False when `id` is taken or reserved, or there are too many.
  bool Create(uint32_t id, bool blocking);
  // The id is gone at once, queued work still runs. False when there is none, or it is a default stream.
  bool Destroy(uint32_t id);

  // Without the memory for it nothing has changed.
  void Push(Stream& stream, std::unique_ptr<Op> op);
  // The next operation that needs the GPU and may have it, taking turns between streams; nullptr if there is none.
  Op* NextForGpu();
  // Is there one?
  bool HasWorkForGpu() const;
  // Launches behind `op`, the head of its stream, that may begin when it has ended: nothing lies between.
  static constexpr size_t kMostBehind = 15;
  void FindBehind(const Op& op, std::vector<Op*>& behind) const;
  // The next operation that only has to be reached (event, sync), if one is; nullptr otherwise. `open` tells of the
  // gate that a GATE_WAIT names, and of the word of a WAIT_VALUE.
  Op* NextReached(const std::function<bool(const Op&)>& open) const;
  // Is any GATE_WAIT queued, any WAIT_VALUE?
  bool gates_queued() const { return gates_queued_ != 0; }
  bool values_queued() const { return values_queued_ != 0; }
  // Takes `op`, the head of its stream, out.
  std::unique_ptr<Op> PopHead(const Op& op);
  // Takes everything out, oldest first.
  std::vector<std::unique_ptr<Op>> TakeAll();

  template <class F>
  void ForEach(F&& f) {
    for (const StreamPtr& stream : active_)
      for (const auto& op : stream->queue) f(*op);
  }

  // All streams that have an id.
  template <class F>
  void ForEachStream(F&& f) {
    for (const auto& [id, stream] : by_id_) f(*stream);
  }

  // The heads of all streams that have work, while `f` returns false.
  template <class F>
  void FindHead(F&& f) {
    for (const StreamPtr& stream : active_)
      if (f(*stream->queue.front())) return;
  }

  // The oldest operation that is not done, UINT64_MAX when there is none.
  uint64_t OldestSeqno() const;
  size_t queued() const { return queued_; }
  EventTable& events() { return events_; }

 private:
  using StreamPtr = std::shared_ptr<Stream>;
  bool MayGo(const Stream& stream) const { return MayGo(stream, *stream.queue.front()); }
  bool MayGo(const Stream& stream, const Op& op) const;

  std::unordered_map<uint32_t, StreamPtr> by_id_;
  std::vector<StreamPtr> active_;  // with queued work; keeps destroyed streams alive until they are empty
  StreamPtr legacy_;
  size_t next_ = 0;  // where NextForGpu goes on
  size_t queued_ = 0;
  size_t gates_queued_ = 0;
  size_t values_queued_ = 0;
  EventTable events_;
};

}  // namespace vgpud::exec
