// SPDX-License-Identifier: Apache-2.0
// What every parsed module must keep, whatever the text was: all indices inside their tables.
#pragma once

#include <string>

#include "gpu/ptx/ir.h"

namespace vgpud::ptx {

// Empty when the module is sound, else what is not.
inline std::string BrokenInvariant(const Function& function, const Module& module, const Operand& operand) {
  using Kind = Operand::Kind;
  const auto inside = [&](size_t size) { return operand.index < size; };
  const bool is_address = operand.kind == Kind::kAddress;
  const size_t variables = operand.local_variable ? function.variables.size() : module.variables.size();
  const size_t params = operand.body_param     ? function.body_params.size()
                        : operand.return_param ? function.returns.size()
                                               : function.params.size();
  if (operand.kind == Kind::kRegister || (is_address && operand.base == Operand::Base::kRegister)) {
    if (!inside(function.registers.size())) return "register index";
  }
  if (operand.kind == Kind::kVariable || (is_address && operand.base == Operand::Base::kVariable)) {
    if (!inside(variables)) return "variable index";
  }
  if (operand.kind == Kind::kParam || (is_address && operand.base == Operand::Base::kParam)) {
    if (!inside(params)) return "parameter index";
  }
  if (operand.second != kNoIndex && operand.second >= function.registers.size()) return "second register index";
  if (operand.kind == Kind::kLabel && operand.index > function.code.size()) return "label target";
  if (operand.kind == Kind::kFunction && operand.name.empty()) return "function name";
  if (is_address && operand.base == Operand::Base::kNone) return "address without a base";
  for (const Operand& element : operand.elements) {
    if (element.kind == Kind::kAddress || element.kind == Kind::kList) return "nested operand";
    if (std::string broken = BrokenInvariant(function, module, element); !broken.empty()) return broken;
  }
  return {};
}

inline std::string BrokenInvariant(const Variable& variable) {
  if (variable.name.empty()) return "variable without a name";
  if (variable.align == 0 || (variable.align & (variable.align - 1)) != 0) return "variable alignment";
  if (variable.init.size() > variable.bytes) return "initialiser longer than its variable";
  for (const Relocation& relocation : variable.relocations)
    if (static_cast<uint64_t>(relocation.offset) + relocation.bytes > variable.init.size()) return "relocation offset";
  return {};
}

inline std::string BrokenInvariant(const Function& function, const Module& module) {
  for (const Instruction& instruction : function.code) {
    if (instruction.opcode.empty() || instruction.text.empty()) return "instruction without text";
    if (instruction.guard != kNoIndex && instruction.guard >= function.registers.size()) return "guard index";
    for (const Operand& operand : instruction.operands)
      if (std::string broken = BrokenInvariant(function, module, operand); !broken.empty()) return broken;
  }
  for (const Variable& variable : function.variables)
    if (std::string broken = BrokenInvariant(variable); !broken.empty()) return broken;
  uint64_t end = 0;
  for (const Param& param : function.params) {
    if (param.align == 0 || param.offset % param.align != 0 || param.offset < end) return "parameter layout";
    end = static_cast<uint64_t>(param.offset) + param.bytes;
  }
  return end == function.param_bytes ? "" : "size of all parameters";
}

inline std::string BrokenInvariant(const Module& module) {
  for (const Variable& variable : module.variables)
    if (std::string broken = BrokenInvariant(variable); !broken.empty()) return broken;
  for (const auto& function : module.functions)
    if (std::string broken = BrokenInvariant(*function, module); !broken.empty()) return broken;
  return {};
}

}  // namespace vgpud::ptx
