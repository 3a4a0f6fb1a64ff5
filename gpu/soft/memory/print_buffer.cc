// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/print_buffer.h"

#include <algorithm>
#include <cstring>

namespace vgpud::soft {
namespace {
// What keeping a text costs beside it.
constexpr size_t kPerText = 48;
}  // namespace

void PrintBuffer::DropOldest() {
  const auto too_much = [this]() REQUIRES(mutex_) {
    return bytes_ + overhead_ > capacity_ || (host_ != nullptr && !host_->Tolerates(0));
  };
  while (!texts_.empty() && too_much()) {
    bytes_ -= texts_.front().text.size();
    overhead_ -= kPerText;
    texts_.pop_front();
  }
}

size_t PrintBuffer::capacity() const {
  MutexLock lock(mutex_);
  return capacity_;
}

size_t PrintBuffer::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

void PrintBuffer::SetCapacity(uint64_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = static_cast<size_t>(std::min<uint64_t>(bytes, kMostCapacity));
  DropOldest();
}

void PrintBuffer::Append(bool to_stderr, std::string text) {
  if (text.empty()) return;
  MutexLock lock(mutex_);
  bytes_ += text.size();
  overhead_ += kPerText;
  texts_.push_back({to_stderr, std::move(text)});
  DropOldest();
}

size_t PrintBuffer::Take(std::span<std::byte> out, bool* to_stderr) {
  MutexLock lock(mutex_);
  if (texts_.empty()) return 0;
  *to_stderr = texts_.front().to_stderr;
  size_t done = 0;
  while (!texts_.empty() && texts_.front().to_stderr == *to_stderr && done < out.size()) {
    std::string& text = texts_.front().text;
    const size_t part = std::min(text.size(), out.size() - done);
    std::memcpy(out.data() + done, text.data(), part);
    done += part;
    bytes_ -= part;
    if (part < text.size()) {
      text.erase(0, part);
      return done;
    }
    overhead_ -= kPerText;
    texts_.pop_front();
  }
  return done;
}

}  // namespace vgpud::soft
