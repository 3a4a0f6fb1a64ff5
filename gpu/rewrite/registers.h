// SPDX-License-Identifier: Apache-2.0
// Which registers an instruction reads and writes.
#pragma once

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/facts.h"
#include "gpu/rewrite/opcodes.h"

namespace vgpud::rewrite {

// Calls `visit(register, whole)`: `whole` if what was in it before is gone for sure.
template <class Visit>
void ForEachWrite(const ptx::Instruction& instruction, const Visit& visit) {
  using Kind = ptx::Operand::Kind;
  if (!FactsOf(instruction).writes || instruction.operands.empty()) return;
  const bool sure = instruction.guard == ptx::kNoIndex;
  const auto of = [&](const ptx::Operand& operand) {
    if (operand.kind != Kind::kRegister) return;
    visit(operand.index, sure && operand.name.empty());  // with a name: only some of its bytes
    if (operand.second != ptx::kNoIndex) visit(operand.second, sure);
  };
  const ptx::Operand& first = instruction.operands[0];
  of(first);
  if (first.kind == Kind::kVector)
    for (const ptx::Operand& element : first.elements) of(element);
}

// Calls `visit(register)` for what it reads, its guard included; of the first operand only what it needs as an address.
template <class Visit>
void ForEachRead(const ptx::Instruction& instruction, const Visit& visit) {
  using Kind = ptx::Operand::Kind;
  if (instruction.guard != ptx::kNoIndex) visit(instruction.guard);
  const bool writes = FactsOf(instruction).writes;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const bool is_result = writes && i == 0;
    ForEach(instruction.operands[i], [&](const ptx::Operand& part) {
      const bool is_base = part.kind == Kind::kAddress && part.base == ptx::Operand::Base::kRegister;
      if (is_base || (part.kind == Kind::kRegister && !is_result)) visit(part.index);
      if (part.kind == Kind::kRegister && !is_result && part.second != ptx::kNoIndex) visit(part.second);
      // Bytes that stay as they were.
      if (is_result && part.kind == Kind::kRegister && !part.name.empty()) visit(part.index);
    });
  }
}

inline bool ReadsCarry(const ptx::Instruction& instruction) {
  return instruction.opcode == "addc" || instruction.opcode == "subc" || instruction.opcode == "madc";
}
inline bool WritesCarry(const ptx::Instruction& instruction) { return HasModifier(instruction, "cc"); }

}  // namespace vgpud::rewrite
