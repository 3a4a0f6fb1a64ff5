// SPDX-License-Identifier: Apache-2.0
// printf of kernels: format and arguments as the compiler lays them out (CUDA C++ Programming Guide, "Formatted
// Output").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpud::soft {

// Where the format string, the arguments and the strings that they name are read. A kernel may pass any address.
class PrintSource {
 public:
  virtual ~PrintSource() = default;
  // `bytes` (4 or 8) at `offset` of the packed arguments; nullopt: not readable.
  virtual std::optional<uint64_t> Argument(uint64_t offset, uint32_t bytes) = 0;
  // The text at a generic address up to its NUL, at most `most` bytes; nullopt: not readable.
  virtual std::optional<std::string> Text(uint64_t address, size_t most) = 0;
};

// More than this of one call is not printed. Of a floating point number each digit of a precision that was given
// counts, so that what takes long to work out ends as what is long.
inline constexpr size_t kMostPrinted = 64 << 10;
// Longest format or string, widest field.
inline constexpr size_t kMostText = 16 << 10;
inline constexpr int kMostWidth = 4096;

struct Printed {
  std::string text;
  int32_t arguments = 0;
};
// nullopt: an argument or a string cannot be read.
std::optional<Printed> FormatPrint(const std::string& format, PrintSource& source);

}  // namespace vgpud::soft
