// SPDX-License-Identifier: Apache-2.0
// The parser behind Parse() (ptx_parser.h): one pass, one token of look-ahead behind the next. Its members are spread
// over ptx_parser*.cc by subject. Every member that returns bool returns false after Fail(), and then nothing but
// error() may be asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/ptx/ir.h"
#include "gpu/ptx/lexer.h"
#include "gpu/ptx/names.h"
#include "gpu/ptx/parser.h"

namespace vgpud::ptx {

// What one module may hold. Far above what compilers emit; they bound the memory that a hostile text can take.
struct Limits {
  static constexpr uint64_t kTextBytes = 64u << 20;
  static constexpr uint32_t kInstructions = 1'000'000;
  static constexpr uint32_t kOperands = 6'000'000;
  static constexpr uint32_t kModifiers = 64;         // of one instruction
  static constexpr uint32_t kRegisters = 1'000'000;  // of one function
  static constexpr uint32_t kModuleRegisters = 4'000'000;
  static constexpr uint32_t kVariables = 1'000'000;
  static constexpr uint32_t kFunctions = 100'000;
  static constexpr uint32_t kNesting = 64;  // blocks, parentheses, braces
  static constexpr uint32_t kParamBytes = 32764;
  static constexpr uint64_t kVariableBytes = 1ull << 40;
  static constexpr uint64_t kInitBytes = 64u << 20;
  static constexpr uint32_t kAlign = 1u << 16;
  static constexpr uint32_t kFiles = 65536;  // source files; more have no name
};

class Parser {
 public:
  // Parses module.text into `module`.
  Parser(Module& module, const Reading& reading);
  bool Run();
  const std::string& error() const { return error_; }
  bool is_version_error() const { return is_version_error_; }

 private:
  // --- ptx_parser.cc: tokens, errors, limits, module level ---
  bool Fail(std::string_view what);
  bool FailAt(const Token& token, std::string_view what);
  bool FailLine(uint32_t line, std::string_view what, std::string_view near);
  bool Accept(std::string_view punct);
  bool AcceptDot(std::string_view word);
  bool Expect(std::string_view punct);
  bool ExpectName(Token* name);
  bool ExpectInteger(uint64_t max, uint64_t* value);
  bool Spend(uint32_t* budget, uint32_t count, std::string_view what);
  bool SkipBraces();
  bool SkipToSemicolon();
  bool ParseDirective();
  bool ParseVersion();
  bool ParseTarget();
  bool ParseAddressSize();
  bool EndHead();
  bool ParseFile();
  bool ParseLoc();
  uint32_t FileIndex(uint64_t number);
  void NoteSourceLine(uint64_t file, uint64_t line);
  bool ParseSection();

  // --- ptx_parser_function.cc ---
  struct Linkage {
    bool is_extern = false;
    bool is_visible = false;
    bool is_weak = false;
  };
  struct Directive;
  bool ParseFunction(bool is_kernel, Linkage linkage);
  bool ParseParam(Param* param);
  bool ParseParamList(std::vector<Param>* params, uint32_t* total_bytes, uint32_t* close = nullptr);
  bool ParseFunctionDirectives(Function& function);
  bool ParseExtents(uint32_t (&extents)[3]);
  bool ParseAttributes(bool* managed);
  bool StoreFunction(Function&& function, const Token& name, bool has_body, Function** stored);
  bool BindParams(const Function& function);
  bool LeaveOut(Function& function);

  // --- ptx_parser_variable.cc ---
  bool ParseVariables(Space space, Linkage linkage, Function* function);
  bool ParseDimensions(uint64_t element_bytes, Variable& variable, std::vector<uint64_t>* dimensions, bool* open);
  bool ParseInitializer(Variable& variable, const std::vector<uint64_t>& dimensions, bool open, uint32_t lanes);
  bool ParseInitBraces(Variable& variable, const std::vector<uint64_t>& strides, size_t level, uint64_t at,
                       uint64_t end, uint64_t* written);
  bool ParseInitElement(Variable& variable, uint64_t at);
  bool ParseSymbolAddress(Relocation* relocation);
  bool PutInit(Variable& variable, uint64_t at, uint64_t bits, uint32_t bytes);
  bool ParseOpaqueInit();
  bool ParseTypeWords(Type* type, uint32_t* lanes, uint32_t* align, bool* managed);
  bool ParseAlign(uint32_t* align);

