// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel_engine.h"

#include <fmt/core.h>

#include <new>
#include <utility>

#include "base/exec_link.h"
#include "gpu/capability/vram_growth.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kBriefPayload = 4096;

bool IsBrief(const vgpu_sqe& sqe) {
  const OpRow* row = FindOp(sqe.op);
  return row != nullptr && !row->rules.exclusive && !row->rules.needs_drain && !row->rules.unlocks &&
         sqe.payload_len <= kBriefPayload;
}

bool WorksAfterFault(uint32_t op) {
  const OpRow* row = FindOp(op);
  return row != nullptr && row->rules.after_fault;
}

// What an entry keeps beside its payload and the little that each takes.
uint64_t KeptBytes(const RingEntry& entry, const OpRules& rules) {
  const uint64_t bytes = rules.keeps_arg != 0 ? entry.sqe.args[rules.keeps_arg] : 0;
  return bytes <= Modules::kMaxImageBytes ? bytes : 0;
}

}  // namespace

ChannelEngine::ChannelEngine(ChannelMemory memory, uint64_t vram_quota, ChannelCallbacks callbacks)
    : callbacks_(std::move(callbacks)),
      memory_(callbacks_.memory != nullptr ? *callbacks_.memory : unlimited_),
      channel_(memory, callbacks_.interrupt),
      context_(callbacks_.make_gpu),
      vram_share_(vram_quota),
      buffers_(context_),
      loader_(context_, vram_share_, memory_, callbacks_.progress, callbacks_.asks_before_loads),
      modules_(channel_, context_, vram_share_, memory_, buffers_, loader_),
      work_(channel_, context_, memory_, callbacks_.progress, callbacks_.now_ns),
      vram_(channel_, context_, work_, vram_share_),
      waits_(channel_, work_, memory_),
      runtime_(channel_, context_, vram_, buffers_, memory_),
      buffer_ops_(channel_, work_, buffers_),
      memory_ops_(channel_, context_, vram_),
      texture_ops_(channel_, context_, vram_),
      queue_ops_(channel_, context_, work_, modules_, runtime_, vram_),
      device_ops_(channel_, {context_, work_, modules_, loader_, runtime_, buffers_, vram_}),
      topics_{&buffer_ops_, &device_ops_, &memory_ops_, &modules_, &queue_ops_, &runtime_, &texture_ops_} {
  channel_.memory().SetState(VGPU_CHANNEL_OPEN);
  channel_.completions().WakeGuest();
}

void ChannelEngine::SetVramQuota(uint64_t bytes) {
  vram_share_.SetQuota(bytes);
  if (!context_.exists()) return;
  if (VramGrowth* const growth = context_.can().vram_growth; growth != nullptr) growth->SetVramBytes(bytes);
}

ChannelEngine::Ring ChannelEngine::ConsumeOne(bool alone) {
  const Ring ring = closed() ? Ring::kEmpty : ConsumeNext(alone);
  ring_waits_ = ring == Ring::kWaiting;
  if (ring != Ring::kMore) TellRoom();
  return ring;
}

ChannelEngine::Ring ChannelEngine::ConsumeBrief() {
  if (closed() || waiting_ || any_short() || channel_.poisoned() || Full()) return Ring::kEmpty;
  const uint32_t available = channel_.ring().Peekable();
  if (available == 0 || available > VGPU_SQ_ENTRIES) return Ring::kEmpty;
  const vgpu_sqe sqe = channel_.ring().Peek();
  if (!IsBrief(sqe)) return Ring::kEmpty;
  // What comes behind it has not been looked at.
  channel_.ring().Take(true);
  Accept(sqe);
  if (!waiting_) return Ring::kMore;
  if (Handle(*waiting_, true) == EntryVerdict::kDone) return EndOf(EntryVerdict::kDone);
  // Nobody has read the link for it.
  waiting_->link_checked = false;
  return Ring::kWaiting;
}

ChannelEngine::Ring ChannelEngine::ConsumeNext(bool alone) {
  channel_.completions().Flush();
  if (any_short()) waits_.Serve();
  // The guest opens gates beside the ring; words change without anybody's telling.
  work_.ReachOpened();
  if (!waiting_) {
    if (Full()) return Ring::kWaiting;
    SubmissionRing& ring = channel_.ring();
    const uint32_t available = ring.Look();
    if (available == 0) return Ring::kEmpty;
    if (available > VGPU_SQ_ENTRIES) {
      if (!alone) return Ring::kAlone;
      Violation(CuStatus::kUnknown, fmt::format("sq_tail {} is {} entries ahead of sq_head {}, the ring has {}",
                                                ring.seen_tail(), available, ring.head(), VGPU_SQ_ENTRIES));
      return Ring::kEmpty;
    }
    const vgpu_sqe sqe = ring.Peek();
    ring.Take();
    Accept(sqe);
    if (!waiting_) return Ring::kMore;
  }
  return EndOf(Handle(*waiting_, alone));
}

ChannelEngine::Ring ChannelEngine::EndOf(EntryVerdict verdict) {
  switch (verdict) {
    case EntryVerdict::kWait:
      return Ring::kWaiting;
    case EntryVerdict::kPart:
      return Ring::kPart;
    case EntryVerdict::kLink:
      return Ring::kLink;
    case EntryVerdict::kAlone:
      return Ring::kAlone;
    case EntryVerdict::kCopy:
      return Ring::kCopy;
    case EntryVerdict::kDone:
      break;
  }
  waiting_.reset();
  work_.ReachHeads();
  return Ring::kMore;
}

