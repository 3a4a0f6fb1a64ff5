// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/lexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/checked.h"

namespace vgpud::ptx {
namespace {

enum CharClass : uint8_t { kOther = 0, kSpace = 1, kLetter = 2, kDigit = 4, kSigil = 8 };

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (const char c : {' ', '\t', '\r', '\n', '\v', '\f', '\0'}) classes[static_cast<uint8_t>(c)] = kSpace;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit;
  for (const char c : {'_', '$', '%'}) classes[static_cast<uint8_t>(c)] = kSigil;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

uint8_t ClassOf(char c) { return kClasses[static_cast<uint8_t>(c)]; }
bool IsDigit(char c) { return ClassOf(c) == kDigit; }
bool IsNameStart(char c) { return (ClassOf(c) & (kLetter | kSigil)) != 0; }
// '%' starts a name only.
bool IsNamePart(char c) { return (ClassOf(c) & (kLetter | kDigit | kSigil)) != 0 && c != '%'; }

constexpr std::string_view kTwoCharPuncts[] = {"&&", "||", "==", "!=", "<=", ">=", "<<", ">>"};
constexpr std::string_view kOneCharPuncts = "{}()[]<>,;:@|+-!~*/%&^?=.";

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) { Refill(); }

void Lexer::Refill() {
  ahead_[0] = Scan();
  ahead_[1] = Scan();
}

bool Lexer::SkipBlock(Place* close) {
  at_ = ahead_[0].offset;
  line_ = ahead_[0].line;
  uint64_t depth = 0;
  for (SkipSpace(); at_ < text_.size(); SkipSpace()) {
    const char c = text_[at_];
    if (c == '"') {
      ScanString();
      continue;
    }
    depth += c == '{';
    depth -= c == '}';
    if (depth == 0) {
      *close = {at_++, line_};
      Refill();
      return true;
    }
    ++at_;
  }
  Refill();
  return false;
}

void Lexer::GoBehind(const Place& place) {
  at_ = std::min(place.offset + 1, MustFit<uint32_t>(text_.size()));
  line_ = place.line;
  Refill();
}

Token Lexer::Next() {
  const Token token = ahead_[0];
  ahead_[0] = ahead_[1];
  ahead_[1] = Scan();
  return token;
}

void Lexer::SkipSpace() {
  const uint32_t size = MustFit<uint32_t>(text_.size());
  while (at_ < size) {
    const char c = text_[at_];
    if (ClassOf(c) == kSpace) {
      line_ += c == '\n';
      ++at_;
    } else if ((c == '/' && At(1) == '/') || (c == '@' && At(1) == '@')) {  // "@@DWARF" lines say nothing to us
      while (at_ < size && text_[at_] != '\n') ++at_;
    } else if (c == '/' && At(1) == '*') {
      at_ += 2;
      while (at_ < size && !(text_[at_] == '*' && At(1) == '/')) line_ += text_[at_++] == '\n';
      at_ = at_ < size ? at_ + 2 : size;
    } else {
      return;
    }
  }
}

Token Lexer::Make(Token::Kind kind, uint32_t length) {
  Token token;
  token.kind = kind;
  token.line = line_;
  token.offset = at_;
  token.text = text_.substr(at_, length);
  at_ += MustFit<uint32_t>(token.text.size());
  return token;
}

Token Lexer::Scan() {
  SkipSpace();
  if (at_ >= text_.size()) return Make(Token::Kind::kEnd, 0);
  const char c = text_[at_];
  uint32_t length = 1;
  if (IsNameStart(c)) {
    while (IsNamePart(At(length))) ++length;
    // A lone '%' is the remainder operator.
    return c == '%' && length == 1 ? ScanPunct() : Make(Token::Kind::kIdentifier, length);
  }
  if (c == '.' && (IsNamePart(At(1)))) {
    while (IsNamePart(At(length)) || (At(length) == ':' && At(length + 1) == ':' && IsNamePart(At(length + 2))))
      length += At(length) == ':' ? 2 : 1;
    return Make(Token::Kind::kDotWord, length);
  }
  if (IsDigit(c)) return ScanNumber();
  if (c == '"') return ScanString();
  return ScanPunct();
}

Token Lexer::ScanNumber() {
  const auto exact_bits = [&](uint32_t digits, bool is_f32) {
    Token token = Make(Token::Kind::kFloat, 2 + digits);
    const char* first = token.text.data() + 2;
    const char* last = token.text.data() + token.text.size();
    token.is_f32 = is_f32;
    const auto [end, error] = std::from_chars(first, last, token.bits, 16);
    if (token.text.size() != 2 + digits || error != std::errc() || end != last || IsNamePart(At(0)))
      token.kind = Token::Kind::kBad;
    return token;
  };
  const char prefix = At(0) == '0' ? static_cast<char>(At(1) | 0x20) : '\0';
  if (prefix == 'f') return exact_bits(8, true);
  if (prefix == 'd') return exact_bits(16, false);

  int base = 10;
  uint32_t digits_at = 0;
  if (prefix == 'x' || prefix == 'b') {
    base = prefix == 'x' ? 16 : 2;
    digits_at = 2;
  } else if (At(0) == '0' && IsDigit(At(1))) {
    base = 8;
    digits_at = 1;
  }
  uint32_t length = digits_at;
  bool is_decimal_fraction = false;
  for (;; ++length) {
    const char c = At(length);
    const bool exponent_sign = base == 10 && (c == '+' || c == '-') && (At(length - 1) | 0x20) == 'e';
    if (!IsNamePart(c) && !(c == '.' && base != 16 && base != 2) && !exponent_sign) break;
    is_decimal_fraction |= base != 16 && base != 2 && (c == '.' || (c | 0x20) == 'e');
  }
  Token token = Make(is_decimal_fraction ? Token::Kind::kFloat : Token::Kind::kInteger, length);
  std::string_view digits = token.text;
  std::from_chars_result result{};
  if (is_decimal_fraction) {
    double value = 0;
    result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    token.bits = std::bit_cast<uint64_t>(value);
    if (result.ec == std::errc::result_out_of_range) result.ec = std::errc();
  } else {
    digits.remove_prefix(digits_at);
    if (digits.ends_with('U') || digits.ends_with('u')) {
      token.is_unsigned = true;
      digits.remove_suffix(1);
    }
    result = std::from_chars(digits.data(), digits.data() + digits.size(), token.bits, base);
    token.is_unsigned |= token.bits > INT64_MAX;
  }
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) token.kind = Token::Kind::kBad;
  return token;
}

Token Lexer::ScanString() {
  uint32_t length = 1;
  while (At(length) != '"' && At(length) != '\n' && length < text_.size() - at_) length += At(length) == '\\' ? 2 : 1;
  if (At(length) != '"') return Make(Token::Kind::kBad, 1);
  Token token = Make(Token::Kind::kString, length + 1);
  token.text = token.text.substr(1, length - 1);
  return token;
}

Token Lexer::ScanPunct() {
  const std::string_view rest = text_.substr(at_, 2);
  for (const std::string_view punct : kTwoCharPuncts)
    if (rest == punct) return Make(Token::Kind::kPunct, 2);
  const bool known = kOneCharPuncts.find(rest[0]) != std::string_view::npos;
  return Make(known ? Token::Kind::kPunct : Token::Kind::kBad, 1);
}

}  // namespace vgpud::ptx
