// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel_engine.h"

#include <fmt/core.h>

#include <new>

#include "base/check.h"
#include "base/checked.h"

namespace vgpud::exec {
namespace {

// What a channel may hold in the executor before its ring is left alone.
constexpr size_t kMaxQueued = 4096;
constexpr size_t kMaxOwnBytes = 16 << 20;
constexpr size_t kMaxSyncs = 1024;
constexpr uint64_t kSpareMemory = 8 << 20;
constexpr size_t kMaxWaitingCompletions = 1024;

constexpr uint32_t kBriefPayload = 4096;

bool IsBrief(const vgpu_sqe& sqe) {
  const OpRow* row = FindOp(sqe.op);
  return row != nullptr && !row->rules.exclusive && !row->rules.needs_drain && !row->rules.unlocks &&
         sqe.payload_len <= kBriefPayload;
}

// Room that the guest is not told of at once: each telling takes a line from the processor that produces.
constexpr uint32_t kTellEntries = VGPU_SQ_ENTRIES / 16;
constexpr uint64_t kTellBytes = 16 << 10;

bool WorksAfterFault(uint32_t op) {
  const OpRow* row = FindOp(op);
  return row != nullptr && row->rules.after_fault;
}

}  // namespace

ChannelEngine::ChannelEngine(ChannelMemory memory, uint64_t vram_quota, Callbacks callbacks)
    : memory_(memory),
      callbacks_(std::move(callbacks)),
      completions_(memory_, callbacks_.interrupt),
      payload_(memory.payload_bytes()),
      vram_(vram_quota),
      gpu_(nullptr) {
  if (callbacks_.memory == nullptr) callbacks_.memory = &unlimited_;
  MakeGpu();
  memory_.SetState(VGPU_CHANNEL_OPEN);
  completions_.WakeGuest();
}

void ChannelEngine::MakeGpu() {
  gpu_.reset();
  gpu_ = callbacks_.make_gpu();
  if (vram_part_ != 0) CHECK(gpu_->UseVramPart(vram_part_));
  gpu_->AdmitVram([this](uint64_t bytes) { return AdmitJobVram(bytes); });
}

ChannelEngine::Ring ChannelEngine::ConsumeOne(bool only_brief) {
  if (only_brief) return ConsumeBrief();
  const Ring ring = closed_ ? Ring::kEmpty : ConsumeNext();
  ring_waits_ = ring == Ring::kWaiting;
  if (ring != Ring::kMore) TellRoom();
  return ring;
}

void ChannelEngine::Took() {
  if (++head_ - told_head_ >= kTellEntries) TellRoom();
}

void ChannelEngine::TellRoom() {
  if (closed_) return;
  if (told_head_ != head_) memory_.SetSqHead(told_head_ = head_);
  if (told_released_ != payload_.released()) memory_.SetPayloadReleased(told_released_ = payload_.released());
}

bool ChannelEngine::Full() const {
  return streams_.queued() >= kMaxQueued || own_bytes_ >= kMaxOwnBytes || syncs_.size() >= kMaxSyncs ||
         completions_.waiting() >= kMaxWaitingCompletions;
}

ChannelEngine::Ring ChannelEngine::ConsumeBrief() {
  if (closed_ || waiting_ || any_short_ || sticky_ != CuStatus::kSuccess || Full()) return Ring::kEmpty;
  const uint32_t available = memory_.SqTail() - head_;
  if (available == 0 || available > VGPU_SQ_ENTRIES) return Ring::kEmpty;
  const vgpu_sqe sqe = memory_.ReadSqe(head_);
  if (!IsBrief(sqe)) return Ring::kEmpty;
  Took();
  // What comes behind it has not been looked at.
  seen_tail_ = head_;
  Accept(sqe);
  if (!waiting_) return Ring::kMore;
  if (Handle(*waiting_) != Verdict::kDone) {
    // Nobody has read the link for it.
    waiting_->link_checked = false;
    return Ring::kWaiting;
  }
  waiting_.reset();
  ReachHeads();
  return Ring::kMore;
}

ChannelEngine::Ring ChannelEngine::ConsumeNext() {
  completions_.Flush();
  if (any_short_) ServeShortOps();
  // The guest opens gates beside the ring; words change without anybody's telling.
  if (streams_.gates_queued() || streams_.values_queued()) ReachHeads();
  if (!waiting_) {
    if (Full()) return Ring::kWaiting;
    seen_tail_ = memory_.SqTail();
    const uint32_t available = seen_tail_ - head_;
    if (available == 0) return Ring::kEmpty;
    if (available > VGPU_SQ_ENTRIES) {
      Violation(CuStatus::kUnknown, fmt::format("sq_tail {} is {} entries ahead of sq_head {}, the ring has {}",
                                                seen_tail_, available, head_, VGPU_SQ_ENTRIES));
      return Ring::kEmpty;
    }
    const vgpu_sqe sqe = memory_.ReadSqe(head_);
    Took();
    Accept(sqe);
    if (!waiting_) return Ring::kMore;
  }
  switch (Handle(*waiting_)) {
    case Verdict::kWait:
      return Ring::kWaiting;
    case Verdict::kPart:
      return Ring::kPart;
    case Verdict::kLink:
      return Ring::kLink;
    case Verdict::kDone:
      break;
  }
  waiting_.reset();
  ReachHeads();
  return Ring::kMore;
}

void ChannelEngine::Accept(const vgpu_sqe& sqe) {
  Entry entry{.sqe = sqe, .span = {}};
  const uint64_t expected = next_seqno_;
  next_seqno_ = sqe.seqno + 1;
  const bool span_ok = sqe.payload_len == 0 || payload_.Accepts(sqe.payload_pos, sqe.payload_len);
  if (sqe.payload_len != 0 && span_ok) {
    entry.span_id = payload_.Take(sqe.payload_pos, sqe.payload_len);
    entry.span = memory_.Payload(sqe.payload_pos, sqe.payload_len);
  }
  if (sticky_ != CuStatus::kSuccess && !WorksAfterFault(sqe.op)) {
    Reject(entry, sticky_, {});
    return;
  }
  const auto refuse = [&](CuStatus status, std::string text) {
    Violation(status, std::move(text));
    Reject(entry, status, {});
  };
  if (sqe.seqno != expected)
    return refuse(CuStatus::kUnknown, fmt::format("submission has seqno {}, expected {}", sqe.seqno, expected));
  if (auto wrong = CheckForm(sqe)) return refuse(CuStatus::kInvalidValue, std::move(*wrong));
  if (!span_ok)
    return refuse(
        CuStatus::kUnknown,
        fmt::format("submission {}: payload_pos {} + payload_len {} is outside of the free payload ({} bytes, "
                    "released up to {}), wraps, or goes back",
                    sqe.seqno, sqe.payload_pos, sqe.payload_len, memory_.payload_bytes(), payload_.released()));
  waiting_ = entry;
}

ChannelEngine::Verdict ChannelEngine::Handle(Entry& entry) {
  const OpRow& row = *FindOp(entry.sqe.op);
  // A fault may have come up while the entry waited.
  if (sticky_ != CuStatus::kSuccess && !WorksAfterFault(entry.sqe.op) && !job_) return Reject(entry, sticky_, {});
  try {
    return HandleChecked(entry, row);
  } catch (const std::bad_alloc&) {
    return OnNoMemory(entry);
  }
}

ChannelEngine::Verdict ChannelEngine::HandleChecked(Entry& entry, const OpRow& row) {
  if (entry.span.size() < row.rules.payload_least)
    return Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("{}: payload of {} bytes, needs {}", row.name, entry.span.size(), row.rules.payload_least));
  if (row.rules.needs_drain && streams_.queued() != 0) return Verdict::kWait;
  if (row.rules.keeps && !entry.admitted)
    if (const auto verdict = AdmitEntry(entry)) return *verdict;
  // Before anybody has to make way for it.
  if (entry.sqe.op == VGPU_OP_MODULE_LOAD && !job_ && !MayLoad(entry.sqe.args[0])) return Verdict::kWait;
  if (!has_context_ && !row.rules.no_context) SetContext(true);
  if (row.rules.exclusive) callbacks_.exclusive();
  return (this->*row.handler)(entry);
}

