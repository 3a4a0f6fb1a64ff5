// SPDX-License-Identifier: Apache-2.0
// Writing and reading the fields of a saved context (docs/saved-context.md): little-endian whatever the host is, in
// pieces of at most kStatePiece, with a checksum at the end. After the first error both go on without effect, so that
// callers look once, at the end of a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/capability/saved_context.h"
#include "gpu/soft/state/checksum.h"

namespace vgpud::soft {

class StateWriter {
 public:
  explicit StateWriter(const StateSink& sink) : sink_(sink) { buffer_.reserve(kStatePiece); }
  template <class T>
  void Put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    uint64_t rest = static_cast<uint64_t>(value);
    std::byte bytes[sizeof(T)];
    for (std::byte& b : bytes) {
      b = static_cast<std::byte>(rest & 0xff);
      rest >>= 8;
    }
    PutBytes(bytes);
  }
  void PutBytes(std::span<const std::byte> bytes);
  void PutText(std::string_view text);
  // Memory of which much may be zero: only 4 KiB pages with something in them.
  void PutSparse(std::span<const std::byte> memory);
  void Fail(GpuError error);
  // Checksum and the last piece; the error if there was one.
  [[nodiscard]] GpuResult<void> Finish();

 private:
  void Flush();
  const StateSink& sink_;
  std::vector<std::byte> buffer_;
  Checksum checksum_;
  std::optional<GpuError> error_;
};

class StateReader {
 public:
  explicit StateReader(const StateSource& source) : source_(source) { buffer_.resize(kStatePiece); }
  // 0 after an error.
  template <class T>
  T Get() {
    static_assert(std::is_integral_v<T>);
    std::byte bytes[sizeof(T)];
    GetBytes(bytes);
    uint64_t value = 0;
    for (size_t n = 0; n < sizeof(T); ++n) value |= std::to_integer<uint64_t>(bytes[n]) << (8 * n);
    return static_cast<T>(value);
  }
  // A number that is at most `most`, else 0 and an error that names it.
  template <class T>
  T GetUpTo(uint64_t most, const char* what) {
    const T value = Get<T>();
    if (static_cast<uint64_t>(value) <= most) return value;
    Bad(what, static_cast<uint64_t>(value));
    return 0;
  }
  bool GetBool(const char* what) { return GetUpTo<uint8_t>(1, what) != 0; }
  // Zeros after an error.
  void GetBytes(std::span<std::byte> out);
  // Grows with what really comes, so that a length that is a lie costs nothing.
  std::string GetText(uint64_t most, const char* what);
  // Into `memory`, which is zero.
  void GetSparse(std::span<std::byte> memory, const char* what);

  bool ok() const { return !error_; }
  // kInvalidImage: "saved context: bad <what> <value>".
  void Bad(const char* what, uint64_t value);
  void Fail(GpuError error);
  // Call after an error.
  tl::unexpected<GpuError> error() const { return tl::unexpected(*error_); }
  // Checks the checksum and that nothing follows.
  [[nodiscard]] GpuResult<void> Finish();

 private:
  void Fill();
  const StateSource& source_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t before_ = 0;  // bytes before the buffer
  Checksum checksum_;
  std::optional<GpuError> error_;
};

}  // namespace vgpud::soft
