// SPDX-License-Identifier: Apache-2.0
// The guest's side of a channel: its memory, its rings, and what it learns from them.
#pragma once

#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mapping.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {

class TestGuest {
 public:
  explicit TestGuest(uint64_t payload_bytes = 0x200000);

  std::span<std::byte> area() const { return area_.bytes(); }
  int area_fd() const { return fd_.get(); }
  uint64_t area_bytes() const { return area_.size(); }
  vgpu_channel_header& header() const { return *area_.At<vgpu_channel_header>(0); }

  struct Payload {
    uint64_t position = 0;
    uint32_t length = 0;
    std::byte* at = nullptr;
  };
  // The next `length` bytes of payload, skipping to its start when they would wrap.
  Payload Take(uint32_t length);
  Payload Take(std::string_view bytes);

  // After a reset: payload goes on where the host has released it, or behind what was taken.
  void ResumePayload() { payload_end_ = std::max(payload_end_, released()); }
  // Calls `drain` when the payload is more than a quarter full.
  template <class F>
  void KeepRoom(F&& drain) {
    if (payload_end_ - released() > payload_bytes_ / 4) drain();
  }

  struct Post {
    uint32_t op = VGPU_OP_NOP;
    std::vector<uint64_t> args = {};
    uint32_t stream = 0;
    Payload payload = {};
    uint32_t flags = VGPU_SQE_WANT_COMPLETION;
  };
  vgpu_sqe Entry(const Post& post);
  // Puts an entry into the ring; returns its seqno.
  uint64_t Put(const vgpu_sqe& entry);
  uint64_t Submit(const Post& post) { return Put(Entry(post)); }
  // A launch of `function` with one address as parameter.
  uint64_t Launch(uint64_t function, uint32_t stream, uint64_t address = 0, uint32_t flags = VGPU_SQE_WANT_COMPLETION);
  bool RingFull() const;

  // Takes new completions in.
  void Read();
  // The completion of `seqno`, nullptr while there is none.
  const vgpu_cqe* Completion(uint64_t seqno);
  const std::vector<uint64_t>& order() const { return order_; }  // seqnos as they completed
  vgpu_event_slot Event(uint32_t slot) const;
  void OpenSlot(uint32_t slot, uint64_t generation);
  uint64_t released() const;
  uint32_t sticky() const;
  uint64_t next_seqno() const { return seqno_; }
  void set_next_seqno(uint64_t seqno) { seqno_ = seqno; }

 private:
  UniqueFd fd_;
  Mapping area_;
  uint64_t payload_bytes_;
  uint64_t payload_end_ = 0;
  uint64_t seqno_ = 1;
  uint32_t tail_ = 0;
  uint32_t cq_head_ = 0;
  std::map<uint64_t, vgpu_cqe> completions_;
  std::vector<uint64_t> order_;
};

}  // namespace vgpud::exec
