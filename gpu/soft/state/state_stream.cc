// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/state/state_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace vgpud::soft {
namespace {

constexpr size_t kSparsePage = 4096;
constexpr uint64_t kSparseEnd = UINT64_MAX;

bool AllZero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::span<const std::byte> PageAt(std::span<const std::byte> memory, size_t at) {
  return memory.subspan(at, std::min(kSparsePage, memory.size() - at));
}

}  // namespace

void StateWriter::Fail(GpuError error) {
  if (!error_) error_ = std::move(error);
}

void StateWriter::Flush() {
  checksum_.Add(buffer_);
  if (!error_) {
    if (auto sent = sink_(buffer_); !sent) Fail(std::move(sent).error());
  }
  buffer_.clear();
}

void StateWriter::PutBytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), kStatePiece - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kStatePiece) Flush();
  }
}

void StateWriter::PutText(std::string_view text) {
  Put<uint64_t>(text.size());
  PutBytes(std::as_bytes(std::span(text.data(), text.size())));
}

void StateWriter::PutSparse(std::span<const std::byte> memory) {
  for (size_t at = 0; at < memory.size() && !error_; at += kSparsePage) {
    const auto page = PageAt(memory, at);
    if (AllZero(page)) continue;
    Put<uint64_t>(at / kSparsePage);
    PutBytes(page);
  }
  Put(kSparseEnd);
}

GpuResult<void> StateWriter::Finish() {
  while (buffer_.size() % 8 != 0) Put<uint8_t>(0);
  checksum_.Add(buffer_);
  std::vector<std::byte> rest;
  rest.swap(buffer_);
  if (!rest.empty() && !error_) {
    if (auto sent = sink_(rest); !sent) Fail(std::move(sent).error());
  }
  const uint64_t sum = checksum_.value();
  Put(sum);
  if (!error_) {
    if (auto sent = sink_(buffer_); !sent) Fail(std::move(sent).error());
  }
  if (error_) return tl::unexpected(*error_);
  return {};
}

void StateReader::Fail(GpuError error) {
  if (!error_) error_ = std::move(error);
}

void StateReader::Bad(const char* what, uint64_t value) {
  if (error_) return;
  Fail({CuStatus::kInvalidImage,
        fmt::format("saved context: before byte {}: bad {} ({:#x})", before_ + at_, what, value)});
}

void StateReader::Fill() {
  checksum_.Add(std::span(buffer_).first(end_));
  before_ += end_;
  at_ = end_ = 0;
  // Full unless the source has ended: the words of the checksum begin at multiples of 8.
  while (end_ < buffer_.size()) {
    const auto came = source_(std::span(buffer_).subspan(end_));
    if (!came) return Fail(came.error());
    if (*came == 0) break;
    end_ += std::min(*came, buffer_.size() - end_);
  }
  if (end_ == 0)
    Fail({CuStatus::kInvalidImage, fmt::format("saved context: it ends after {} bytes, in the middle", before_)});
}

void StateReader::GetBytes(std::span<std::byte> out) {
  while (!out.empty() && !error_) {
    if (at_ == end_) Fill();
    const size_t part = std::min(out.size(), end_ - at_);
    std::memcpy(out.data(), buffer_.data() + at_, part);
    at_ += part;
    out = out.subspan(part);
  }
  std::fill(out.begin(), out.end(), std::byte{0});
}

std::string StateReader::GetText(uint64_t most, const char* what) {
  auto left = GetUpTo<uint64_t>(most, what);
  std::string text;
  while (left != 0 && !error_) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(left, kStatePiece));
    text.resize(text.size() + part);
    GetBytes(std::as_writable_bytes(std::span(text)).last(part));
    left -= part;
  }
  return error_ ? std::string() : text;
}

void StateReader::GetSparse(std::span<std::byte> memory, const char* what) {
  const uint64_t pages = (memory.size() + kSparsePage - 1) / kSparsePage;
  uint64_t next = 0;
  for (;;) {
    const auto page = Get<uint64_t>();
    if (error_ || page == kSparseEnd) return;
    if (page < next || page >= pages) return Bad(what, page);
    next = page + 1;
    const size_t at = static_cast<size_t>(page) * kSparsePage;
    GetBytes(memory.subspan(at, std::min(kSparsePage, memory.size() - at)));
  }
}

GpuResult<void> StateReader::Finish() {
  while (!error_ && (before_ + at_) % 8 != 0)
    if (Get<uint8_t>() != 0) Bad("filling", 1);
  if (error_) return error();
  checksum_.Add(std::span(buffer_).first(at_));
  const uint64_t sum = checksum_.value();
  const auto said = Get<uint64_t>();
  if (error_) return error();
  if (said != sum) {
    Fail({CuStatus::kInvalidImage, "saved context: the checksum is wrong, it was damaged"});
    return error();
  }
  std::byte more;
  const bool over = at_ == end_;
  if (!over) {
    Bad("end: something follows", 0);
    return error();
  }
  const auto came = source_(std::span(&more, 1));
  if (!came) Fail(came.error());
  if (came && *came != 0) Bad("end: something follows", 0);
  if (error_) return error();
  return {};
}

}  // namespace vgpud::soft
