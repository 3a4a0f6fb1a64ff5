// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/parser.h"

#include <fmt/core.h>

#include <charconv>

#include "base/checked.h"
#include "gpu/ptx/parser_impl.h"

namespace vgpud::ptx {
namespace {

constexpr uint32_t kMaxMajorVersion = 9;
constexpr size_t kMaxNearBytes = 40;

// What a message may quote of a hostile text.
std::string Quotable(std::string_view text) {
  std::string out(text.substr(0, kMaxNearBytes));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

constexpr struct {
  std::string_view word;
  Space space;
} kVariableSpaces[] = {
    {"global", Space::kGlobal}, {"const", Space::kConst}, {"shared", Space::kShared}, {"tex", Space::kGlobal}};

}  // namespace

Parser::Parser(Module& module, const Reading& reading) : module_(module), reading_(reading), lexer_(module.text) {}

bool Parser::FailLine(uint32_t line, std::string_view what, std::string_view near) {
  if (error_.empty()) error_ = fmt::format("PTX line {}: {}, near `{}`", line, what, Quotable(near));
  return false;
}

bool Parser::FailAt(const Token& token, std::string_view what) {
  return FailLine(token.line, what, token.kind == Token::Kind::kEnd ? "end of text" : token.text);
}

bool Parser::Fail(std::string_view what) { return FailAt(lexer_.Peek(), what); }

bool Parser::Accept(std::string_view punct) {
  if (!lexer_.Peek().Is(punct)) return false;
  lexer_.Next();
  return true;
}

bool Parser::AcceptDot(std::string_view word) {
  if (!lexer_.Peek().IsDot(word)) return false;
  lexer_.Next();
  return true;
}

bool Parser::Expect(std::string_view punct) { return Accept(punct) || Fail(fmt::format("expected `{}`", punct)); }

bool Parser::ExpectName(Token* name) {
  if (lexer_.Peek().kind != Token::Kind::kIdentifier) return Fail("expected a name");
  *name = lexer_.Next();
  return true;
}

bool Parser::ExpectInteger(uint64_t max, uint64_t* value) {
  const Token& token = lexer_.Peek();
  if (token.kind != Token::Kind::kInteger) return Fail("expected a number");
  if (token.bits > max) return Fail(fmt::format("number above {}", max));
  *value = token.bits;
  lexer_.Next();
  return true;
}

bool Parser::Spend(uint32_t* budget, uint32_t count, std::string_view what) {
  if (*budget < count) return Fail(fmt::format("too many {}", what));
  *budget -= count;
  return true;
}

bool Parser::SkipBraces() {
  uint64_t depth = 0;
  do {
    if (lexer_.Peek().kind == Token::Kind::kEnd) return Fail("`{` without `}`");
    const Token token = lexer_.Next();
    depth += token.Is("{");
    depth -= token.Is("}");
  } while (depth != 0);
  return true;
}

bool Parser::SkipToSemicolon() {
  while (!lexer_.Peek().Is(";")) {
    if (lexer_.Peek().kind == Token::Kind::kEnd) return Fail("expected `;`");
    lexer_.Next();
  }
  lexer_.Next();
  return true;
}

bool Parser::Run() {
  while (lexer_.Peek().kind != Token::Kind::kEnd) {
    if (Accept(";")) continue;
    if (!ParseDirective()) return false;
  }
  return has_version_ || Fail("no .version directive: this is not PTX");
}

bool Parser::ParseDirective() {
  if (AcceptDot("version")) return ParseVersion() && EndHead();
  if (!has_version_) return Fail("expected .version first: this is not PTX");
  if (AcceptDot("target")) return ParseTarget() && EndHead();
  if (AcceptDot("address_size")) return ParseAddressSize() && EndHead();
  if (AcceptDot("file")) return ParseFile();
  if (AcceptDot("loc")) return ParseLoc();
  if (AcceptDot("section")) return ParseSection();
  if (AcceptDot("pragma") || AcceptDot("alias")) return SkipToSemicolon();

  Linkage linkage;
  for (bool more = true; more;) {
    more = false;
    if (AcceptDot("visible")) more = linkage.is_visible = true;
    if (AcceptDot("extern")) more = linkage.is_extern = true;
    if (AcceptDot("weak") || AcceptDot("common")) more = linkage.is_weak = true;
  }
  if (AcceptDot("entry")) return ParseFunction(true, linkage);
  if (AcceptDot("func")) return ParseFunction(false, linkage);
  for (const auto& [word, space] : kVariableSpaces)
    if (AcceptDot(word)) return ParseVariables(space, linkage, nullptr);
  return Fail("unknown directive");
}

bool Parser::ParseVersion() {
  const Token token = lexer_.Next();
  const size_t dot = token.text.find('.');
  uint32_t major = 0, minor = 0;
  const auto number = [](std::string_view digits, uint32_t* value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return error == std::errc() && end == digits.data() + digits.size() && *value < 100;
  };
  if (token.kind != Token::Kind::kFloat || dot == std::string_view::npos ||
      !number(token.text.substr(0, dot), &major) || !number(token.text.substr(dot + 1), &minor))
    return FailAt(token, "expected a version such as 9.0");
  if (major > kMaxMajorVersion) {
    is_version_error_ = true;
    return FailAt(token, fmt::format("PTX versions above {}.x are not known", kMaxMajorVersion));
  }
  module_.version = major * 10 + minor;
  has_version_ = true;
  return true;
}

bool Parser::ParseTarget() {
  do {
    Token name;
    if (!ExpectName(&name)) return false;
    constexpr std::string_view kPrefix = "sm_";
    if (!name.text.starts_with(kPrefix)) continue;  // texmode_independent, debug, ...
    const char* end = name.text.data() + name.text.size();
    Target target;
    const auto [rest, error] = std::from_chars(name.text.data() + kPrefix.size(), end, target.sm);
    const std::string_view suffix(rest, static_cast<size_t>(end - rest));
    if (error != std::errc() || (suffix != "" && suffix != "a" && suffix != "f"))
      return FailAt(name, "expected a target such as sm_75");
    if (suffix == "a") target.reach = Target::Reach::kExact;
    if (suffix == "f") target.reach = Target::Reach::kFamily;
    module_.target = target;
  } while (Accept(","));
  return true;
}

bool Parser::ParseAddressSize() {
  uint64_t bits = 0;
  const Token token = lexer_.Peek();
  if (!ExpectInteger(UINT64_MAX, &bits)) return false;
  return bits == 64 || FailAt(token, "only .address_size 64 exists here");
}

bool Parser::EndHead() {
  module_.head_end = lexer_.Peek().offset;
  return true;
}

// kNoIndex: too many files.
uint32_t Parser::FileIndex(uint64_t number) {
  if (number == last_file_ && last_file_index_ != kNoIndex) return last_file_index_;
  auto known = files_.find(number);
  if (known == files_.end()) {
    if (files_.size() == Limits::kFiles) return kNoIndex;
    known = files_.emplace(number, MustFit<uint32_t>(module_.files.size())).first;
    module_.files.emplace_back();
  }
  last_file_ = number;
  return last_file_index_ = known->second;
}

// .file number "name" [, time, size]; compilers put it behind the code that names it. Of two with one number the first
// stays.
bool Parser::ParseFile() {
  uint64_t number = 0, ignored = 0;
  if (!ExpectInteger(UINT64_MAX, &number)) return false;
  if (lexer_.Peek().kind != Token::Kind::kString) return Fail("expected a file name");
  const std::string_view name = lexer_.Next().text;
  if (const uint32_t index = FileIndex(number); index != kNoIndex && module_.files[index].empty())
    module_.files[index] = name;
  while (Accept(","))
    if (!ExpectInteger(UINT64_MAX, &ignored)) return false;
  Accept(";");
  return true;
}

// .loc file line column [, function_name label [+ n], inlined_at file line column]
bool Parser::ParseLoc() {
  uint64_t file = 0, line = 0, ignored = 0;
  for (uint64_t* number : {&file, &line, &ignored})
    if (!ExpectInteger(UINT64_MAX, number)) return false;
  while (Accept(",")) {
    Token word;
    if (!ExpectName(&word)) return false;
    if (word.text == "function_name") {
      if (!ExpectName(&word)) return false;
      if (Accept("+") && !ExpectInteger(UINT64_MAX, &ignored)) return false;
    } else if (word.text == "inlined_at") {
      for (int i = 0; i < 3; ++i)
        if (!ExpectInteger(UINT64_MAX, &ignored)) return false;
    } else {
      return FailAt(word, "unknown attribute of .loc");
    }
  }
  Accept(";");
  NoteSourceLine(file, line);
  return true;
}

// Only what the code behind it needs: the last of several without an instruction in between, and nothing that says the
// same again.
void Parser::NoteSourceLine(uint64_t file, uint64_t line) {
  if (function_ == nullptr) return;
  const SourceLine now{lexer_.Peek().line, FileIndex(file), line <= UINT32_MAX ? MustFit<uint32_t>(line) : 0};
  auto& lines = function_->source_lines;
  if (!lines.empty() && source_line_at_ == function_->code.size()) {
    lines.back() = now;
    return;
  }
  if (!lines.empty() && lines.back().file == now.file && lines.back().line == now.line) return;
  lines.push_back(now);
  source_line_at_ = function_->code.size();
}

bool Parser::ParseSection() {
  if (lexer_.Peek().kind != Token::Kind::kDotWord && lexer_.Peek().kind != Token::Kind::kIdentifier)
    return Fail("expected a section name");
  lexer_.Next();
  return lexer_.Peek().Is("{") ? SkipBraces() : Fail("expected `{`");
}

GpuResult<std::unique_ptr<Module>> Parse(std::string_view text, const Reading& reading) {
  if (text.size() > Limits::kTextBytes)
    return GpuFail(CuStatus::kInvalidPtx,
                   fmt::format("PTX text of {} bytes: the limit is {}", text.size(), Limits::kTextBytes));
  auto module = std::make_unique<Module>();
  module->text = text;
  Parser parser(*module, reading);
  if (!parser.Run())
    return GpuFail(parser.is_version_error() ? CuStatus::kUnsupportedPtxVersion : CuStatus::kInvalidPtx,
                   parser.error());
  return module;
}

}  // namespace vgpud::ptx