// waiting_ is the entry then, unless it was answered at once.
void ChannelEngine::Accept(const vgpu_sqe& sqe) {
  RingEntry entry{.sqe = sqe, .span = {}};
  SubmissionRing& ring = channel_.ring();
  const uint64_t expected = ring.Expect(sqe.seqno);
  const bool span_ok = ring.TakePayload(entry);
  if (channel_.poisoned() && !WorksAfterFault(sqe.op)) {
    channel_.Reject(entry, channel_.sticky(), {});
    return;
  }
  waiting_ = entry;
  if (sqe.seqno != expected) {
    refusal_ = {CuStatus::kUnknown, fmt::format("submission has seqno {}, expected {}", sqe.seqno, expected)};
  } else if (auto wrong = CheckForm(sqe)) {
    refusal_ = {CuStatus::kInvalidValue, std::move(*wrong)};
  } else if (!span_ok) {
    refusal_ = {
        CuStatus::kUnknown,
        fmt::format("submission {}: payload_pos {} + payload_len {} is outside of the free payload ({} bytes, "
                    "released up to {}), wraps, or goes back",
                    sqe.seqno, sqe.payload_pos, sqe.payload_len, channel_.memory().payload_bytes(), ring.released())};
  }
}

EntryVerdict ChannelEngine::Handle(RingEntry& entry, bool alone) {
  entry.alone = alone;
  if (refusal_) {
    if (!alone) return EntryVerdict::kAlone;
    const GpuError refusal = *std::exchange(refusal_, std::nullopt);
    Violation(refusal.status, refusal.text);
    return channel_.Reject(entry, refusal.status, {});
  }
  const OpRow& row = *FindOp(entry.sqe.op);
  // A fault may have come up while the entry waited.
  if (channel_.poisoned() && !WorksAfterFault(entry.sqe.op) && loader_.job() == nullptr)
    return channel_.Reject(entry, channel_.sticky(), {});
  try {
    return HandleChecked(entry, row);
  } catch (const std::bad_alloc&) {
    return OnNoMemory(entry);
  }
}

EntryVerdict ChannelEngine::HandleChecked(RingEntry& entry, const OpRow& row) {
  if (entry.span.size() < row.rules.payload_least)
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("{}: payload of {} bytes, needs {}", row.name, entry.span.size(), row.rules.payload_least));
  if (row.rules.needs_drain && work_.streams().queued() != 0) return EntryVerdict::kWait;
  if (row.rules.keeps && !entry.admitted)
    if (const auto verdict = waits_.Admit(entry, KeptBytes(entry, row.rules))) return *verdict;
  if (row.ready != nullptr && !row.ready(topics_, entry)) return EntryVerdict::kWait;
  if (!row.rules.no_context) context_.SetUsed(true);
  if (row.rules.exclusive && !entry.alone) return EntryVerdict::kAlone;
  return row.handler(topics_, entry);
}

// There was no memory at all for what `entry` asks for. What it had begun is undone.
EntryVerdict ChannelEngine::OnNoMemory(RingEntry& entry) {
  // A reset that has taken the context away leaves nothing to go on with.
  if (!context_.exists()) throw;
  if (!modules_.Undo(entry)) return EntryVerdict::kWait;
  return channel_.Reject(entry, CuStatus::kOutOfMemory,
                         fmt::format("{}: the host has no memory for it", FindOp(entry.sqe.op)->name));
}

// No step is running.
void ChannelEngine::Violation(CuStatus status, const std::string& text) {
  if (channel_.poisoned()) return;
  LOG_LIMITED(limiter_, kWarning, "guest broke the channel protocol: {}", text);
  Poison(status, text);
}

void ChannelEngine::Poison(CuStatus status, const std::string& text) {
  if (channel_.poisoned()) return;
  channel_.SetFault(status, text);
  work_.FailAll(status);
  channel_.completions().WakeGuest();
}

bool ChannelEngine::FinishStep(Op& op, StepResult result) {
  runtime_.TellPrinted();
  waits_.StepOver();
  if (result.fault) {
    LOG_LIMITED(limiter_, kWarning, "{}error={} {}", kKernelFaultMark, static_cast<uint32_t>(result.status),
                result.text);
    Poison(result.status, result.text);
    return false;
  }
  op.holds_blocks = op.grid != nullptr && op.grid->holds_blocks();
  if (result.short_of != 0) {
    if (waits_.SetShort(op, result.short_of)) return false;
    result.done = true;
    result.status = CuStatus::kOutOfMemory;
    result.text = fmt::format(
        "LAUNCH of {}: not even one block finds the {} bytes of host memory that its local and shared memory and "
        "registers take; the VF has {} bytes",
        op.function->name, result.short_of, memory_.quota());
  }
  if (!result.done) return false;
  const bool kernel = op.kind == VGPU_OP_LAUNCH && result.status == CuStatus::kSuccess;
  work_.Finish(work_.streams().PopHead(op), result.status, result.text);
  work_.ReachHeads();
  return kernel;
}

void ChannelEngine::SetNeedWakeup(bool sleeping) {
  TellRoom();
  if (!closed()) channel_.memory().SetSqNeedWakeup(sleeping ? 1 : 0);
}

bool ChannelEngine::FlushCompletions() {
  if (closed()) return false;
  channel_.completions().Flush();
  return channel_.completions().waiting() != 0;
}

void ChannelEngine::Close() {
  channel_.ring().Close();
  loader_.Close();
  work_.Forget();
  buffers_.Clear();
}

}  // namespace vgpud::exec
