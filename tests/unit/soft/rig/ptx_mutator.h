// SPDX-License-Identifier: Apache-2.0
// Damages PTX texts and fatbins at random, the same way for the same seed.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpud {

// Pieces that lead the parser and the decoder down their rarer paths.
inline constexpr std::string_view kMutationDictionary[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ":",
    ",",
    "|",
    "@!",
    "@%p1 ",
    "%r1",
    "%rd1",
    "_",
    "WARP_SZ",
    "%tid.x",
    "<1000000>",
    "<4>",
    " .reg .pred q;",
    " .param .align 8 .b8 z[16];",
    " .v4 ",
    "[0x7fffffffffffffff]",
    "0f3F800000",
    "0d",
    "0x",
    "-",
    "*2/0",
    ">>64",
    "? 1 : 2",
    "(.u64)",
    "= {1, {2}}",
    "generic(",
    "0xFF(a)",
    ".align 3",
    ".align 4096 ",
    ".section .x {",
    ".loc 1 2 3\n",
    "\"",
    "/*",
    "//",
    "\n",
    "\0",
    "\xff",
    "call (r), f, (a), p;",
    "t: .branchtargets A, B;",
    "brx.idx %r1, t;",
    "L: bra L;",
    ".callprototype (.param .b32 _) _ ();",
    ".extern ",
    ".func ",
    ".entry ",
    ".global .u32 ",
    ".b64",
    ".u8",
    ".f16x2",
    ".pred",
    ".shared",
    ".local",
    ".param",
    ".volatile",
    ".sync",
    "-9223372036854775808",
    "4294967295",
    "0x700000000000",
    "0x6e0000fffffe",
};

class PtxMutator {
 public:
  explicit PtxMutator(uint32_t seed) : random_(seed) {}

  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  // Edits of single bytes and short pieces.
  std::string DamageBytes(std::string text) {
    for (size_t edits = 1 + Below(4); edits > 0; --edits) EditBytes(text);
    return text;
  }
  // Numbers in the headers of fatbins, those that lie inside of other fatbins included.
  std::string DamageHeaders(std::string image) {
    for (size_t edits = 1 + Below(3); edits > 0; --edits) EditHeader(image);
    return image;
  }
  // Parts of a program change places, come twice or are missing, and one or two are damaged.
  std::vector<std::string> DamageParts(std::vector<std::string> parts) {
    if (Below(4) == 0) std::swap(parts[Below(parts.size())], parts[Below(parts.size())]);
    if (Below(8) == 0) parts.push_back(parts[Below(parts.size())]);
    if (Below(8) == 0) parts.erase(parts.begin() + static_cast<ptrdiff_t>(Below(parts.size())));
    for (size_t edits = parts.empty() ? 0 : 1 + Below(2); edits > 0; --edits) {
      std::string& part = parts[Below(parts.size())];
      part = Below(4) == 0 ? DamageBytes(std::move(part)) : DamageWords(std::move(part));
    }
    return parts;
  }
  // Edits that leave more of the grammar alone, so that they reach the decoder and the engine: words change places,
  // statements are repeated, moved or left out.
  std::string DamageWords(std::string text) {
    for (size_t edits = 1 + Below(3); edits > 0; --edits) EditWords(text);
    return text;
  }

 private:
  void EditBytes(std::string& text) {
    const size_t at = Below(text.size());
    const size_t length = std::min(Below(1 + Below(64)), text.size() - at);
    switch (Below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random_());
        break;
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(Below(text.size()), length));
        break;
      case 4:
        text.insert(at, kMutationDictionary[Below(std::size(kMutationDictionary))]);
        break;
      default:
        text.resize(Below(8) == 0 ? at : text.size());
        break;
    }
  }

  void EditHeader(std::string& image) {
    constexpr std::string_view kMagic = "\x50\xed\x55\xba";
    constexpr size_t kHeaders = 16 + 64;  // of the fatbin and of its first entry
    constexpr uint64_t kLikely[] = {0,
                                    1,
                                    2,
                                    0x7670,
                                    7,
                                    8,
                                    15,
                                    16,
                                    64,
                                    75,
                                    80,
                                    0x2000,
                                    0x8000,
                                    0xa000,
                                    0x100000,
                                    0x7fffffff,
                                    0xffffffff,
                                    UINT64_MAX,
                                    uint64_t{1} << 63};
    std::vector<size_t> places;
    for (size_t at = image.find(kMagic); at != std::string::npos; at = image.find(kMagic, at + 1)) places.push_back(at);
    if (places.empty()) return EditBytes(image);
    const size_t at = places[Below(places.size())] + Below(kHeaders / 2) * 2;
    const uint64_t value = kLikely[Below(std::size(kLikely))] + Below(2);
    const size_t length = std::min<size_t>(size_t{2} << Below(3), at < image.size() ? image.size() - at : 0);
    if (length != 0) std::memcpy(&image[at], &value, length);
  }

  struct Piece {
    size_t begin;
    size_t length;
  };
  static bool IsWordPart(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '$';
  }
  // The word at or behind a random place; empty at the end of the text.
  Piece Word(const std::string& text) {
    size_t begin = Below(text.size());
    while (begin > 0 && IsWordPart(text[begin - 1])) --begin;
    while (begin < text.size() && !IsWordPart(text[begin])) ++begin;
    size_t end = begin;
    while (end < text.size() && IsWordPart(text[end])) ++end;
    return {begin, end - begin};
  }
  // Register, number, modifier or other name.
  static int KindOf(const std::string& text, Piece word) {
    if (word.length == 0) return 0;
    const char c = text[word.begin];
    if (c == '%' || std::isdigit(static_cast<unsigned char>(c)) != 0) return c == '%' ? 1 : 2;
    return word.begin > 0 && text[word.begin - 1] == '.' ? 3 : 4;
  }
  Piece Line(const std::string& text) {
    const size_t at = Below(text.size());
    const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const size_t end = std::min(text.find('\n', begin), text.size());
    return {begin, std::min(end + 1, text.size()) - begin};
  }
  void EditWords(std::string& text) {
    const Piece to = Word(text);
    Piece from = Word(text);
    const Piece line = Line(text);
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        for (int tries = 0; tries < 20 && KindOf(text, from) != KindOf(text, to); ++tries) from = Word(text);
        text.replace(to.begin, to.length, text.substr(from.begin, from.length));
        break;
      case 6:
        text.replace(to.begin, to.length, std::to_string(static_cast<int32_t>(random_() >> Below(32))));
        break;
      case 7:
        text.erase(line.begin, line.length);
        break;
      case 8: {
        const std::string copy = text.substr(line.begin, line.length);
        const Piece behind = Line(text);
        text.insert(behind.begin, copy);
        break;
      }
      default:
        text.replace(to.begin, to.length, kMutationDictionary[Below(std::size(kMutationDictionary))]);
        break;
    }
  }

  std::mt19937 random_;
};

}  // namespace vgpud
