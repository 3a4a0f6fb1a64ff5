// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/channel.h"

namespace vgpud::exec {

void Channel::Complete(uint64_t seqno, bool want, CuStatus status, const CompletionValues& values,
                       std::string_view text) {
  if (!text.empty()) memory_.SetErrorText(text);
  if (!want) {
    if (!poisoned() && posted_error_ == CuStatus::kSuccess) posted_error_ = status;
    return;
  }
  if (status == CuStatus::kSuccess) std::swap(status, posted_error_);
  ring_.TellRoom();
  completions_.Push(seqno, static_cast<uint32_t>(status), values);
}

EntryVerdict Channel::Reply(RingEntry& entry, const CompletionValues& values) {
  ring_.ReleasePayload(entry);
  Complete(entry.sqe.seqno, entry.want(), CuStatus::kSuccess, values, {});
  return EntryVerdict::kDone;
}

EntryVerdict Channel::Reject(RingEntry& entry, CuStatus status, std::string_view text) {
  ring_.ReleasePayload(entry);
  Complete(entry.sqe.seqno, entry.want(), status, {}, text);
  return EntryVerdict::kDone;
}

void Channel::SetFault(CuStatus status, const std::string& text) {
  sticky_ = status;
  posted_error_ = CuStatus::kSuccess;
  memory_.SetErrorText(text);
  memory_.SetStickyError(static_cast<uint32_t>(status));
}

void Channel::ClearFault() {
  sticky_ = posted_error_ = CuStatus::kSuccess;
  memory_.SetErrorText({});
  memory_.SetStickyError(0);
}

}  // namespace vgpud::exec
