// SPDX-License-Identifier: Apache-2.0
// The body of an HTTP/1.1 reply that comes in chunks, in one piece or as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud::tools {

using BodySink = std::function<Result<void>(std::string_view)>;

// Takes the body in pieces of any length. protocol_error: these are no chunks.
class ChunkReader {
 public:
  explicit ChunkReader(BodySink sink) : sink_(std::move(sink)) {}
  // Passes on what is in the chunks; the sink's errors come back. What follows the last chunk is ignored.
  [[nodiscard]] Result<void> Feed(std::string_view piece);
  // The last chunk has come.
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kLength, kData, kEnd, kDone };
  Result<void> ParseLength();
  const BodySink sink_;
  State state_ = State::kLength;
  std::string line_;   // of a length, as far as it has come
  uint64_t left_ = 0;  // of the chunk, or of the line end behind it
};

// `body` as one. protocol_error when it was cut off.
[[nodiscard]] Result<std::string> JoinChunks(std::string_view body);

}  // namespace vgpud::tools