  // --- ptx_parser_constant.cc ---
  struct Constant {
    bool is_float = false;
    bool is_f32 = false;
    bool is_unsigned = false;
    uint64_t bits = 0;
  };
  bool ParseConstant(Constant* value);
  bool ParseBinary(int min_precedence, Constant* value);
  bool ParseUnary(Constant* value);
  bool ParsePrimary(Constant* value);
  bool ParseOffset(int64_t* offset);

  // --- ptx_parser_operand.cc ---
  // What names may stand where in an instruction.
  enum class Place : uint8_t { kOperand, kBranchTarget, kBranchTable, kCallTarget, kPrototype };
  bool ParseOperand(Place place, Operand* operand);
  bool ParseNameOperand(Place place, Operand* operand);
  bool ParseUnknownName(Place place, const Token& name, Operand* operand);
  bool ParseSpecial(const Token& name, Operand* operand);
  bool ParseRegister(const Token& name, Binding binding, Operand* operand);
  bool ParseSymbol(Binding binding, Operand* operand);
  bool ParseVector(Operand* operand);
  bool ParseList(Operand* operand);
  bool ParseAddress(Operand* operand);
  bool ParseImmediate(Operand* operand);
  bool PushOperand(std::vector<Operand>* to, Operand&& operand);
  uint64_t ElementBytes(const Operand& operand) const;

  // --- ptx_parser_body.cc ---
  struct LabelUse {
    std::string_view name;
    uint32_t instruction;
    uint32_t operand;
    uint32_t element;  // kNoIndex: the operand itself
  };
  struct Block {
    size_t first_use;          // into uses_
    size_t first_label;        // into labels_
    uint32_t call_area_bytes;  // to go back to
  };
  struct Label {
    std::string_view name;
    uint32_t target;
  };
  bool ParseBody(Function& function);
  bool ParseStatement();
  bool ParseBodyDirective();
  bool ParseRegisters();
  bool DeclareRegisters(const Token& name, Type type, uint32_t lanes);
  bool ParseBodyParam();
  bool ParseLabel();
  bool ParseBranchTable(const Token& label);
  bool ParseCallTargets();
  bool ParseCallPrototype();
  bool ParseInstruction();
  bool ParseGuard(Instruction& instruction);
  bool ParseOperands(Instruction& instruction);
  bool ParseCallOperands(Instruction& instruction);
  void NoteLabelUses(const Instruction& instruction);
  bool OpenBlock();
  bool CloseBlock(const Token& brace);
  uint32_t depth() const { return static_cast<uint32_t>(blocks_.size()); }

  Module& module_;
  const Reading& reading_;
  Lexer lexer_;
  NameTable names_;
  std::string error_;
  bool is_version_error_ = false;
  bool has_version_ = false;
  uint32_t nesting_ = 0;

  uint32_t instructions_left_ = Limits::kInstructions;
  uint32_t operands_left_ = Limits::kOperands;
  uint32_t registers_left_ = Limits::kModuleRegisters;
  uint32_t variables_left_ = Limits::kVariables;
  uint32_t functions_left_ = Limits::kFunctions;
  uint64_t init_left_ = Limits::kInitBytes;

  // Of .file and .loc: their own number of a file -> index into Module::files.
  std::unordered_map<uint64_t, uint32_t> files_;
  uint64_t last_file_ = 0;  // asked for
  uint32_t last_file_index_ = kNoIndex;

  // Of the function whose body is being read.
  Function* function_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<LabelUse> uses_;
  std::vector<Label> labels_;
  std::vector<std::vector<std::string_view>> branch_tables_;
  uint32_t call_area_bytes_ = 0;
  size_t source_line_at_ = 0;  // instructions before the last .loc that was noted
};

}  // namespace vgpud::ptx
