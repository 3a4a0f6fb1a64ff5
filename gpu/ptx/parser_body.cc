// SPDX-License-Identifier: Apache-2.0
// Function bodies: blocks, labels, declarations, instructions (PTX ISA, "Instruction Statements" and "Directives").
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {

bool Parser::OpenBlock() {
  if (blocks_.size() == Limits::kNesting) return Fail("blocks nested too deeply");
  blocks_.push_back({uses_.size(), labels_.size(), call_area_bytes_});
  names_.OpenScope();
  return true;
}

// Labels are local to their block; what it does not define may be defined further out.
bool Parser::CloseBlock(const Token& brace) {
  const Block block = blocks_.back();
  std::unordered_map<std::string_view, uint32_t> targets;
  if (block.first_label != labels_.size()) {
    for (size_t i = block.first_label; i < labels_.size(); ++i)
      if (!targets.try_emplace(labels_[i].name, labels_[i].target).second)
        return FailLine(lexer_.Peek().line, "label defined twice", labels_[i].name);
    const auto resolve = [&](const LabelUse& use) {
      const auto at = targets.find(use.name);
      if (at == targets.end()) return false;
      Operand& operand = function_->code[use.instruction].operands[use.operand];
      (use.element == kNoIndex ? operand : operand.elements[use.element]).index = at->second;
      return true;
    };
    const auto first = uses_.begin() + static_cast<std::ptrdiff_t>(block.first_use);
    uses_.erase(std::remove_if(first, uses_.end(), resolve), uses_.end());
    labels_.resize(block.first_label);
  }
  blocks_.pop_back();
  names_.CloseScope();
  call_area_bytes_ = block.call_area_bytes;
  if (blocks_.empty()) function_->places.body_close = brace.offset;
  if (!blocks_.empty() || uses_.empty()) return true;
  const LabelUse& use = uses_.front();
  return FailLine(function_->code[use.instruction].line, "undefined label", use.name);
}

bool Parser::ParseBody(Function& function) {
  function_ = &function;
  call_area_bytes_ = 0;
  uses_.clear();
  labels_.clear();
  branch_tables_.clear();
  names_.OpenScope();
  if (!BindParams(function) || !Expect("{") || !OpenBlock()) return false;
  while (!blocks_.empty())
    if (!ParseStatement()) return false;
  names_.CloseScope();
  function_ = nullptr;
  return true;
}

bool Parser::ParseStatement() {
  const Token& token = lexer_.Peek();
  if (Accept(";")) return true;
  if (Accept("{")) return OpenBlock();
  if (token.Is("}")) return CloseBlock(lexer_.Next());
  if (token.kind == Token::Kind::kDotWord) return ParseBodyDirective();
  if (token.kind == Token::Kind::kIdentifier && lexer_.PeekSecond().Is(":")) return ParseLabel();
  if (token.kind == Token::Kind::kIdentifier || token.Is("@")) return ParseInstruction();
  return Fail(token.kind == Token::Kind::kEnd ? "function without its closing `}`" : "expected an instruction");
}

bool Parser::ParseBodyDirective() {
  if (AcceptDot("reg")) return ParseRegisters();
  if (AcceptDot("param")) return ParseBodyParam();
  if (AcceptDot("local")) return ParseVariables(Space::kLocal, {}, function_);
  if (AcceptDot("shared")) return ParseVariables(Space::kShared, {}, function_);
  if (AcceptDot("loc")) return ParseLoc();
  if (AcceptDot("pragma")) return SkipToSemicolon();
  return Fail("unknown directive in a function");
}

// .reg [.v2|.v4] type name, prefix<n>, ...;
bool Parser::ParseRegisters() {
  Type type = Type::kNone;
  uint32_t lanes = 1, align = 0;
  if (!ParseTypeWords(&type, &lanes, &align, nullptr)) return false;
  do {
    Token name;
    if (!ExpectName(&name) || !DeclareRegisters(name, type, lanes)) return false;
  } while (Accept(","));
  return Expect(";");
}

bool Parser::DeclareRegisters(const Token& name, Type type, uint32_t lanes) {
  const auto first = MustFit<uint32_t>(function_->registers.size());
  const bool is_range = Accept("<");
  uint64_t count = lanes;
  if (is_range && (!ExpectInteger(Limits::kRegisters, &count) || !Expect(">"))) return false;
  if (is_range && lanes != 1) return FailAt(name, "a range of vector registers");
  if (count > Limits::kRegisters - first) return FailAt(name, "too many registers");
  if (!Spend(&registers_left_, MustFit<uint32_t>(count), "registers")) return false;

  const auto kind = lanes == 1 ? Binding::Kind::kRegister : Binding::Kind::kVectorRegister;
  const bool is_new = is_range ? names_.DeclareRange(name.text, first, MustFit<uint32_t>(count))
                               : names_.Declare(name.text, {kind, first, lanes});
  if (!is_new) return FailAt(name, "register declared twice");
  for (uint64_t i = 0; i < count; ++i) {
    Register reg{std::string(name.text), type, depth()};
    if (is_range) reg.name += std::to_string(i);
    if (lanes != 1) reg.name += {'.', "xyzwabcd"[i]};
    function_->registers.push_back(std::move(reg));
  }
  return true;
}

// .param space of calls, laid out here and nowhere else. Blocks give back what they took, so offsets are reused by the
// next call.
bool Parser::ParseBodyParam() {
  uint32_t align = 0, lanes = 1;
  Type type = Type::kNone;
  if (!ParseTypeWords(&type, &lanes, &align, nullptr)) return false;
  do {
    Token name;
    Param param;
    uint64_t count = 1;
    if (!Spend(&variables_left_, 1, "variables") || !ExpectName(&name)) return false;
    if (Accept("[") && (!ExpectInteger(Limits::kParamBytes, &count) || !Expect("]"))) return false;
    const CheckedSize bytes = CheckedSize(SizeOf(type)) * lanes * count;
    param.name = name.text;
    param.depth = depth();
    param.type = type;
    param.align = align != 0 ? align : std::max(1u, SizeOf(type) * lanes);
    const CheckedSize at = CheckedSize(call_area_bytes_).AlignedUp(param.align);
    if (!(at + bytes).Fits(Limits::kParamBytes))
      return FailAt(name, fmt::format("parameters above {} bytes", Limits::kParamBytes));
    param.offset = MustFit<uint32_t>(at);
    param.bytes = MustFit<uint32_t>(bytes);
    call_area_bytes_ = param.offset + param.bytes;
    const auto index = MustFit<uint32_t>(function_->body_params.size());
    if (!names_.Declare(name.text, {Binding::Kind::kBodyParam, index})) return FailAt(name, "name declared twice");
    function_->body_params.push_back(std::move(param));
  } while (Accept(","));
  return Expect(";");
}

bool Parser::ParseLabel() {
  const Token label = lexer_.Next();
  lexer_.Next();  // ':'
  if (AcceptDot("branchtargets")) return ParseBranchTable(label);
  const bool is_prototype = lexer_.Peek().IsDot("callprototype");
  if (is_prototype || lexer_.Peek().IsDot("calltargets")) {
    lexer_.Next();
    if (!names_.Declare(label.text, {Binding::Kind::kPrototype, 0})) return FailAt(label, "name declared twice");
    return is_prototype ? ParseCallPrototype() : ParseCallTargets();
  }
  if (!Spend(&instructions_left_, 1, "statements")) return false;
  labels_.push_back({label.text, MustFit<uint32_t>(function_->code.size())});
  return true;
}

// label: .branchtargets a, b, c;
bool Parser::ParseBranchTable(const Token& label) {
  const auto index = MustFit<uint32_t>(branch_tables_.size());
  if (!names_.Declare(label.text, {Binding::Kind::kBranchTable, index})) return FailAt(label, "name declared twice");
  std::vector<std::string_view> targets;
  do {
    Token target;
    if (!Spend(&operands_left_, 1, "branch targets") || !ExpectName(&target)) return false;
    targets.push_back(target.text);
  } while (Accept(","));
  branch_tables_.push_back(std::move(targets));
  return Expect(";");
}

// label: .calltargets f, g;
bool Parser::ParseCallTargets() {
  Token target;
  do {
    if (!ExpectName(&target)) return false;
  } while (Accept(","));
  return Expect(";");
}

// label: .callprototype (results) _ (parameters) [.noreturn];
bool Parser::ParseCallPrototype() {
  std::vector<Param> results, params;
  Function directives;
  if (lexer_.Peek().Is("(") && !ParseParamList(&results, nullptr)) return false;
  Token name;
  if (!ExpectName(&name)) return false;
  if (lexer_.Peek().Is("(") && !ParseParamList(&params, nullptr)) return false;
  return ParseFunctionDirectives(directives) && Expect(";");
}

bool Parser::ParseGuard(Instruction& instruction) {
  if (!Accept("@")) return true;
  instruction.guard_negated = Accept("!");
  Token name;
  if (!ExpectName(&name)) return false;
  const auto binding = names_.Find(name.text);
  if (!binding || binding->kind != Binding::Kind::kRegister || function_->registers[binding->index].type != Type::kPred)
    return FailAt(name, "a guard must be a predicate register");
  instruction.guard = binding->index;
  return true;
}

// [(results),] target [, (arguments)] [, prototype]
bool Parser::ParseCallOperands(Instruction& instruction) {
  Operand results, target;
  if (lexer_.Peek().Is("(")) {
    if (!ParseList(&results) || !PushOperand(&instruction.operands, std::move(results)) || !Expect(",")) return false;
  }
  if (!ParseOperand(Place::kCallTarget, &target) || !PushOperand(&instruction.operands, std::move(target)))
    return false;
  while (Accept(",")) {
    Operand operand;
    const bool is_list = lexer_.Peek().Is("(");
    if (!(is_list ? ParseList(&operand) : ParseOperand(Place::kPrototype, &operand))) return false;
    if (!PushOperand(&instruction.operands, std::move(operand))) return false;
  }
  return true;
}

bool Parser::ParseOperands(Instruction& instruction) {
  if (lexer_.Peek().Is(";")) return true;
  if (instruction.opcode == "call") return ParseCallOperands(instruction);
  const bool is_table_branch = instruction.opcode == "brx";
  do {
    Place place = Place::kOperand;
    if (instruction.opcode == "bra") place = Place::kBranchTarget;
    if (is_table_branch && instruction.operands.size() == 1) place = Place::kBranchTable;
    Operand operand;
    if (!ParseOperand(place, &operand) || !PushOperand(&instruction.operands, std::move(operand))) return false;
  } while (Accept(","));
  return true;
}

void Parser::NoteLabelUses(const Instruction& instruction) {
  const auto at = MustFit<uint32_t>(function_->code.size());
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::kLabel) uses_.push_back({operand.name, at, i, kNoIndex});
    if (operand.kind != Operand::Kind::kList) continue;
    for (uint32_t k = 0; k < operand.elements.size(); ++k)
      if (operand.elements[k].kind == Operand::Kind::kLabel) uses_.push_back({operand.elements[k].name, at, i, k});
  }
}

bool Parser::ParseInstruction() {
  Instruction instruction;
  const Token first = lexer_.Peek();
  if (!Spend(&instructions_left_, 1, "instructions") || !ParseGuard(instruction)) return false;
  Token opcode;
  if (!ExpectName(&opcode)) return false;
  instruction.opcode = opcode.text;
  instruction.line = first.line;
  instruction.depth = depth();
  while (lexer_.Peek().kind == Token::Kind::kDotWord) {
    if (instruction.modifiers.size() == Limits::kModifiers) return Fail("too many modifiers");
    instruction.modifiers.push_back(lexer_.Next().text.substr(1));
  }
  if (!ParseOperands(instruction)) return false;
  const Token& last = lexer_.Peek();
  if (!last.Is(";")) return Fail("expected `,` or `;`");
  instruction.text = std::string_view(module_.text).substr(first.offset, last.offset - first.offset);
  lexer_.Next();
  NoteLabelUses(instruction);
  function_->code.push_back(std::move(instruction));
  return true;
}

}  // namespace vgpud::ptx