void ChannelEngine::SetContext(bool has) {
  has_context_ = has;
  if (callbacks_.context) callbacks_.context(has);
}

void ChannelEngine::Violation(CuStatus status, std::string text) {
  if (sticky_ != CuStatus::kSuccess) return;
  callbacks_.exclusive();
  LOG_LIMITED(limiter_, kWarning, "guest broke the channel protocol: {}", text);
  Poison(status, text);
}

void ChannelEngine::Poison(CuStatus status, const std::string& text) {
  if (sticky_ != CuStatus::kSuccess) return;
  sticky_ = status;
  news_ = true;
  posted_error_ = CuStatus::kSuccess;
  memory_.SetErrorText(text);
  memory_.SetStickyError(static_cast<uint32_t>(status));
  for (auto& op : streams_.TakeAll()) FinishOp(std::move(op), status, {});
  CompleteSyncs();
  completions_.WakeGuest();
}

void ChannelEngine::ReleaseSpan(uint64_t span_id) {
  if (span_id == 0) return;
  payload_.Free(span_id);
  if (payload_.released() - told_released_ >= kTellBytes) TellRoom();
}

void ChannelEngine::Complete(uint64_t seqno, bool want, CuStatus status, const CompletionValues& values,
                             std::string_view text) {
  if (!text.empty()) memory_.SetErrorText(text);
  if (!want) {
    if (sticky_ == CuStatus::kSuccess && posted_error_ == CuStatus::kSuccess) posted_error_ = status;
    return;
  }
  if (status == CuStatus::kSuccess) std::swap(status, posted_error_);
  TellRoom();
  completions_.Push(seqno, static_cast<uint32_t>(status), values);
}

