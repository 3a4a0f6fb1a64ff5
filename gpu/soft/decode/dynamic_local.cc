// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {
namespace {

using ptx::Operand;

constexpr uint64_t kUsualAlignment = 8;
constexpr uint64_t kMostAlignment = 4096;

bool HasForm(const ptx::Instruction& i, size_t operands) {
  const ptx::Type type = LastType(i);
  return i.modifiers.size() == 1 && i.operands.size() == operands &&
         (type == ptx::Type::kU64 || type == ptx::Type::kU32);
}

// Registers of 32 bits are widened before and narrowed behind.
GpuResult<void> EmitAlloca(DraftBuilder& out, const ptx::Instruction& i, uint64_t alignment) {
  auto target = out.Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  auto bytes = out.Source(i.operands[1], SlotClass::k64, LastType(i));
  if (!bytes) return tl::unexpected(bytes.error());
  DraftInst& d = out.Emit(OpAlloca);
  d.inst.imm = static_cast<int64_t>(alignment);
  out.UseRegister(d, 0, target->reg, true);
  out.Use(d, 1, *bytes);
  out.Finish(*target, false);
  out.function().uses_alloca = true;
  return {};
}

}  // namespace

GpuResult<void> DecodeAlloca(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() == 2 && HasForm(i, 2)) return EmitAlloca(out, i, kUsualAlignment);
  if (!HasForm(i, 3)) return out.Unknown();
  const Operand& alignment = i.operands[2];
  const auto bytes = static_cast<uint64_t>(alignment.bits);
  if (alignment.kind != Operand::Kind::kImmediate || !std::has_single_bit(bytes) || bytes > kMostAlignment)
    return out.Fail("the alignment is a power of two, at most 4096");
  return EmitAlloca(out, i, bytes);
}

GpuResult<void> DecodeStackSave(DraftBuilder& out, const ptx::Instruction& i) {
  if (!HasForm(i, 1)) return out.Unknown();
  auto target = out.Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  out.UseRegister(out.Emit(OpStackSave), 0, target->reg, true);
  out.Finish(*target, false);
  out.function().uses_alloca = true;
  return {};
}

GpuResult<void> DecodeStackRestore(DraftBuilder& out, const ptx::Instruction& i) {
  if (!HasForm(i, 1)) return out.Unknown();
  auto source = out.Source(i.operands[0], SlotClass::k64, LastType(i));
  if (!source) return tl::unexpected(source.error());
  out.Use(out.Emit(OpStackRestore), 0, *source);
  out.function().uses_alloca = true;
  return {};
}

}  // namespace vgpud::soft
