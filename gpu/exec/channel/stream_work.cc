// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/stream_work.h"

#include <fmt/core.h>

#include "base/checked.h"

namespace vgpud::exec {
namespace {

// What a channel may hold in the executor before its ring is left alone.
constexpr size_t kMaxQueued = 4096;
constexpr size_t kMaxOwnBytes = 16 << 20;
constexpr size_t kMaxSyncs = 1024;
// With so much free, host memory that ended kernels had is given back.
constexpr uint64_t kSpareMemory = 8 << 20;

}  // namespace

bool StreamWork::Full() const {
  return streams_.queued() >= kMaxQueued || own_bytes_ >= kMaxOwnBytes || syncs_.size() >= kMaxSyncs;
}

EntryVerdict StreamWork::Queue(RingEntry& entry, std::unique_ptr<Op> op, bool keep_span) {
  Stream* stream = streams_.Find(entry.sqe.stream);
  if (stream == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle,
                           fmt::format("{}: no stream {}", FindOp(op->kind)->name, entry.sqe.stream));
  if (keep_span) {
    op->span_id = entry.span_id;
    op->span = entry.span;
    op->area = 0;
  }
  const Op& queued = *op;
  streams_.Push(*stream, std::move(op));
  // Nothing below throws.
  if (!keep_span) channel_.ring().ReleasePayload(entry);
  own_bytes_ += queued.own.size();
  if (queued.kind == VGPU_OP_EVENT_RECORD) streams_.events().Submit(queued.args[0], queued.args[1]);
  return EntryVerdict::kDone;
}

EntryVerdict StreamWork::Queue(RingEntry& entry) { return Queue(entry, MakeOp(entry.sqe), !entry.span.empty()); }

EntryVerdict StreamWork::Sync(const RingEntry& entry) {
  syncs_.push_back({entry.sqe.seqno, entry.want()});
  return EntryVerdict::kDone;
}

void StreamWork::Finish(std::unique_ptr<Op> op, CuStatus status, std::string_view text) {
  news_ = true;
  own_bytes_ -= op->own.size();
  op->grid.reset();
  if (any_short_) streams_.ForEach([](Op& other) { other.awaits_end = false; });
  // The ring side gives back what it had.
  if (op->kind == VGPU_OP_LAUNCH && memory_.limited() && memory_.Has(kSpareMemory)) progress_();
  channel_.ring().Release(op->span_id);
  channel_.Complete(op->seqno, op->want_completion, status, {}, text);
}

bool StreamWork::IsOpen(const Op& op) const {
  if (op.kind == VGPU_OP_GATE_WAIT) return channel_.memory().Gate(MustFit<uint32_t>(op.args[0])) >= op.args[1];
  const auto word = context_.gpu().ReadWord(GpuVa{op.args[0]}, WordBytes(op));
  if (!word) return true;
  const uint64_t mask = WordBytes(op) == 4 ? UINT32_MAX : UINT64_MAX;
  const uint64_t value = op.args[1];
  switch (op.args[3]) {
    case VGPU_WAIT_GEQ:
      return ((*word - value) & (mask / 2 + 1)) == 0;
    case VGPU_WAIT_EQ:
      return *word == value;
    case VGPU_WAIT_AND:
      return (*word & value) != 0;
    default:
      return (~(*word | value) & mask) != 0;
  }
}

void StreamWork::ReachHeads() {
  bool recorded = false;
  while (Op* reached = streams_.NextReached([this](const Op& op) { return IsOpen(op); })) {
    std::unique_ptr<Op> op = streams_.PopHead(*reached);
    if (op->kind == VGPU_OP_EVENT_RECORD) {
      streams_.events().Complete(op->args[0], op->args[1]);
      channel_.memory().SetEvent(MustFit<uint32_t>(op->args[0]), streams_.events().completed(op->args[0]), now_ns_());
      recorded = true;
    }
    // Its memory may have gone while it was waited for.
    const bool lost = op->kind == VGPU_OP_WAIT_VALUE && !context_.gpu().ReadWord(GpuVa{op->args[0]}, WordBytes(*op));
    Finish(std::move(op), lost ? CuStatus::kInvalidValue : CuStatus::kSuccess,
           lost ? "WAIT_VALUE: the memory is not there any more" : "");
  }
  CompleteSyncs();
  if (recorded) channel_.completions().WakeGuest();
}

void StreamWork::CompleteSyncs() {
  const uint64_t oldest = streams_.OldestSeqno();
  while (!syncs_.empty() && syncs_.front().seqno < oldest) {
    const Waiting sync = syncs_.front();
    syncs_.pop_front();
    channel_.Complete(sync.seqno, sync.want, channel_.sticky(), {}, {});
  }
}

void StreamWork::FailAll(CuStatus status) {
  news_ = true;
  for (auto& op : streams_.TakeAll()) Finish(std::move(op), status, {});
  CompleteSyncs();
}

void StreamWork::Reset(CuStatus status) {
  for (auto& op : streams_.TakeAll()) {
    if (op->kind == VGPU_OP_EVENT_RECORD)
      channel_.memory().SetEvent(MustFit<uint32_t>(op->args[0]), op->args[1], now_ns_());
    Finish(std::move(op), status, {});
  }
  CompleteSyncs();
  streams_ = Streams();
}

void StreamWork::Forget() {
  streams_.TakeAll();
  syncs_.clear();
}

}  // namespace vgpud::exec
