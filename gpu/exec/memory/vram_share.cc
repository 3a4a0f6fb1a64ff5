// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/vram_share.h"

#include <algorithm>

#include "base/checked.h"

namespace vgpud::exec {

VramShare::Answer VramShare::Reserve(uint64_t need) {
  if (need > quota_) return Answer::kRefused;
  const CheckedSize wanted = CheckedSize(used_) + need;
  if (wanted.Fits(granted_)) {
    refused_ = wish_ = false;
    return Answer::kGranted;
  }
  if (refused_) {
    refused_ = wish_ = false;
    return Answer::kRefused;
  }
  wish_ = true;
  if (!request_ && !out_) {
    exact_ = wanted.saturated() - granted_;
    request_ = MustFit<int64_t>(CheckedSize(exact_).AlignedUp(kChunk).saturated());
  }
  return Answer::kAsk;
}

void VramShare::Return(uint64_t bytes) { used_ -= std::min(bytes, used_); }

std::optional<VramShare::Info> VramShare::Query() {
  if (!fresh_) {
    if (!request_ && !out_) request_ = 0;
    return std::nullopt;
  }
  fresh_ = false;
  const uint64_t busy = vf_used_ - std::min(vf_used_, granted_ - used_);
  return Info{quota_ - std::min(quota_, busy), quota_};
}

std::optional<int64_t> VramShare::TakeRequest() {
  if (out_) return std::nullopt;
  std::optional<int64_t> delta = request_;
  request_.reset();
  if (!delta && !wish_ && granted_ - used_ >= kChunk) {
    const uint64_t spare = (granted_ - used_) / kChunk * kChunk;
    delta = -static_cast<int64_t>(spare);
    granted_ -= spare;
  }
  out_ = delta.has_value();
  return delta;
}

void VramShare::OnReply(int64_t delta, bool ok, uint64_t vf_used) {
  out_ = false;
  vf_used_ = vf_used;
  if (delta == 0) fresh_ = true;
  if (delta <= 0) return;
  if (ok) {
    granted_ += static_cast<uint64_t>(delta);
  } else if (static_cast<uint64_t>(delta) > exact_) {
    request_ = static_cast<int64_t>(exact_);
  } else {
    refused_ = true;
  }
}

}  // namespace vgpud::exec
