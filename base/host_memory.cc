// SPDX-License-Identifier: Apache-2.0
#include "base/host_memory.h"

#include <algorithm>
#include <type_traits>

namespace vgpud {

namespace {

// What was granted to those who asked and they have not taken yet.
int64_t Promised(const auto& questions) {
  int64_t sum = 0;
  for (const auto& question : questions)
    if (question.state == std::remove_cvref_t<decltype(question.state)>::kGranted)
      sum += static_cast<int64_t>(question.bytes);
  return sum;
}

}  // namespace

HostMemory::HostMemory() : quota_(kUnlimited) { granted_ = static_cast<int64_t>(kUnlimited); }
HostMemory::HostMemory(uint64_t quota) : quota_(std::min(quota, kUnlimited - 1)) {}

void HostMemory::SetQuota(uint64_t quota) {
  if (limited()) quota_.store(std::min(quota, kUnlimited - 1), std::memory_order_relaxed);
  // More may be had ahead now.
  MutexLock lock(mutex_);
  ahead_refused_ = false;
}

bool HostMemory::Take(uint64_t bytes) {
  if (bytes > quota()) return false;
  const auto more = static_cast<int64_t>(bytes);
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > granted_.load(std::memory_order_relaxed) - more) return false;
  } while (!used_.compare_exchange_weak(used, used + more, std::memory_order_relaxed));
  if (!limited()) return true;
  // It may be what somebody was told to be there.
  MutexLock lock(mutex_);
  for (Question& question : questions_)
    if (question.state == State::kGranted) question.bytes -= std::min(question.bytes, bytes);
  return true;
}

bool HostMemory::Has(uint64_t bytes) const { return bytes <= quota() && Free() >= static_cast<int64_t>(bytes); }

uint64_t HostMemory::used() const {
  return static_cast<uint64_t>(std::max<int64_t>(used_.load(std::memory_order_relaxed), 0));
}

HostMemory::Answer HostMemory::Ask(Asker asker, uint64_t bytes) {
  if (bytes > quota()) return Answer::kRefused;
  MutexLock lock(mutex_);
  Question& question = questions_[static_cast<size_t>(asker)];
  if (Has(bytes)) {
    question = {State::kGranted, bytes};
    return Answer::kGranted;
  }
  // An answer to another question, or a grant that somebody else has used up meanwhile, is none.
  if (question.state == State::kRefused && question.bytes == bytes) {
    question = {};
    return Answer::kRefused;
  }
  if (question.state != State::kAsked || question.bytes != bytes) question = {State::kAsked, bytes};
  Wake();
  return Answer::kLater;
}

bool HostMemory::TakeOrWait(uint64_t bytes) {
  for (;;) {
    if (Take(bytes)) return true;
    const Answer answer = Ask(Asker::kJob, bytes);
    if (answer == Answer::kRefused) return false;
    if (answer == Answer::kGranted) continue;
    MutexLock lock(mutex_);
    const Question& question = questions_[static_cast<size_t>(Asker::kJob)];
    while (question.state == State::kAsked) answered_.Wait(mutex_);
  }
}

HostMemory::Question* HostMemory::Open() {
  for (Question& question : questions_) {
    if (question.state != State::kAsked) continue;
    if (!Has(question.bytes)) return &question;
    question.state = State::kGranted;
    answered_.NotifyAll();
  }
  return nullptr;
}

std::optional<int64_t> HostMemory::TakeRequest() {
  if (!limited()) return std::nullopt;
  MutexLock lock(mutex_);
  if (out_) return std::nullopt;
  if (!ahead_refused_) low_ = false;
  int64_t delta = 0;
  const bool any_asked =
      std::any_of(questions_.begin(), questions_.end(), [](const Question& q) { return q.state == State::kAsked; });
  out_for_ = Open();
  // Somebody has given enough back meanwhile: whoever asked does not hear of it from a reply.
  if (any_asked && out_for_ == nullptr) Wake();
  const int64_t free = Free();
  if (out_for_ != nullptr) {
    out_bytes_ = out_for_->bytes;
    // At least something: other threads take and give meanwhile.
    exact_ = std::max<int64_t>(static_cast<int64_t>(out_bytes_) - free, 1);
    // Larger steps for whoever has much already.
    const int64_t step = std::max(kChunk, used_.load(std::memory_order_relaxed) / 16);
    delta = ask_exactly_ ? exact_ : (exact_ + step - 1) / step * step;
  } else if (free < kChunk && !ahead_refused_) {
    delta = 2 * kChunk - free;
  } else if (const int64_t spare = free - Promised(questions_); spare > 4 * kChunk) {
    delta = -((spare - 2 * kChunk) / kChunk * kChunk);
    granted_ += delta;
    ahead_refused_ = false;
  }
  if (delta == 0) return std::nullopt;
  out_ = true;
  return delta;
}

void HostMemory::OnReply(int64_t delta, bool ok) {
  MutexLock lock(mutex_);
  out_ = false;
  if (delta <= 0) return;
  ask_exactly_ = false;
  if (ok) {
    granted_ += delta;
    ahead_refused_ = false;
    Open();
  } else if (out_for_ == nullptr) {
    ahead_refused_ = true;
  } else if (delta > exact_) {
    ask_exactly_ = true;
  } else if (out_for_->state == State::kAsked && out_for_->bytes == out_bytes_) {
    // Whoever asked looks first whether there is room by now. Left open while others take and give back in between, the
    // question might never be answered.
    out_for_->state = State::kRefused;
    answered_.NotifyAll();
  }
}

}  // namespace vgpud
