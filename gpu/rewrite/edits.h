// SPDX-License-Identifier: Apache-2.0
// Changes to a text, named by offsets into the original.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vgpud::rewrite {

class Edits {
 public:
  explicit Edits(std::string_view original) : original_(original) {}
  // Puts `text` before the byte at `offset`; of several at one place the first comes first.
  void Insert(size_t offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  // Puts `text` where `part`, a piece of the original, stands. Parts must not overlap.
  void Replace(std::string_view part, std::string text) {
    edits_.push_back({OffsetOf(part), part.size(), std::move(text)});
  }
  // Where `part` begins in the original, of which it must be a piece.
  size_t OffsetOf(std::string_view part) const { return static_cast<size_t>(part.data() - original_.data()); }
  std::string Apply() &&;

 private:
  struct Edit {
    size_t offset;
    size_t removed;
    std::string text;
  };
  std::string_view original_;
  std::vector<Edit> edits_;
};

}  // namespace vgpud::rewrite
