// SPDX-License-Identifier: Apache-2.0
// Parts of saved contexts, field by field: written down by a test and read by the code under test, or the other way.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {

// Fields one behind the other, as a file has them.
class StateFields {
 public:
  template <class T>
  StateFields& Put(T value) {
    const auto* at = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), at, at + sizeof value);
    return *this;
  }
  StateFields& U8(uint8_t value) { return Put(value); }
  StateFields& U32(uint32_t value) { return Put(value); }
  StateFields& U64(uint64_t value) { return Put(value); }
  StateFields& Text(std::string_view text) {
    U64(text.size());
    const auto* at = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), at, at + text.size());
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline StateSource SourceOf(std::span<const std::byte> bytes, size_t piece = SIZE_MAX) {
  return [bytes, piece](std::span<std::byte> out) mutable -> GpuResult<size_t> {
    const size_t part = std::min({out.size(), bytes.size(), piece});
    if (part != 0) std::memcpy(out.data(), bytes.data(), part);
    bytes = bytes.subspan(part);
    return part;
  };
}

// What `read` makes of `bytes`: the error, or kSuccess and no text.
inline GpuError ErrorOfReading(std::span<const std::byte> bytes, const std::function<void(StateReader&)>& read) {
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  read(in);
  return in.ok() ? GpuError{CuStatus::kSuccess, ""} : in.error().value();
}

// What `write` writes, without the end of the stream.
inline std::vector<std::byte> Written(const std::function<void(StateWriter&)>& write) {
  std::vector<std::byte> bytes;
  const StateSink sink = [&](std::span<const std::byte> piece) -> GpuResult<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  };
  StateWriter out(sink);
  write(out);
  if (!out.Finish()) return {};
  return {bytes.begin(), bytes.end() - 8};
}

}  // namespace vgpud::soft
