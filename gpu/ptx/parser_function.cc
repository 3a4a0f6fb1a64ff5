// SPDX-License-Identifier: Apache-2.0
// Function headers: .entry and .func, their parameters and tuning directives (PTX ISA, "Kernel and Function Directives"
// and "Performance-Tuning Directives").
#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"
#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {
namespace {

// Directives that change nothing for an interpreter, with the largest count of numbers behind them.
constexpr struct {
  std::string_view word;
  int numbers;
} kIgnoredDirectives[] = {
    {"maxnctapersm", 1}, {"noreturn", 0}, {"blocksareclusters", 0}, {"abi_preserve", 1}, {"abi_preserve_control", 1},
};

// Directives of one number, and where it goes.
constexpr struct {
  std::string_view word;
  uint32_t Function::*field;
} kNumbers[] = {
    {"maxclusterrank", &Function::most_cluster_blocks},
    {"maxnreg", &Function::most_registers},
    {"minnctapersm", &Function::least_blocks},
};

}  // namespace

bool Parser::ParseAlign(uint32_t* align) {
  uint64_t value = 0;
  const Token token = lexer_.Peek();
  if (!ExpectInteger(Limits::kAlign, &value)) return false;
  if (value == 0 || (value & (value - 1)) != 0) return FailAt(token, "an alignment must be a power of two");
  *align = MustFit<uint32_t>(value);
  return true;
}

// .attribute(.managed, .unified(1, 2))
bool Parser::ParseAttributes(bool* managed) {
  if (!Expect("(")) return false;
  uint32_t depth = 1;
  while (depth != 0) {
    if (lexer_.Peek().kind == Token::Kind::kEnd) return Fail("`(` without `)`");
    const Token token = lexer_.Next();
    depth += token.Is("(");
    depth -= token.Is(")");
    if (managed != nullptr && token.IsDot("managed")) *managed = true;
  }
  return true;
}

// The dotted words of a declaration up to its name: .align N, .v2/.v4/.v8, .attribute(...), the type.
bool Parser::ParseTypeWords(Type* type, uint32_t* lanes, uint32_t* align, bool* managed) {
  *type = Type::kNone;
  *lanes = 1;
  *align = 0;
  while (lexer_.Peek().kind == Token::Kind::kDotWord) {
    const Token word = lexer_.Next();
    if (word.IsDot("align")) {
      if (!ParseAlign(align)) return false;
    } else if (word.IsDot("attribute")) {
      if (!ParseAttributes(managed)) return false;
    } else if (word.IsDot("v2") || word.IsDot("v4") || word.IsDot("v8")) {
      *lanes = static_cast<uint32_t>(word.text[2] - '0');
    } else {
      const Type found = TypeFromName(word.text.substr(1));
      if (found == Type::kNone || *type != Type::kNone) return FailAt(word, "unknown word in a declaration");
      *type = found;
    }
  }
  return *type != Type::kNone || Fail("expected a type");
}

// .param [.align N] type [.ptr [.space] [.align N]] [name [ [N] ]]
bool Parser::ParseParam(Param* param) {
  if (lexer_.Peek().IsDot("reg")) return Fail("parameters in .reg are not known, only .param");
  if (!AcceptDot("param")) return Fail("expected .param");
  uint32_t align = 0, lanes = 1;
  bool is_pointer = false;
  while (lexer_.Peek().kind == Token::Kind::kDotWord) {
    const Token word = lexer_.Next();
    uint32_t number = 0;
    if (word.IsDot("align")) {
      if (!ParseAlign(&number)) return false;
      if (!is_pointer) align = number;  // behind .ptr it speaks of what is pointed at
    } else if (word.IsDot("ptr")) {
      is_pointer = true;
    } else if (word.IsDot("v2") || word.IsDot("v4")) {
      lanes = static_cast<uint32_t>(word.text[2] - '0');
    } else if (!is_pointer) {
      const Type type = TypeFromName(word.text.substr(1));
      if (type == Type::kNone || param->type != Type::kNone) return FailAt(word, "unknown word in a parameter");
      param->type = type;
    }
  }
  if (param->type == Type::kNone) return Fail("expected a type");
  CheckedSize bytes = CheckedSize(SizeOf(param->type)) * lanes;
  param->align = std::max({align, MustFit<uint32_t>(bytes), 1u});
  if (align != 0) param->align = align;
  if (lexer_.Peek().kind == Token::Kind::kIdentifier) param->name = lexer_.Next().text;
  if (Accept("[")) {
    uint64_t count = 0;  // `[]`: variable arguments
    if (!lexer_.Peek().Is("]") && !ExpectInteger(Limits::kParamBytes, &count)) return false;
    if (!Expect("]")) return false;
    bytes *= count;
  }
  if (!bytes.Fits(Limits::kParamBytes)) return Fail(fmt::format("parameters above {} bytes", Limits::kParamBytes));
  param->bytes = MustFit<uint32_t>(bytes);
  return true;
}

bool Parser::ParseParamList(std::vector<Param>* params, uint32_t* total_bytes, uint32_t* close) {
  CheckedSize at;
  if (!Expect("(")) return false;
  if (close != nullptr) *close = lexer_.Peek().offset;
  if (Accept(")")) return true;
  do {
    Param param;
    if (!Spend(&variables_left_, 1, "parameters") || !ParseParam(&param)) return false;
    const CheckedSize begin = at.AlignedUp(param.align);
    at = begin + param.bytes;
    if (!at.Fits(Limits::kParamBytes)) return Fail(fmt::format("parameters above {} bytes", Limits::kParamBytes));
    param.offset = MustFit<uint32_t>(begin);
    params->push_back(std::move(param));
  } while (Accept(","));
  if (total_bytes != nullptr) *total_bytes = MustFit<uint32_t>(at);
  if (close != nullptr) *close = lexer_.Peek().offset;
  return Expect(")");
}

