// SPDX-License-Identifier: Apache-2.0
// The channel area: the only place that reads or writes memory which the guest shares with us (layout: vgpu_abi.h).
// Every word is loaded once, with an atomic load; what it means is checked by the caller on the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {

class ChannelMemory {
 public:
  // Checks the constants of the header. Errors: an area that is too small, wrong magic, another ABI version.
  [[nodiscard]] static Result<ChannelMemory> Open(std::span<std::byte> area);

  uint32_t SqTail() const { return Word(&Header()->sq_tail).load(std::memory_order_seq_cst); }
  vgpu_sqe ReadSqe(uint32_t index) const;
  void SetSqHead(uint32_t head) { Word(&Header()->sq_head).store(head, std::memory_order_release); }
  // 1: we are about to sleep. seq_cst, so that either we see the guest's new tail or it sees this.
  void SetSqNeedWakeup(uint32_t value) { Word(&Header()->sq_need_wakeup).store(value, std::memory_order_seq_cst); }

  uint32_t CqHead() const { return Word(&Header()->cq_head).load(std::memory_order_acquire); }
  void WriteCqe(uint32_t index, const vgpu_cqe& entry);
  void SetCqTail(uint32_t tail) { Word(&Header()->cq_tail).store(tail, std::memory_order_seq_cst); }
  // True once per sleep of the guest: it wants the interrupt.
  bool TakeCqWakeup();

  void SetState(uint32_t state) { Word(&Header()->state).store(state, std::memory_order_seq_cst); }
  void SetPayloadReleased(uint64_t position);
  void SetStickyError(uint32_t status) { Word(&Header()->sticky_error).store(status, std::memory_order_seq_cst); }
  void SetPrinted(uint32_t bytes) { Word(&Header()->printed).store(bytes, std::memory_order_release); }
  void SetErrorText(std::string_view text);
  // How far the guest has opened that gate, of those that HasGate.
  static bool HasGate(uint64_t gate) { return gate < VGPU_SLOT_GATE(VGPU_EVENT_SLOTS); }
  uint64_t Gate(uint32_t gate) const;
  void SetEvent(uint32_t slot, uint64_t generation, uint64_t timestamp_ns);

  uint64_t payload_bytes() const { return payload_bytes_; }
  // Bytes of a span that PayloadWindow accepted.
  std::span<std::byte> Payload(uint64_t position, uint32_t length) const;

 private:
  ChannelMemory(std::span<std::byte> area, uint64_t payload_bytes) : area_(area), payload_bytes_(payload_bytes) {}
  std::byte* SlotAt(uint32_t slot) const;
  vgpu_channel_header* Header() const { return reinterpret_cast<vgpu_channel_header*>(area_.data()); }
  static std::atomic_ref<uint32_t> Word(uint32_t* word) { return std::atomic_ref<uint32_t>(*word); }

  std::span<std::byte> area_;
  uint64_t payload_bytes_;
};

}  // namespace vgpud::exec