ChannelEngine::Verdict ChannelEngine::Reply(Entry& entry, const CompletionValues& values) {
  ReleaseSpan(std::exchange(entry.span_id, 0));
  Complete(entry.sqe.seqno, entry.want(), CuStatus::kSuccess, values, {});
  return Verdict::kDone;
}

ChannelEngine::Verdict ChannelEngine::Reject(Entry& entry, CuStatus status, std::string_view text) {
  ReleaseSpan(std::exchange(entry.span_id, 0));
  Complete(entry.sqe.seqno, entry.want(), status, {}, text);
  return Verdict::kDone;
}

void ChannelEngine::FinishOp(std::unique_ptr<Op> op, CuStatus status, std::string_view text) {
  news_ = true;
  own_bytes_ -= op->own.size();
  op->grid.reset();
  if (any_short_) streams_.ForEach([](Op& other) { other.awaits_end = false; });
  // The ring side gives back what it had.
  if (op->kind == VGPU_OP_LAUNCH && memory().limited() && memory().Has(kSpareMemory)) callbacks_.progress();
  ReleaseSpan(op->span_id);
  Complete(op->seqno, op->want_completion, status, {}, text);
}

bool ChannelEngine::IsOpen(const Op& op) const {
  if (op.kind == VGPU_OP_GATE_WAIT) return memory_.Gate(MustFit<uint32_t>(op.args[0])) >= op.args[1];
  const auto word = gpu_->ReadWord(GpuVa{op.args[0]}, WordBytes(op));
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

void ChannelEngine::ReachHeads() {
  bool recorded = false;
  while (Op* reached = streams_.NextReached([this](const Op& op) { return IsOpen(op); })) {
    std::unique_ptr<Op> op = streams_.PopHead(*reached);
    if (op->kind == VGPU_OP_EVENT_RECORD) {
      streams_.events().Complete(op->args[0], op->args[1]);
      memory_.SetEvent(MustFit<uint32_t>(op->args[0]), streams_.events().completed(op->args[0]), callbacks_.now_ns());
      recorded = true;
    }
    // Its memory may have gone while it was waited for.
    const bool lost = op->kind == VGPU_OP_WAIT_VALUE && !gpu_->ReadWord(GpuVa{op->args[0]}, WordBytes(*op));
    FinishOp(std::move(op), lost ? CuStatus::kInvalidValue : CuStatus::kSuccess,
             lost ? "WAIT_VALUE: the memory is not there any more" : "");
  }
  CompleteSyncs();
  if (recorded) completions_.WakeGuest();
}

void ChannelEngine::CompleteSyncs() {
  const uint64_t oldest = streams_.OldestSeqno();
  while (!syncs_.empty() && syncs_.front().seqno < oldest) {
    const Sync sync = syncs_.front();
    syncs_.pop_front();
    Complete(sync.seqno, sync.want, sticky_, {}, {});
  }
}

bool ChannelEngine::FinishStep(Op& op, StepResult result) {
  TellPrinted();
  if (std::exchange(serve_next_short_, false)) news_ = true;
  if (result.fault) {
    LOG_LIMITED(limiter_, kInfo, "guest kernel failed: error={} {}", static_cast<uint32_t>(result.status), result.text);
    Poison(result.status, result.text);
    return false;
  }
  op.holds_blocks = op.grid != nullptr && op.grid->holds_blocks();
  if (result.short_of != 0) {
    if (SetShort(op, result.short_of)) return false;
    result.done = true;
    result.status = CuStatus::kOutOfMemory;
    result.text = fmt::format(
        "LAUNCH of {}: not even one block finds the {} bytes of host memory that its local and shared memory and "
        "registers take; the VF has {} bytes",
        op.function->name, result.short_of, memory().quota());
  }
  if (!result.done) return false;
  const bool kernel = op.kind == VGPU_OP_LAUNCH && result.status == CuStatus::kSuccess;
  FinishOp(streams_.PopHead(op), result.status, result.text);
  ReachHeads();
  return kernel;
}

void ChannelEngine::SetNeedWakeup(bool sleeping) {
  TellRoom();
  if (!closed_) memory_.SetSqNeedWakeup(sleeping ? 1 : 0);
}

void ChannelEngine::FlushCompletions() {
  if (!closed_) completions_.Flush();
}

void ChannelEngine::Close() {
  closed_ = true;
  if (job_) AnswerJobVram(false);
  streams_.TakeAll();
  syncs_.clear();
  buffers_.clear();
}

}  // namespace vgpud::exec
