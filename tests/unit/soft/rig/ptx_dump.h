// SPDX-License-Identifier: Apache-2.0
// Writes parsed PTX back as text, for comparing in tests.
#pragma once

#include <fmt/core.h>

#include <string>

#include "gpu/ptx/ir.h"

namespace vgpud::ptx {

inline std::string Dump(const Module& module, const Function& function, const Operand& operand);

inline std::string DumpAll(const Module& module, const Function& function, const std::vector<Operand>& operands) {
  std::string out;
  for (const Operand& operand : operands)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", Dump(module, function, operand));
  return out;
}

inline std::string DumpSymbol(const Module& module, const Function& function, const Operand& operand, bool is_param) {
  if (!is_param)
    return operand.local_variable ? fmt::format("local:{}", function.variables.at(operand.index).name)
                                  : fmt::format("module:{}", module.variables.at(operand.index).name);
  if (operand.body_param) return fmt::format("call:{}", function.body_params.at(operand.index).name);
  if (operand.return_param) return fmt::format("result:{}", function.returns.at(operand.index).name);
  return fmt::format("param:{}", function.params.at(operand.index).name);
}

inline std::string DumpAddress(const Module& module, const Function& function, const Operand& operand) {
  std::string out = "[";
  switch (operand.base) {
    case Operand::Base::kRegister:
      out += function.registers.at(operand.index).name;
      break;
    case Operand::Base::kVariable:
    case Operand::Base::kParam:
      out += DumpSymbol(module, function, operand, operand.base == Operand::Base::kParam);
      break;
    case Operand::Base::kImmediate:
      out += fmt::format("{}", operand.bits);
      break;
    case Operand::Base::kNone:
      out += "none";
      break;
  }
  if (operand.offset != 0) out += fmt::format("{:+}", operand.offset);
  for (const Operand& element : operand.elements) out += fmt::format(", {}", Dump(module, function, element));
  return out + "]";
}

inline std::string Dump(const Module& module, const Function& function, const Operand& operand) {
  using Kind = Operand::Kind;
  const std::string offset = operand.offset != 0 ? fmt::format("{:+}", operand.offset) : "";
  switch (operand.kind) {
    case Kind::kRegister: {
      std::string out =
          fmt::format("{}{}{}", operand.negated ? "!" : "", function.registers.at(operand.index).name, operand.name);
      if (operand.second != kNoIndex) out += fmt::format("|{}", function.registers.at(operand.second).name);
      return out;
    }
    case Kind::kImmediate:
      if (operand.is_float) return fmt::format("{}:{:x}", operand.is_f32 ? "f32" : "f64", operand.bits);
      return fmt::format("{}", static_cast<int64_t>(operand.bits));
    case Kind::kSpecial:
      return fmt::format("special:{}", operand.name);
    case Kind::kVariable:
      return DumpSymbol(module, function, operand, false) + offset;
    case Kind::kParam:
      return DumpSymbol(module, function, operand, true) + offset;
    case Kind::kFunction:
      return fmt::format("function:{}", operand.name);
    case Kind::kLabel:
      return fmt::format("@{}", operand.index);
    case Kind::kAddress:
      return DumpAddress(module, function, operand);
    case Kind::kVector:
      return fmt::format("{{{}}}", DumpAll(module, function, operand.elements));
    case Kind::kList:
      return fmt::format("({})", DumpAll(module, function, operand.elements));
    case Kind::kSink:
      return operand.second == kNoIndex ? "_" : fmt::format("_|{}", function.registers.at(operand.second).name);
    case Kind::kProto:
      return fmt::format("proto:{}", operand.name);
  }
  return "?";
}

inline std::string Dump(const Module& module, const Function& function, const Instruction& instruction) {
  std::string out;
  if (instruction.guard != kNoIndex)
    out += fmt::format("{}{} ", instruction.guard_negated ? "@!" : "@", function.registers.at(instruction.guard).name);
  out += instruction.opcode;
  for (const std::string_view modifier : instruction.modifiers) out += fmt::format(".{}", modifier);
  if (instruction.operands.empty()) return out;
  return fmt::format("{} {}", out, DumpAll(module, function, instruction.operands));
}

}  // namespace vgpud::ptx
