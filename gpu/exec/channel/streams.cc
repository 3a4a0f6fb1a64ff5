// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/streams.h"

#include <algorithm>

#include "base/check.h"

namespace vgpud::exec {

Streams::Streams() : legacy_(std::make_shared<Stream>()) {
  legacy_->legacy = true;
  by_id_[VGPU_STREAM_LEGACY] = legacy_;
  by_id_[VGPU_STREAM_PER_THREAD] = std::make_shared<Stream>();
}

Stream* Streams::Find(uint32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second.get();
}

bool Streams::Create(uint32_t id, bool blocking) {
  if (id < VGPU_STREAM_FIRST || by_id_.size() >= kMaxStreams) return false;
  auto stream = std::make_shared<Stream>();
  stream->blocking = blocking;
  return by_id_.try_emplace(id, std::move(stream)).second;
}

bool Streams::Destroy(uint32_t id) { return id >= VGPU_STREAM_FIRST && by_id_.erase(id) != 0; }

void Streams::Push(Stream& stream, std::unique_ptr<Op> op) {
  const bool gate = op->kind == VGPU_OP_GATE_WAIT, value = op->kind == VGPU_OP_WAIT_VALUE;
  const bool first = stream.queue.empty();
  if (first) active_.push_back(stream.shared_from_this());
  try {
    stream.queue.push_back(std::move(op));
  } catch (...) {
    if (first) active_.pop_back();
    throw;
  }
  ++queued_;
  if (gate) ++gates_queued_;
  if (value) ++values_queued_;
}

bool Streams::MayGo(const Stream& stream, const Op& op) const {
  const auto done_before = [&](const Stream& other) {
    return other.queue.empty() || other.queue.front()->seqno > op.seqno;
  };
  if (stream.legacy) {
    return std::all_of(active_.begin(), active_.end(),
                       [&](const StreamPtr& s) { return s->legacy || !s->blocking || done_before(*s); });
  }
  return !stream.blocking || done_before(*legacy_);
}

Op* Streams::NextForGpu() {
  for (size_t i = 0; i < active_.size(); ++i) {
    const size_t at = (next_ + i) % active_.size();
    Op* head = active_[at]->queue.front().get();
    if (!NeedsGpu(*head) || !HasMemory(*head) || !MayGo(*active_[at])) continue;
    next_ = at + 1;
    return head;
  }
  return nullptr;
}

bool Streams::HasWorkForGpu() const {
  return std::any_of(active_.begin(), active_.end(), [&](const StreamPtr& s) {
    const Op& head = *s->queue.front();
    return NeedsGpu(head) && HasMemory(head) && MayGo(*s);
  });
}

Op* Streams::NextReached(const std::function<bool(const Op&)>& open) const {
  for (const StreamPtr& stream : active_) {
    Op* head = stream->queue.front().get();
    if (NeedsGpu(*head) || !MayGo(*stream)) continue;
    if (head->kind == VGPU_OP_EVENT_WAIT && !events_.Completed(head->args[0], head->args[1])) continue;
    if ((head->kind == VGPU_OP_GATE_WAIT || head->kind == VGPU_OP_WAIT_VALUE) && !open(*head)) continue;
    return head;
  }
  return nullptr;
}

void Streams::FindBehind(const Op& op, std::vector<Op*>& behind) const {
  behind.clear();
  if (op.kind != VGPU_OP_LAUNCH) return;
  const auto stream =
      std::find_if(active_.begin(), active_.end(), [&](const StreamPtr& s) { return s->queue.front().get() == &op; });
  if (stream == active_.end()) return;
  const auto& queue = (*stream)->queue;
  for (size_t at = 1; at < queue.size() && behind.size() < kMostBehind; ++at) {
    if (queue[at]->kind != VGPU_OP_LAUNCH || !MayGo(**stream, *queue[at])) return;
    behind.push_back(queue[at].get());
  }
}

std::unique_ptr<Op> Streams::PopHead(const Op& op) {
  const auto it =
      std::find_if(active_.begin(), active_.end(), [&](const StreamPtr& s) { return s->queue.front().get() == &op; });
  CHECK(it != active_.end());
  std::unique_ptr<Op> head = std::move((*it)->queue.front());
  (*it)->queue.pop_front();
  if ((*it)->queue.empty()) active_.erase(it);
  --queued_;
  if (head->kind == VGPU_OP_GATE_WAIT) --gates_queued_;
  if (head->kind == VGPU_OP_WAIT_VALUE) --values_queued_;
  return head;
}

std::vector<std::unique_ptr<Op>> Streams::TakeAll() {
  std::vector<std::unique_ptr<Op>> all;
  for (const StreamPtr& stream : active_) {
    for (auto& op : stream->queue) all.push_back(std::move(op));
    stream->queue.clear();
  }
  active_.clear();
  queued_ = gates_queued_ = values_queued_ = 0;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->seqno < b->seqno; });
  return all;
}

uint64_t Streams::OldestSeqno() const {
  uint64_t oldest = UINT64_MAX;
  for (const StreamPtr& stream : active_) oldest = std::min(oldest, stream->queue.front()->seqno);
  return oldest;
}

}  // namespace vgpud::exec
