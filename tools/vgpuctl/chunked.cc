// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/chunked.h"

#include <algorithm>
#include <charconv>

namespace vgpud::tools {
namespace {

constexpr size_t kMaxLengthLine = 256;  // with extensions, which nobody sends
constexpr std::string_view kLineEnd = "\r\n";

auto NoChunk() { return Fail(std::errc::protocol_error, "vgpud's reply was cut off"); }

}  // namespace

Result<void> ChunkReader::ParseLength() {
  const auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), left_, 16);
  if (error != std::errc{}) return NoChunk();
  line_.clear();
  state_ = left_ == 0 ? State::kDone : State::kData;
  return {};
}

Result<void> ChunkReader::Feed(std::string_view piece) {
  while (!piece.empty() && state_ != State::kDone) {
    if (state_ == State::kLength) {
      line_ += piece.front();
      piece.remove_prefix(1);
      if (line_.size() > kMaxLengthLine) return NoChunk();
      if (line_.ends_with(kLineEnd)) TRY(ParseLength());
    } else if (state_ == State::kData) {
      const size_t now = std::min<uint64_t>(left_, piece.size());
      TRY(sink_(piece.substr(0, now)));
      piece.remove_prefix(now);
      left_ -= now;
      if (left_ != 0) continue;
      state_ = State::kEnd;
      left_ = kLineEnd.size();
    } else {
      if (piece.front() != kLineEnd[kLineEnd.size() - left_]) return NoChunk();
      piece.remove_prefix(1);
      if (--left_ == 0) state_ = State::kLength;
    }
  }
  return {};
}

Result<std::string> JoinChunks(std::string_view body) {
  std::string joined;
  ChunkReader reader{[&](std::string_view piece) {
    joined += piece;
    return Result<void>{};
  }};
  TRY(reader.Feed(body));
  if (!reader.done()) return NoChunk();
  return joined;
}

}  // namespace vgpud::tools