// x [, y [, z]]; what is left out is 1.
bool Parser::ParseExtents(uint32_t (&extents)[3]) {
  uint32_t counts[3] = {1, 1, 1};
  int i = 0;
  do {
    uint64_t value = 0;
    if (i == 3) return Fail("more than three dimensions");
    if (!ExpectInteger(UINT32_MAX, &value)) return false;
    counts[i++] = MustFit<uint32_t>(value);
  } while (Accept(","));
  std::copy(std::begin(counts), std::end(counts), std::begin(extents));
  return true;
}

bool Parser::ParseFunctionDirectives(Function& function) {
  while (lexer_.Peek().kind == Token::Kind::kDotWord) {
    const Token word = lexer_.Next();
    if (word.IsDot("maxntid") || word.IsDot("reqntid")) {
      if (!ParseExtents(function.max_threads)) return false;
      function.required_threads = word.IsDot("reqntid");
      continue;
    }
    if (word.IsDot("reqnctapercluster")) {
      if (!ParseExtents(function.cluster)) return false;
      continue;
    }
    if (word.IsDot("explicitcluster")) {
      function.explicit_cluster = true;
      continue;
    }
    const auto* number =
        std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto& row) { return word.IsDot(row.word); });
    if (number != std::end(kNumbers)) {
      uint64_t value = 0;
      if (!ExpectInteger(UINT32_MAX, &value)) return false;
      function.*number->field = MustFit<uint32_t>(value);
      continue;
    }
    if (word.IsDot("pragma")) {
      if (!SkipToSemicolon()) return false;
      continue;
    }
    const auto* row = std::find_if(std::begin(kIgnoredDirectives), std::end(kIgnoredDirectives),
                                   [&](const auto& ignored) { return word.IsDot(ignored.word); });
    if (row == std::end(kIgnoredDirectives)) return FailAt(word, "unknown directive of a function");
    for (int i = 0; i < row->numbers && (i == 0 || Accept(",")); ++i) {
      uint64_t ignored = 0;
      if (!ExpectInteger(UINT64_MAX, &ignored)) return false;
    }
  }
  return true;
}

// A definition replaces earlier declarations of the same name; a later declaration changes nothing.
bool Parser::StoreFunction(Function&& function, const Token& name, bool has_body, Function** stored) {
  const auto known = names_.Find(name.text);
  if (!known) {
    if (!Spend(&functions_left_, 1, "functions")) return false;
    names_.Declare(name.text, {Binding::Kind::kFunction, MustFit<uint32_t>(module_.functions.size())});
    module_.functions.push_back(std::make_unique<Function>(std::move(function)));
    *stored = module_.functions.back().get();
    return true;
  }
  if (known->kind != Binding::Kind::kFunction) return FailAt(name, "name declared twice");
  *stored = module_.functions[known->index].get();
  (*stored)->is_redeclared = true;
  if (!has_body) return true;
  if (!(*stored)->is_extern) return FailAt(name, "function defined twice");
  function.is_redeclared = true;
  **stored = std::move(function);
  return true;
}

bool Parser::BindParams(const Function& function) {
  const auto bind = [&](const std::vector<Param>& params, Binding::Kind kind) {
    for (uint32_t i = 0; i < params.size(); ++i)
      if (!params[i].name.empty() && params[i].name != "_" && !names_.Declare(params[i].name, {kind, i}))
        return FailLine(function.line, "parameter declared twice", params[i].name);
    return true;
  };
  return bind(function.params, Binding::Kind::kParam) && bind(function.returns, Binding::Kind::kReturnParam);
}

bool Parser::ParseFunction(bool is_kernel, Linkage linkage) {
  Function header;
  header.is_kernel = is_kernel;
  header.is_extern = true;  // until its body is seen
  header.is_visible = linkage.is_visible;
  header.is_weak = linkage.is_weak;
  if (AcceptDot("attribute") && !ParseAttributes(nullptr)) return false;
  if (!is_kernel && lexer_.Peek().Is("(") && !ParseParamList(&header.returns, nullptr)) return false;
  Token name;
  if (!ExpectName(&name)) return false;
  header.name = name.text;
  header.line = name.line;
  header.places.name_end = name.offset + MustFit<uint32_t>(name.text.size());
  if (lexer_.Peek().Is("(")) {
    header.places.params_open = lexer_.Peek().offset;
    if (!ParseParamList(&header.params, &header.param_bytes, &header.places.params_close)) return false;
  }
  if (!ParseFunctionDirectives(header)) return false;

  const bool has_body = lexer_.Peek().Is("{");
  header.places.body_open = lexer_.Peek().offset;
  if (!has_body && !Expect(";")) return false;
  if (has_body && linkage.is_extern) return FailAt(name, ".extern function with a body");
  Function* function = nullptr;
  if (!StoreFunction(std::move(header), name, has_body, &function)) return false;
  if (!has_body) return true;
  function->is_extern = false;
  return reading_.wants_body && !reading_.wants_body(function->name) ? LeaveOut(*function) : ParseBody(*function);
}

bool Parser::LeaveOut(Function& function) {
  Lexer::Place close{};
  const auto known =
      reading_.ends != nullptr ? reading_.ends->find(function.places.body_open) : BodyEnds::const_iterator();
  if (reading_.ends != nullptr && known != reading_.ends->end()) {
    close = known->second;
    lexer_.GoBehind(close);
  } else if (!lexer_.SkipBlock(&close)) {
    return Fail("function without its closing `}`");
  }
  function.is_left_out = true;
  function.places.body_close = close.offset;
  function.places.body_close_line = close.line;
  return true;
}

}  // namespace vgpud::ptx
