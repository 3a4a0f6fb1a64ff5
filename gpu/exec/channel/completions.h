// SPDX-License-Identifier: Apache-2.0
// The completion ring. Completions wait here, in order, while the guest leaves its ring full.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "gpu/exec/memory/channel_memory.h"

namespace vgpud::exec {

using CompletionValues = std::array<uint64_t, 6>;

class Completions {
 public:
  // `interrupt` raises the guest's interrupt (rings its call).
  Completions(ChannelMemory& memory, std::function<void()> interrupt)
      : memory_(memory), interrupt_(std::move(interrupt)) {}

  void Push(uint64_t seqno, uint32_t status, const CompletionValues& values);
  // Moves waiting completions into the ring as far as the guest has made room.
  void Flush();
  // Interrupts the guest if one of its threads sleeps. After every change that such a thread may wait for.
  void WakeGuest() {
    if (!memory_.TakeCqWakeup()) return;
    interrupt_();
    interrupted_ = true;
  }
  // Has the guest been interrupted since the last question?
  bool TakeInterrupted() { return std::exchange(interrupted_, false); }
  size_t waiting() const { return waiting_.size(); }

 private:
  ChannelMemory& memory_;
  std::function<void()> interrupt_;
  std::deque<vgpu_cqe> waiting_;
  uint32_t tail_ = 0;
  bool interrupted_ = false;
};

}  // namespace vgpud::exec
