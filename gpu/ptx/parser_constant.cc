// SPDX-License-Identifier: Apache-2.0
// Constant expressions (PTX ISA, "Constants" and "Constant Expressions"): 64-bit integers, signed unless a U or a
// large value makes them unsigned. Floating-point constants stand alone, with a sign at most.
#include <bit>

#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {
namespace {

struct Operands {
  uint64_t a;
  uint64_t b;
  bool is_unsigned;
};

bool Less(const Operands& o) {
  return o.is_unsigned ? o.a < o.b : static_cast<int64_t>(o.a) < static_cast<int64_t>(o.b);
}
// INT64_MIN / -1 wraps; the divisor is not 0.
uint64_t Divide(const Operands& o) {
  if (o.is_unsigned) return o.a / o.b;
  return o.b == UINT64_MAX ? 0 - o.a : static_cast<uint64_t>(static_cast<int64_t>(o.a) / static_cast<int64_t>(o.b));
}
uint64_t Remainder(const Operands& o) { return o.a - Divide(o) * o.b; }
uint64_t ShiftRight(const Operands& o) {
  if (o.b > 63) return o.is_unsigned || static_cast<int64_t>(o.a) >= 0 ? 0 : UINT64_MAX;
  return o.is_unsigned ? o.a >> o.b : static_cast<uint64_t>(static_cast<int64_t>(o.a) >> o.b);
}

struct BinaryRow {
  std::string_view punct;
  int precedence;
  bool divides;
  uint64_t (*apply)(const Operands&);
};
constexpr BinaryRow kBinary[] = {
    {"*", 10, false, [](const Operands& o) { return o.a * o.b; }},
    {"/", 10, true, &Divide},
    {"%", 10, true, &Remainder},
    {"+", 9, false, [](const Operands& o) { return o.a + o.b; }},
    {"-", 9, false, [](const Operands& o) { return o.a - o.b; }},
    {">>", 8, false, &ShiftRight},
    {"<<", 8, false, [](const Operands& o) { return o.b > 63 ? 0 : o.a << o.b; }},
    {"<", 7, false, [](const Operands& o) -> uint64_t { return Less(o); }},
    {">", 7, false,
     [](const Operands& o) -> uint64_t {
       return Less({o.b, o.a, o.is_unsigned});
     }},
    {"<=", 7, false,
     [](const Operands& o) -> uint64_t {
       return !Less({o.b, o.a, o.is_unsigned});
     }},
    {">=", 7, false, [](const Operands& o) -> uint64_t { return !Less(o); }},
    {"==", 6, false, [](const Operands& o) -> uint64_t { return o.a == o.b; }},
    {"!=", 6, false, [](const Operands& o) -> uint64_t { return o.a != o.b; }},
    {"&", 5, false, [](const Operands& o) { return o.a & o.b; }},
    {"^", 4, false, [](const Operands& o) { return o.a ^ o.b; }},
    {"|", 3, false, [](const Operands& o) { return o.a | o.b; }},
    {"&&", 2, false, [](const Operands& o) -> uint64_t { return o.a != 0 && o.b != 0; }},
    {"||", 1, false, [](const Operands& o) -> uint64_t { return o.a != 0 || o.b != 0; }},
};
constexpr int kAdditive = 9;

const BinaryRow* FindBinary(const Token& token) {
  if (token.kind != Token::Kind::kPunct) return nullptr;
  for (const BinaryRow& row : kBinary)
    if (row.punct == token.text) return &row;
  return nullptr;
}

}  // namespace

bool Parser::ParseConstant(Constant* value) {
  if (!ParseBinary(1, value)) return false;
  if (!Accept("?")) return true;
  if (++nesting_ > Limits::kNesting) return Fail("expression nested too deeply");
  Constant if_true, if_false;
  if (!ParseConstant(&if_true) || !Expect(":") || !ParseConstant(&if_false)) return false;
  --nesting_;
  *value = value->bits != 0 ? if_true : if_false;
  return true;
}

bool Parser::ParseBinary(int min_precedence, Constant* value) {
  if (!ParseUnary(value)) return false;
  for (;;) {
    const BinaryRow* row = FindBinary(lexer_.Peek());
    if (row == nullptr || row->precedence < min_precedence) return true;
    const Token token = lexer_.Next();
    Constant right;
    if (!ParseBinary(row->precedence + 1, &right)) return false;
    if (value->is_float || right.is_float) return FailAt(token, "arithmetic on floating-point constants");
    if (row->divides && right.bits == 0) return FailAt(token, "division by zero");
    value->is_unsigned |= right.is_unsigned;
    value->bits = row->apply({value->bits, right.bits, value->is_unsigned});
  }
}

bool Parser::ParseUnary(Constant* value) {
  const Token token = lexer_.Peek();
  const bool is_operator = token.Is("-") || token.Is("+") || token.Is("~") || token.Is("!");
  if (!is_operator) return ParsePrimary(value);
  lexer_.Next();
  if (++nesting_ > Limits::kNesting) return Fail("expression nested too deeply");
  if (!ParseUnary(value)) return false;
  --nesting_;
  const char op = token.text[0];
  if (value->is_float) {
    if (op != '-' && op != '+') return FailAt(token, "arithmetic on floating-point constants");
    if (op == '-') value->bits ^= value->is_f32 ? 1ull << 31 : 1ull << 63;
    return true;
  }
  if (op == '-') value->bits = 0 - value->bits;
  if (op == '~') value->bits = ~value->bits;
  if (op == '!') value->bits = value->bits == 0;
  return true;
}

bool Parser::ParsePrimary(Constant* value) {
  const Token token = lexer_.Peek();
  if (token.kind == Token::Kind::kInteger || token.kind == Token::Kind::kFloat) {
    lexer_.Next();
    *value = {token.kind == Token::Kind::kFloat, token.is_f32, token.is_unsigned, token.bits};
    return true;
  }
  if (token.kind == Token::Kind::kIdentifier && token.text == "WARP_SZ") {
    lexer_.Next();
    value->bits = 32;
    return true;
  }
  if (!Accept("(")) return Fail("expected an operand");
  if (++nesting_ > Limits::kNesting) return Fail("expression nested too deeply");
  const bool to_unsigned = lexer_.Peek().IsDot("u64");
  const bool is_cast = to_unsigned || lexer_.Peek().IsDot("s64");
  if (is_cast) {
    lexer_.Next();
    if (!Expect(")") || !ParseUnary(value)) return false;
    value->is_unsigned = to_unsigned;
  } else if (!ParseConstant(value) || !Expect(")")) {
    return false;
  }
  --nesting_;
  return true;
}

// Any number of `+ constant` and `- constant`.
bool Parser::ParseOffset(int64_t* offset) {
  while (lexer_.Peek().Is("+") || lexer_.Peek().Is("-")) {
    const Token sign = lexer_.Next();
    Constant value;
    if (!ParseBinary(kAdditive + 1, &value)) return false;
    if (value.is_float) return FailAt(sign, "an offset must be an integer");
    const uint64_t sum = static_cast<uint64_t>(*offset) + (sign.Is("-") ? 0 - value.bits : value.bits);
    *offset = static_cast<int64_t>(sum);
  }
  return true;
}

}  // namespace vgpud::ptx
