// SPDX-License-Identifier: Apache-2.0
// Which payload bytes of the guest are in use. Spans are taken in ring order and released in that order, each when its
// operation no longer needs it. Pure bookkeeping on free-running positions.
#pragma once

#include <cstdint>
#include <deque>

namespace vgpud::exec {

class PayloadWindow {
 public:
  explicit PayloadWindow(uint64_t bytes) : bytes_(bytes) {}

  // Is this span a legal next one: behind the last, inside what is free, not wrapping, at most half of the payload?
  bool Accepts(uint64_t position, uint32_t length) const {
    return length != 0 && length <= bytes_ / 2 && position >= end_ && position - released_ <= bytes_ - length &&
           position % bytes_ + length <= bytes_;
  }
  // Takes an accepted span; the id is for Free.
  uint64_t Take(uint64_t position, uint32_t length) {
    end_ = position + length;
    spans_.push_back({end_, false});
    return first_id_ + spans_.size() - 1;
  }
  // The operation is through with its span.
  void Free(uint64_t id) {
    spans_[id - first_id_].free = true;
    while (!spans_.empty() && spans_.front().free) {
      released_ = spans_.front().end;
      spans_.pop_front();
      ++first_id_;
    }
  }
  // All bytes below this position are the guest's again.
  uint64_t released() const { return released_; }

 private:
  struct Span {
    uint64_t end;
    bool free;
  };
  uint64_t bytes_;
  uint64_t end_ = 0;
  uint64_t released_ = 0;
  uint64_t first_id_ = 1;
  std::deque<Span> spans_;
};

}  // namespace vgpud::exec
