// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

// ld.param of a kernel's parameter is a move from the grid's area; those of functions live in frames.
GpuResult<void> DecodeParamAccess(DraftBuilder& out, const Operand& address, ptx::Type type,
                                  const std::vector<const Operand*>& values, bool store) {
  const uint32_t size = ptx::SizeOf(type);
  const bool is_signed = IsSigned(type);
  const bool kernel_param = out.source().is_kernel && !address.body_param && !address.return_param;
  const std::vector<ptx::Param>& list = address.body_param     ? out.source().body_params
                                        : address.return_param ? out.function().returns
                                                               : out.function().params;
  if (address.index >= list.size()) return out.Fail("no such parameter");
  const ptx::Param& param = list[address.index];
  const CheckedSize bytes = CheckedSize(size) * values.size();
  if (address.offset < 0 || !Inside(static_cast<uint64_t>(address.offset), bytes.saturated(), param.bytes))
    return out.Fail("outside of the parameter");
  if (kernel_param && store) return out.Fail("a kernel's parameter cannot be written");
  uint32_t offset = MustFit<uint32_t>(uint64_t{address.body_param ? out.BodyParamOffset(address.index) : param.offset} +
                                      static_cast<uint64_t>(address.offset));
  for (const Operand* value : values) {
    if (store) {
      const SlotClass c = value->kind == Operand::Kind::kRegister ? out.ClassOf(value->index)
                          : size == 8                             ? SlotClass::k64
                                                                  : SlotClass::k32;
      auto p = out.Source(*value, c, type);
      if (!p) return tl::unexpected(p.error());
      DraftInst& d = out.Emit(OpStoreCallParam);
      d.inst.aux = static_cast<uint8_t>(size | (c == SlotClass::k64 ? 0x20 : 0));
      d.inst.imm = offset;
      out.Use(d, 0, *p);
    } else if (value->kind != Operand::Kind::kSink) {
      if (value->kind != Operand::Kind::kRegister) return out.Fail("the destination is not a register");
      const SlotClass c = out.ClassOf(value->index);
      if (c == SlotClass::kPredicate) return out.Fail("a predicate holds no parameter");
      if (kernel_param) {
        const uint32_t slot_bytes = c == SlotClass::k64 ? 8 : 4;
        const uint32_t at = out.ParamSlot(offset, size, slot_bytes, is_signed);
        DraftInst& d = out.Emit(out.Row(slot_bytes == 8 ? "mov.b64" : "mov.b32")->fn);
        out.UseRegister(d, 0, value->index, true);
        out.Use(d, 1, {kGridArea, at, ptx::kNoIndex});
      } else {
        DraftInst& d = out.Emit(OpLoadCallParam);
        d.inst.aux = static_cast<uint8_t>(size | (is_signed ? 0x10 : 0) | (c == SlotClass::k64 ? 0x20 : 0));
        d.inst.imm = offset;
        out.UseRegister(d, 0, value->index, true);
      }
    }
    offset += size;
  }
  return {};
}

}  // namespace vgpud::soft
