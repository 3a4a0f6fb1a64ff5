// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/multimem.h"

#include <optional>
#include <vector>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

// "multimem.ld_reduce.op.type to, [at]", "multimem.st.type [at], from", "multimem.red.op.type [at], from", vectors too:
// libraries have them in functions that run on every device, behind a question that is answered when the kernel is
// launched. What is written is written by instructions that end the kernel.
GpuResult<void> DecodeMultimem(DraftBuilder& out, const ptx::Instruction& i) {
  const bool load = HasModifier(i, "ld_reduce");
  const ptx::Type type = LastType(i);
  const ptx::Space space = SpaceOf(i);
  const bool somewhere = space == ptx::Space::kGlobal || space == ptx::Space::kGeneric;
  if (load + HasModifier(i, "st") + HasModifier(i, "red") != 1 || type == ptx::Type::kNone || !somewhere ||
      i.operands.size() != 2)
    return out.Unknown();
  DraftInst access;
  bool address32 = false;
  auto place = out.MemoryAddress(i.operands[load ? 1 : 0], space, access, address32);
  if (!place) return tl::unexpected(place.error());
  if (address32) return out.Fail("the address is a 32-bit register");
  const ptx::Operand& data = i.operands[load ? 0 : 1];
  const std::vector<ptx::Operand> values =
      data.kind == ptx::Operand::Kind::kVector ? data.elements : std::vector<ptx::Operand>{data};
  if (values.empty()) return out.Fail("there is no value");
  const SlotClass c = ClassOf(type);
  for (const ptx::Operand& value : values) {
    std::optional<Target> target;
    if (load) {
      auto to = out.Destination(value, c);
      if (!to) return tl::unexpected(to.error());
      target = *to;
    } else if (auto from = out.Source(value, c, type); !from) {
      return tl::unexpected(from.error());
    }
    DraftInst& d = out.Emit(OpMultimem);
    d.inst.imm = access.inst.imm;
    out.Use(d, 0, *place);
    if (!target) continue;
    out.UseRegister(d, 1, target->reg, true);
    out.Finish(*target, false);
  }
  return {};
}

}  // namespace vgpud::soft
