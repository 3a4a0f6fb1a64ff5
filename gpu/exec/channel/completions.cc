// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/completions.h"

namespace vgpud::exec {

void Completions::Push(uint64_t seqno, uint32_t status, const CompletionValues& values) {
  vgpu_cqe entry{};
  entry.seqno = seqno;
  entry.status = status;
  for (size_t i = 0; i < values.size(); ++i) entry.value[i] = values[i];
  waiting_.push_back(entry);
  Flush();
}

void Completions::Flush() {
  bool moved = false;
  // A head that is ahead of the tail, or more than a ring behind, counts as a full ring: only the guest suffers.
  while (!waiting_.empty() && tail_ - memory_.CqHead() < VGPU_CQ_ENTRIES) {
    memory_.WriteCqe(tail_, waiting_.front());
    waiting_.pop_front();
    memory_.SetCqTail(++tail_);
    moved = true;
  }
  if (moved) WakeGuest();
}

}  // namespace vgpud::exec
