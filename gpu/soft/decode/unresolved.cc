// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/unresolved.h"

#include <set>
#include <string_view>

#include "gpu/ptx/lexer.h"

namespace vgpud::soft {
namespace {

using Names = std::set<std::string_view>;

bool IsOfDeviceRuntime(std::string_view name) { return name.starts_with("cuda") || name.starts_with("__cuda"); }

Names OnlyDeclared(const ProgramCode& code) {
  Names names;
  for (const auto& [name, index] : code.function_index)
    if (code.functions[index]->is_undefined && !IsOfDeviceRuntime(name)) names.insert(name);
  return names;
}

// The name of a header stands behind `.func`, or behind the list of what it returns.
bool IsOfHeader(const ptx::Token& before) { return before.IsDot("func") || before.Is(")"); }

std::string_view FirstUsed(std::string_view text, const Names& names) {
  ptx::Lexer lexer(text);
  for (ptx::Token before; lexer.Peek().kind != ptx::Token::Kind::kEnd;) {
    const ptx::Token token = lexer.Next();
    if (token.kind == ptx::Token::Kind::kIdentifier && names.contains(token.text) && !IsOfHeader(before))
      return token.text;
    before = token;
  }
  return {};
}

}  // namespace

std::string FirstUnresolved(const ProgramCode& code, std::span<const std::string> texts) {
  const Names names = OnlyDeclared(code);
  if (names.empty()) return {};
  for (const std::string& text : texts)
    if (const std::string_view used = FirstUsed(text, names); !used.empty()) return std::string(used);
  return {};
}

}  // namespace vgpud::soft
