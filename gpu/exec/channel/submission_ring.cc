// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/submission_ring.h"

namespace vgpud::exec {
namespace {

// Room that the guest is not told of at once: each telling takes a line from the processor that produces.
constexpr uint32_t kTellEntries = VGPU_SQ_ENTRIES / 16;
constexpr uint64_t kTellBytes = 16 << 10;

}  // namespace

void SubmissionRing::Take(bool unseen) {
  if (++head_ - told_head_ >= kTellEntries) TellRoom();
  if (unseen) seen_tail_ = head_;
}

bool SubmissionRing::TakePayload(RingEntry& entry) {
  const vgpu_sqe& sqe = entry.sqe;
  if (sqe.payload_len == 0) return true;
  if (!payload_.Accepts(sqe.payload_pos, sqe.payload_len)) return false;
  entry.span_id = payload_.Take(sqe.payload_pos, sqe.payload_len);
  entry.span = memory_.Payload(sqe.payload_pos, sqe.payload_len);
  return true;
}

void SubmissionRing::Release(uint64_t span_id) {
  if (span_id == 0) return;
  payload_.Free(span_id);
  if (payload_.released() - told_released_ >= kTellBytes) TellRoom();
}

void SubmissionRing::TellRoom() {
  if (closed_) return;
  if (told_head_ != head_) memory_.SetSqHead(told_head_ = head_);
  if (told_released_ != payload_.released()) memory_.SetPayloadReleased(told_released_ = payload_.released());
}

}  // namespace vgpud::exec
