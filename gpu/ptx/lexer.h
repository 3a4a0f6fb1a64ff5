// SPDX-License-Identifier: Apache-2.0
// PTX text to tokens (PTX ISA, "Source Format" to "Literals"). Tokens are views into the text; nothing is copied.
#pragma once

#include <cstdint>
#include <string_view>

namespace vgpud::ptx {

struct Token {
  enum class Kind : uint8_t {
    kEnd,         // of the text
    kIdentifier,  // name, %name, $name, _name; opcodes too
    kDotWord,     // ".global", ".L2::128B": the text includes the dot
    kInteger,     // bits = value; is_unsigned: written with U, or too large for a signed 64-bit value
    kFloat,       // bits = pattern; is_f32: 0fXXXXXXXX, else f64
    kString,      // text without the quotes
    kPunct,       // one or two characters: { } ( ) [ ] < > , ; : @ | + - ! ... && || == != <= >= << >>
    kBad,         // text = the offending bytes
  };
  Kind kind = Kind::kEnd;
  bool is_unsigned = false;
  bool is_f32 = false;
  uint32_t line = 1;
  uint32_t offset = 0;  // of text, from the start
  std::string_view text;
  uint64_t bits = 0;

  bool Is(std::string_view punct) const { return kind == Kind::kPunct && text == punct; }
  bool IsDot(std::string_view word) const { return kind == Kind::kDotWord && text.substr(1) == word; }
};

// Reads one token after the other. Any bytes are safe. The text must stay alive, and be shorter than 4 GiB.
class Lexer {
 public:
  explicit Lexer(std::string_view text);
  // The next token, and the one behind it.
  const Token& Peek() const { return ahead_[0]; }
  const Token& PeekSecond() const { return ahead_[1]; }
  // Takes the next token.
  Token Next();
  // Where a `}` is.
  struct Place {
    uint32_t offset;
    uint32_t line;
  };
  // Peek() is a `{`: goes behind its `}`, without reading what is between. False: it has none, and the text is over.
  bool SkipBlock(Place* close);
  // To behind a place that SkipBlock gave for the same text.
  void GoBehind(const Place& place);

 private:
  void Refill();
  Token Scan();
  void SkipSpace();
  Token ScanNumber();
  Token ScanString();
  Token ScanPunct();
  Token Make(Token::Kind kind, uint32_t length);
  char At(uint32_t ahead) const { return ahead < text_.size() - at_ ? text_[at_ + ahead] : '\0'; }

  std::string_view text_;
  uint32_t at_ = 0;
  uint32_t line_ = 1;
  Token ahead_[2];
};

}  // namespace vgpud::ptx
