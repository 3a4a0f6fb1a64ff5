// SPDX-License-Identifier: Apache-2.0
// Variables and their initialisers (PTX ISA, "Variables").
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {
namespace {

constexpr size_t kMaxDimensions = 16;

bool IsOpaque(Type type) { return type == Type::kTexref || type == Type::kSamplerref || type == Type::kSurfref; }

// The bits of a constant written for a variable of `type`.
uint64_t FloatBits(Type type, bool is_f32, uint64_t bits) {
  if (is_f32 && type == Type::kF64)
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  if (!is_f32 && SizeOf(type) == sizeof(float))
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  return bits;
}
uint64_t IntegerBits(Type type, bool is_unsigned, uint64_t bits) {
  if (type != Type::kF32 && type != Type::kF64) return bits;
  const double value = is_unsigned ? static_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
  return type == Type::kF64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

}  // namespace

// [n][m]...; the first may be empty: *open, its extent comes from the initialiser.
bool Parser::ParseDimensions(uint64_t element_bytes, Variable& variable, std::vector<uint64_t>* dimensions,
                             bool* open) {
  variable.bytes = element_bytes;
  while (Accept("[")) {
    if (dimensions->size() == kMaxDimensions) return Fail("too many dimensions");
    uint64_t extent = 0;
    if (lexer_.Peek().Is("]")) {
      if (!dimensions->empty()) return Fail("only the first dimension may be empty");
      *open = true;
    } else {
      Constant value;
      if (!ParseConstant(&value)) return false;
      if (value.is_float || value.bits == 0 || value.bits > Limits::kVariableBytes) return Fail("array size");
      extent = value.bits;
    }
    if (!Expect("]")) return false;
    dimensions->push_back(extent);
    if (!(*open && dimensions->size() == 1) &&
        (__builtin_mul_overflow(variable.bytes, extent, &variable.bytes) || variable.bytes > Limits::kVariableBytes))
      return Fail(fmt::format("variable above {} bytes", Limits::kVariableBytes));
  }
  if (*open) variable.bytes = 0;
  return true;
}

bool Parser::PutInit(Variable& variable, uint64_t at, uint64_t bits, uint32_t bytes) {
  const CheckedSize behind = CheckedSize(at) + bytes;
  const uint64_t end = behind.saturated();
  if (end > variable.init.size()) {
    const uint64_t more = end - variable.init.size();
    if (more > init_left_) return Fail(fmt::format("initialisers above {} bytes", Limits::kInitBytes));
    init_left_ -= more;
    variable.init.resize(end);
  }
  for (uint32_t i = 0; i < bytes && i < sizeof bits; ++i) variable.init[at + i] = static_cast<uint8_t>(bits >> (8 * i));
  return true;
}

// symbol, symbol + n, generic(symbol) + n
bool Parser::ParseSymbolAddress(Relocation* relocation) {
  Token name;
  if (!ExpectName(&name)) return false;
  relocation->generic = name.text == "generic" && lexer_.Peek().Is("(");
  if (relocation->generic && (!Expect("(") || !ExpectName(&name) || !Expect(")"))) return false;
  relocation->symbol = name.text;
  return ParseOffset(&relocation->addend);
}

bool Parser::ParseInitElement(Variable& variable, uint64_t at) {
  const uint32_t bytes = SizeOf(variable.type);
  const bool is_mask = lexer_.Peek().kind == Token::Kind::kInteger && lexer_.PeekSecond().Is("(");
  const bool is_symbol = lexer_.Peek().kind == Token::Kind::kIdentifier && lexer_.Peek().text != "WARP_SZ";
  if (!is_mask && !is_symbol) {
    Constant value;
    if (!ParseConstant(&value)) return false;
    const uint64_t bits = value.is_float ? FloatBits(variable.type, value.is_f32, value.bits)
                                         : IntegerBits(variable.type, value.is_unsigned, value.bits);
    return PutInit(variable, at, bits, bytes);
  }
  const auto place = (CheckedSize(at) + bytes).Fits(UINT32_MAX) ? std::optional(MustFit<uint32_t>(at)) : std::nullopt;
  if (!place) return Fail("initialiser too far inside its variable");
  Relocation relocation{*place, bytes, {}, 0, false};
  if (is_mask) {
    const Token mask = lexer_.Next();
    const int shift = mask.bits == 0 ? 0 : std::countr_zero(mask.bits);
    if (mask.bits >> shift != 0xff || shift % 8 != 0) return FailAt(mask, "a mask must select one byte");
    relocation.mask = true;
    relocation.shift = MustFit<uint32_t>(shift);
    if (!Expect("(") || !ParseSymbolAddress(&relocation) || !Expect(")")) return false;
  } else if (!ParseSymbolAddress(&relocation)) {
    return false;
  }
  variable.relocations.push_back(std::move(relocation));
  return PutInit(variable, at, 0, bytes);
}

// `{ ... }` of one array level: strides[level] bytes per element, [at, end) belongs to it.
bool Parser::ParseInitBraces(Variable& variable, const std::vector<uint64_t>& strides, size_t level, uint64_t at,
                             uint64_t end, uint64_t* written) {
  if (!Expect("{")) return false;
  while (!lexer_.Peek().Is("}")) {
    const bool nested = lexer_.Peek().Is("{");
    if (nested && level + 1 >= strides.size()) return Fail("more braces than dimensions");
    const uint64_t step = nested ? strides[level] : strides.back();
    if (at > end || step > end - at) return Fail("more initialisers than elements");
    if (nested ? !ParseInitBraces(variable, strides, level + 1, at, at + step, written)
               : !ParseInitElement(variable, at))
      return false;
    at += step;
    *written = std::max(*written, at);
    if (!Accept(",")) break;
  }
  return Expect("}");
}

bool Parser::ParseInitializer(Variable& variable, const std::vector<uint64_t>& dimensions, bool open, uint32_t lanes) {
  if (IsOpaque(variable.type)) return ParseOpaqueInit();
  const uint32_t element = SizeOf(variable.type);
  if (dimensions.empty() && lanes == 1) {
    if (!Accept("{")) return ParseInitElement(variable, 0);
    return ParseInitElement(variable, 0) && Expect("}");
  }
  // Bytes of one element of each brace level, innermost last; a vector is a level of its own.
  std::vector<uint64_t> extents(dimensions);
  if (lanes > 1) extents.push_back(lanes);
  std::vector<uint64_t> strides(extents.size());
  uint64_t stride = element;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    if (extents[i] != 0) stride *= extents[i];  // at most kVariableBytes: ParseDimensions
  }
  uint64_t written = 0;
  const uint64_t end = open ? Limits::kVariableBytes : variable.bytes;
  if (!ParseInitBraces(variable, strides, 0, 0, end, &written)) return false;
  if (open) variable.bytes = (written + strides[0] - 1) / strides[0] * strides[0];
  return true;
}

// { filter_mode = nearest, ... } of texture and sampler references
bool Parser::ParseOpaqueInit() { return lexer_.Peek().Is("{") ? SkipBraces() : Fail("expected `{`"); }

// Behind the space word; `function`: nullptr at module level.
bool Parser::ParseVariables(Space space, Linkage linkage, Function* function) {
  Type type = Type::kNone;
  uint32_t lanes = 1, align = 0;
  bool managed = false;
  if (!ParseTypeWords(&type, &lanes, &align, &managed)) return false;
  const uint64_t element_bytes = static_cast<uint64_t>(SizeOf(type)) * lanes;
  if (element_bytes == 0) return Fail("a variable can't have this type");
  std::vector<Variable>& variables = function != nullptr ? function->variables : module_.variables;
  do {
    Variable variable;
    Token name;
    if (!Spend(&variables_left_, 1, "variables") || !ExpectName(&name)) return false;
    variable.name = name.text;
    variable.space = space;
    variable.type = type;
    variable.align = align != 0 ? align : MustFit<uint32_t>(element_bytes);
    variable.is_extern = linkage.is_extern;
    variable.is_visible = linkage.is_visible;
    variable.is_weak = linkage.is_weak;
    variable.is_managed = managed;
    variable.line = name.line;
    variable.depth = depth();
    std::vector<uint64_t> dimensions;
    bool open = false;
    if (!ParseDimensions(element_bytes, variable, &dimensions, &open)) return false;
    if (Accept("=") && !ParseInitializer(variable, dimensions, open, lanes)) return false;

    const auto kind = function != nullptr ? Binding::Kind::kLocalVariable : Binding::Kind::kModuleVariable;
    if (names_.Declare(name.text, {kind, MustFit<uint32_t>(variables.size())})) {
      variables.push_back(std::move(variable));
      continue;
    }
    const auto known = names_.Find(name.text);
    if (!known || known->kind != Binding::Kind::kModuleVariable || function != nullptr ||
        !(variables[known->index].is_extern || variable.is_extern))
      return FailAt(name, "name declared twice");
    if (!variable.is_extern) variables[known->index] = std::move(variable);
  } while (Accept(","));
  return Expect(";");
}

}  // namespace vgpud::ptx
