// SPDX-License-Identifier: Apache-2.0
// Positions in the payload area of a channel: a circular allocator over free-running byte counters.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace vgpud::cuda {

// Not thread safe. Spans start at multiples of 16, never wrap, and are given back in order by the device's
// payload_released; a span that carries an answer is held until the reader has copied it out.
class PayloadRing {
 public:
  explicit PayloadRing(uint64_t bytes) : bytes_(bytes) {}

  // Longest span (VGPU_MAX_SPAN).
  uint64_t max_span() const { return bytes_ / 2; }
  uint64_t head() const { return head_; }

  // The position of a new span of 1 .. max_span() bytes; nullopt when it must wait for the device (or for a holder).
  std::optional<uint64_t> Allocate(uint64_t span, uint64_t released) {
    const uint64_t at = Next(span);
    if (!Fits(span, released)) return std::nullopt;
    head_ = End(at, span);
    return at;
  }
  // Is there one now?
  bool Fits(uint64_t span, uint64_t released) const {
    if (!held_.empty() && *held_.begin() < released) released = *held_.begin();
    if (released > head_) released = head_;
    return End(Next(span), span) - released <= bytes_;
  }
  void Hold(uint64_t at) { held_.insert(at); }
  void Release(uint64_t at) { held_.erase(at); }

 private:
  uint64_t Next(uint64_t span) const {
    return head_ % bytes_ + span > bytes_ ? head_ + bytes_ - head_ % bytes_ : head_;
  }
  static uint64_t End(uint64_t at, uint64_t span) { return (at + span + 15) & ~uint64_t{15}; }

  const uint64_t bytes_;  // multiple of 4096
  uint64_t head_ = 0;     // next free position
  std::set<uint64_t> held_;
};

}  // namespace vgpud::cuda
