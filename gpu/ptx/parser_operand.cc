// SPDX-License-Identifier: Apache-2.0
// Operands (PTX ISA, "Instruction Operands").
#include <algorithm>

#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {
namespace {

bool Touches(const Token& left, const Token& right) { return left.offset + left.text.size() == right.offset; }

// The index of .x .y .z .w or .r .g .b .a; 4 for anything else.
uint32_t ComponentOf(std::string_view word) {
  constexpr std::string_view kPositions = "xyzw", kColours = "rgba";
  if (word.size() != 2) return 4;
  const size_t at = std::min(kPositions.find(word[1]), kColours.find(word[1]));
  return at == std::string_view::npos ? 4 : static_cast<uint32_t>(at);
}

}  // namespace

bool Parser::PushOperand(std::vector<Operand>* to, Operand&& operand) {
  if (!Spend(&operands_left_, 1, "operands")) return false;
  to->push_back(std::move(operand));
  return true;
}

// Of the variable or parameter that `operand` names.
uint64_t Parser::ElementBytes(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kVariable)
    return SizeOf(operand.local_variable ? function_->variables[operand.index].type
                                         : module_.variables[operand.index].type);
  return 1;
}

bool Parser::ParseImmediate(Operand* operand) {
  Constant value;
  if (!ParseConstant(&value)) return false;
  operand->kind = Operand::Kind::kImmediate;
  operand->is_float = value.is_float;
  operand->is_f32 = value.is_f32;
  operand->bits = value.bits;
  return true;
}

bool Parser::ParseSpecial(const Token& name, Operand* operand) {
  std::string_view whole = name.text;
  if (lexer_.Peek().kind == Token::Kind::kDotWord && Touches(name, lexer_.Peek()))
    whole = std::string_view(module_.text).substr(name.offset, name.text.size() + lexer_.Next().text.size());
  if (!IsSpecialRegister(whole)) return FailLine(name.line, "unknown register", whole);
  operand->kind = Operand::Kind::kSpecial;
  operand->name = whole;
  return true;
}

// r, v.x, r.b0 (byte selectors of the video instructions go to `name`), p|q
bool Parser::ParseRegister(const Token& name, Binding binding, Operand* operand) {
  const bool has_suffix = lexer_.Peek().kind == Token::Kind::kDotWord && Touches(name, lexer_.Peek());
  operand->kind = Operand::Kind::kRegister;
  operand->index = binding.index;
  if (binding.kind == Binding::Kind::kVectorRegister) {
    if (!has_suffix) {
      operand->kind = Operand::Kind::kVector;
      operand->index = kNoIndex;
      for (uint32_t i = 0; i < binding.count; ++i) {
        Operand element;
        element.kind = Operand::Kind::kRegister;
        element.index = binding.index + i;
        if (!PushOperand(&operand->elements, std::move(element))) return false;
      }
      return true;
    }
    const uint32_t component = ComponentOf(lexer_.Peek().text);
    if (component >= binding.count) return Fail("no such component");
    lexer_.Next();
    operand->index += component;
  } else if (has_suffix) {
    operand->name = lexer_.Next().text;
  }
  return true;
}

// A variable or parameter, with `+ n` or `[n]` behind it.
bool Parser::ParseSymbol(Binding binding, Operand* operand) {
  using From = Binding::Kind;
  operand->kind = binding.kind == From::kLocalVariable || binding.kind == From::kModuleVariable
                      ? Operand::Kind::kVariable
                      : Operand::Kind::kParam;
  operand->local_variable = binding.kind == From::kLocalVariable;
  operand->body_param = binding.kind == From::kBodyParam;
  operand->return_param = binding.kind == From::kReturnParam;
  operand->index = binding.index;
  if (Accept("[")) {
    Constant subscript;
    if (!ParseConstant(&subscript)) return false;
    if (subscript.is_float) return Fail("a subscript must be an integer");
    operand->offset = static_cast<int64_t>(subscript.bits * ElementBytes(*operand));
    if (!Expect("]")) return false;
  }
  return ParseOffset(&operand->offset);
}

bool Parser::ParseUnknownName(Place place, const Token& name, Operand* operand) {
  operand->name = name.text;
  switch (place) {
    case Place::kBranchTarget:
      operand->kind = Operand::Kind::kLabel;
      return true;
    case Place::kCallTarget:
      operand->kind = Operand::Kind::kFunction;
      return true;
    case Place::kPrototype:
    case Place::kBranchTable:
    case Place::kOperand:
      break;
  }
  return FailAt(name, "undeclared name");
}

