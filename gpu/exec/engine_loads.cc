// SPDX-License-Identifier: Apache-2.0
// Images on their way in, and modules made of them. Nothing in here needs the GPU: copies are made in parts without the
// lock, the rest is a job for another thread (LoadJob).
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {
namespace {

// Until the ring side looks at its link again.
constexpr size_t kPart = 1 << 20;

}  // namespace

ChannelEngine::Verdict ChannelEngine::DoModuleBegin(Entry& entry) {
  const auto done = modules_.Begin(entry.sqe.args[0], entry.sqe.args[1], memory());
  return done ? Reply(entry) : Reject(entry, done.error());
}

ChannelEngine::Verdict ChannelEngine::DoModuleData(Entry& entry) {
  const auto to = modules_.Place(entry.sqe.args[0], entry.sqe.args[1], entry.span.size());
  if (!to) return Reject(entry, to.error());
  const size_t at = entry.done_bytes;
  const size_t bytes = std::min(kPart, entry.span.size() - at);
  // Only this thread takes an upload or the payload away.
  const auto copy = [&] { std::memcpy(to->data() + at, entry.span.data() + at, bytes); };
  if (callbacks_.unlocked != nullptr) {
    callbacks_.unlocked(copy);
  } else {
    copy();
  }
  entry.done_bytes += bytes;
  return entry.done_bytes == entry.span.size() ? Reply(entry) : Verdict::kPart;
}

// Loads are so many bytes per second for the whole VF: who keeps count answers when it is this one's turn.
bool ChannelEngine::MayLoad(uint64_t id) {
  const auto image = modules_.Image(id);
  if (!callbacks_.asks_before_loads || !image) return true;
  if (permit_ == Permit::kNone) permit_ = Permit::kWanted;
  return permit_ == Permit::kGiven;
}

bool ChannelEngine::TakeLoadRequest() {
  if (permit_ != Permit::kWanted) return false;
  permit_ = Permit::kAsked;
  return true;
}

void ChannelEngine::OnLoadReply() {
  if (permit_ == Permit::kAsked) permit_ = Permit::kGiven;
}

void ChannelEngine::DropJob(uint64_t id) {
  if (job_->vram == Job::kYes) vram_.Return(job_->vram_bytes);
  job_.reset();
  modules_.EndUpload(id, nullptr);
}

ChannelEngine::Verdict ChannelEngine::DoModuleLoad(Entry& entry) {
  const uint64_t id = entry.sqe.args[0];
  if (!job_) {
    const auto image = modules_.Image(id);
    if (!image) return Reject(entry, image.error());
    const GpuVa managed{entry.sqe.args[1]};
    const uint64_t managed_bytes = entry.sqe.args[2];
    if (managed_bytes != 0 && (Raw(managed) % 512 != 0 || !gpu_->Contains(managed, managed_bytes)))
      return Reject(entry, CuStatus::kInvalidValue,
                    fmt::format("MODULE_LOAD: {} bytes for managed variables at {:#x} are not shared", managed_bytes,
                                Raw(managed)));
    permit_ = Permit::kNone;
    job_.emplace().image = *image;
    job_->managed = managed;
    job_->managed_bytes = managed_bytes;
    job_->area = UsersOf(managed, managed_bytes);
  }
  if (job_->vram == Job::kAsked) {
    const auto answer = vram_.Reserve(job_->vram_bytes);
    if (answer == VramShare::Answer::kGranted) vram_.Use(job_->vram_bytes);
    if (answer != VramShare::Answer::kAsk) AnswerJobVram(answer == VramShare::Answer::kGranted);
  }
  if (!job_->result) return Verdict::kWait;
  code_read_ += std::exchange(job_->code_bytes, 0);
  const auto drop = [&](const GpuError& error) {
    const Verdict verdict = Reject(entry, error);
    DropJob(id);
    return verdict;
  };
  if (sticky_ != CuStatus::kSuccess) return drop({sticky_, {}});
  if (!*job_->result) return drop(job_->result->error());
  const uint64_t need = job_->vram == Job::kYes ? 0 : (**job_->result)->vram_bytes();
  switch (vram_.Reserve(need)) {
    case VramShare::Answer::kAsk:
      return Verdict::kWait;
    case VramShare::Answer::kRefused:
      return drop({CuStatus::kOutOfMemory, fmt::format("MODULE_LOAD: globals of {} bytes exceed the VF's VRAM", need)});
    case VramShare::Answer::kGranted:
      break;
  }
  vram_.Use(need);
  std::unique_ptr<GpuModule> module = std::move(**job_->result);
  job_.reset();
  const CompletionValues counts{module->function_count(), module->global_count(), module->managed_bytes()};
  modules_.EndUpload(id, std::move(module));
  return Reply(entry, counts);
}

}  // namespace vgpud::exec
