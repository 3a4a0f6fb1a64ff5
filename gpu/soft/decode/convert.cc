// SPDX-License-Identifier: Apache-2.0
// cvt of four values at once, which come as a list; every other cvt is a row of the table.
#include <algorithm>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

// "cvt.rs{.relu}.satfinite.TYPEx4.f32 to, {a, b, c, d}, random bits". Rows: "@cvt.rs..."
GpuResult<void> DecodeConvert(DraftBuilder& out, const ptx::Instruction& i) {
  const bool four = i.operands.size() == 3 && i.operands[1].kind == Operand::Kind::kVector;
  if (!four) return DecodePlain(out, i);
  const bool relu = HasModifier(i, "relu");
  const bool fits = HasModifier(i, "rs") && HasModifier(i, "satfinite") && LastType(i) == ptx::Type::kF32;
  const auto type = std::find_if(i.modifiers.begin(), i.modifiers.end(), [](auto m) { return m.ends_with("x4"); });
  if (!fits || type == i.modifiers.end() || i.modifiers.size() != (relu ? 5u : 4u)) return out.Unknown();
  const OpRow* row = out.Row(fmt::format("@cvt.rs{}.satfinite.{}.f32", relu ? ".relu" : "", *type));
  if (row == nullptr) return out.Unknown();
  if (i.operands[1].elements.size() != 4) return out.Fail("the list has not four values");
  auto target = out.Destination(i.operands[0], SlotClass::k32);
  if (!target) return tl::unexpected(target.error());
  auto random = out.Source(i.operands[2], SlotClass::k32, ptx::Type::kB32);
  if (!random) return tl::unexpected(random.error());
  DraftInst draft;
  for (const Operand& e : i.operands[1].elements) {
    auto value = out.Source(e, SlotClass::k32, ptx::Type::kF32);
    if (!value) return tl::unexpected(value.error());
    out.UseExtra(draft, *value);
  }
  out.UseRegister(draft, 0, target->reg, true);
  out.Use(draft, 1, *random);
  draft.inst.fn = row->fn;
  draft.line = i.line;
  out.Add(std::move(draft));
  out.Finish(*target, false);
  return {};
}

}  // namespace vgpud::soft