bool Parser::ParseNameOperand(Place place, Operand* operand) {
  const Token name = lexer_.Next();
  const auto binding = place == Place::kBranchTarget ? std::nullopt : names_.Find(name.text);
  if (!binding) {
    if (name.text == "_") {
      operand->kind = Operand::Kind::kSink;
    } else if (name.text[0] == '%' || name.text == "WARP_SZ") {
      return ParseSpecial(name, operand);
    } else {
      return ParseUnknownName(place, name, operand);
    }
  } else {
    switch (binding->kind) {
      case Binding::Kind::kRegister:
      case Binding::Kind::kVectorRegister:
        if (!ParseRegister(name, *binding, operand)) return false;
        break;
      case Binding::Kind::kFunction:
        operand->kind = Operand::Kind::kFunction;
        operand->name = name.text;
        return true;
      case Binding::Kind::kPrototype:
        operand->kind = Operand::Kind::kProto;
        operand->name = name.text;
        return true;
      case Binding::Kind::kBranchTable:
        if (place != Place::kBranchTable) return FailAt(name, "a branch table can't stand here");
        operand->kind = Operand::Kind::kList;
        for (const std::string_view label : branch_tables_[binding->index]) {
          Operand element;
          element.kind = Operand::Kind::kLabel;
          element.name = label;
          if (!PushOperand(&operand->elements, std::move(element))) return false;
        }
        return true;
      default:
        return ParseSymbol(*binding, operand);
    }
  }
  if (!Accept("|")) return true;
  Token second;
  if (!ExpectName(&second)) return false;
  if (second.text == "_") return true;
  const auto other = names_.Find(second.text);
  if (!other || other->kind != Binding::Kind::kRegister) return FailAt(second, "expected a register behind `|`");
  operand->second = other->index;
  return true;
}

// {a, b, ...}
bool Parser::ParseVector(Operand* operand) {
  operand->kind = Operand::Kind::kVector;
  if (!Expect("{")) return false;
  do {
    Operand element;
    if (lexer_.Peek().Is("{") || lexer_.Peek().Is("[")) return Fail("vectors hold plain operands");
    if (!ParseOperand(Place::kOperand, &element) || !PushOperand(&operand->elements, std::move(element))) return false;
  } while (Accept(","));
  return Expect("}");
}

// (a, b, ...) of a call
bool Parser::ParseList(Operand* operand) {
  operand->kind = Operand::Kind::kList;
  if (!Expect("(")) return false;
  if (Accept(")")) return true;
  do {
    Operand element;
    if (lexer_.Peek().Is("[")) return Fail("addresses are no call arguments");
    if (!ParseOperand(Place::kOperand, &element) || !PushOperand(&operand->elements, std::move(element))) return false;
  } while (Accept(","));
  return Expect(")");
}

// [base + n], [n], [texture, {x, y}]
bool Parser::ParseAddress(Operand* operand) {
  if (!Expect("[")) return false;
  Operand base;
  if (lexer_.Peek().Is("[") || lexer_.Peek().Is("{")) return Fail("expected an address");
  const Token first = lexer_.Peek();
  if (!ParseOperand(Place::kOperand, &base)) return false;
  switch (base.kind) {
    case Operand::Kind::kRegister:
      operand->base = Operand::Base::kRegister;
      break;
    case Operand::Kind::kVariable:
      operand->base = Operand::Base::kVariable;
      break;
    case Operand::Kind::kParam:
      operand->base = Operand::Base::kParam;
      break;
    case Operand::Kind::kImmediate:
      if (base.is_float) return FailAt(first, "an address must be an integer");
      operand->base = Operand::Base::kImmediate;
      break;
    default:
      return FailAt(first, "no address can start like this");
  }
  operand->kind = Operand::Kind::kAddress;
  operand->local_variable = base.local_variable;
  operand->body_param = base.body_param;
  operand->return_param = base.return_param;
  operand->index = base.index;
  operand->bits = base.bits;
  operand->offset = base.offset;
  if (!ParseOffset(&operand->offset)) return false;
  while (Accept(",")) {
    Operand element;
    if (lexer_.Peek().Is("[")) return Fail("addresses can't be nested");
    if (!ParseOperand(Place::kOperand, &element) || !PushOperand(&operand->elements, std::move(element))) return false;
  }
  return Expect("]");
}

bool Parser::ParseOperand(Place place, Operand* operand) {
  const Token& token = lexer_.Peek();
  if (token.Is("[")) return ParseAddress(operand);
  if (token.Is("{")) return ParseVector(operand);
  if (token.Is("!") && lexer_.PeekSecond().kind == Token::Kind::kIdentifier) {
    lexer_.Next();
    const Token name = lexer_.Peek();
    if (!ParseNameOperand(place, operand)) return false;
    if (operand->kind != Operand::Kind::kRegister) return FailAt(name, "only a predicate can be negated");
    operand->negated = true;
    return true;
  }
  return token.kind == Token::Kind::kIdentifier ? ParseNameOperand(place, operand) : ParseImmediate(operand);
}

}  // namespace vgpud::ptx
