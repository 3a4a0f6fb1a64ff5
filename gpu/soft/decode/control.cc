// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/checked.h"
#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

GpuResult<void> FunctionDecoder::DecodeBranch(const ptx::Instruction& i) {
  if (i.operands.size() != 1 || i.operands[0].kind != Kind::kLabel) return Fail("a label was expected");
  DraftInst& d = Emit(OpBranch);
  d.falls_through = false;
  branches_.push_back({MustFit<uint32_t>(draft_.size() - 1), i.operands[0].index});
  d.target = i.operands[0].index;
  return {};
}

// A table of labels: one comparison and branch after the other. An index beyond the table goes on below.
GpuResult<void> FunctionDecoder::DecodeIndexedBranch(const ptx::Instruction& i) {
  if (i.operands.size() != 2 || i.operands[1].kind != Kind::kList) return Fail("an index and labels were expected");
  auto index = Source(i.operands[0], SlotClass::k32, ptx::Type::kU32);
  if (!index) return tl::unexpected(index.error());
  const auto& labels = i.operands[1].elements;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (labels[n].kind != Kind::kLabel) return Fail("a label was expected");
    const Reg hit = NewRegister(SlotClass::kPredicate);
    DraftInst& compare = Emit(context_.table.Find("setp.eq.u32")->fn);
    UseRegister(compare, 0, hit, true);
    UseRegister(compare, 1, NewRegister(SlotClass::kPredicate), true);
    Use(compare, 2, *index);
    UseConstant(compare, 3, n, 4);
    DraftInst& branch = Emit(OpBranchIf);
    UseRegister(branch, kGuardOperand, hit, false);
    branches_.push_back({MustFit<uint32_t>(draft_.size() - 1), labels[n].index});
  }
  return {};
}

GpuResult<void> FunctionDecoder::FindFunction(std::string_view name, uint32_t& index) const {
  const auto it = context_.program.function_index.find(std::string(name));
  if (it == context_.program.function_index.end()) return Fail(fmt::format("function {} is unknown", name));
  index = it->second;
  return {};
}

GpuResult<void> FunctionDecoder::DecodeCall(const ptx::Instruction& i) {
  CallSite site;
  site.caller = index_;
  const Operand* callee = nullptr;
  const auto add_params = [&](const Operand& list, std::vector<ptx::Param>& out) -> Status {
    for (const Operand& o : list.elements) {
      if (o.kind != Kind::kParam || !o.body_param)
        return Fail("call arguments other than .param variables", CuStatus::kNotSupported);
      ptx::Param p = source_.body_params[o.index];
      p.offset = body_param_offsets_[o.index];
      out.push_back(std::move(p));
    }
    return {};
  };
  for (const Operand& o : i.operands) {
    if (o.kind == Kind::kList) {
      if (auto r = add_params(o, callee == nullptr ? site.results : site.arguments); !r) return r;
    } else if (o.kind == Kind::kFunction || o.kind == Kind::kRegister) {
      if (callee == nullptr) callee = &o;
    }
  }
  if (callee == nullptr) return Fail("the function to call is missing");
  std::optional<Place> handle;
  if (callee->kind == Kind::kFunction) {
    if (auto r = FindFunction(callee->name, site.callee); !r) return r;
    const CodeFunction& f = *context_.program.functions[site.callee];
    if (f.is_kernel) return Fail("a kernel cannot be called");
    if (f.params.size() != site.arguments.size() || f.returns.size() < site.results.size())
      return Fail("arguments do not fit the function");
  } else {
    auto p = Source(*callee, SlotClass::k64, ptx::Type::kU64);
    if (!p) return tl::unexpected(p.error());
    handle = *p;
  }
  function_.callees.push_back(site.callee);
  DraftInst& d = Emit(OpCall);
  d.diverts = true;
  d.inst.imm = static_cast<int64_t>(context_.program.call_sites.size());
  if (handle) Use(d, 0, *handle);
  context_.program.call_sites.push_back(std::move(site));
  return {};
}

// ld.param of a kernel's parameter is a move from the grid's area; those of functions live in frames.
GpuResult<void> FunctionDecoder::DecodeParamAccess(const ptx::Instruction&, const Operand& address, ptx::Type type,
                                                   const std::vector<const Operand*>& values, bool store) {
  const uint32_t size = ptx::SizeOf(type);
  const bool is_signed = IsSigned(type);
  const bool kernel_param = source_.is_kernel && !address.body_param && !address.return_param;
  const std::vector<ptx::Param>& list = address.body_param     ? source_.body_params
                                        : address.return_param ? function_.returns
                                                               : function_.params;
  if (address.index >= list.size()) return Fail("no such parameter");
  const ptx::Param& param = list[address.index];
  const CheckedSize bytes = CheckedSize(size) * values.size();
  if (address.offset < 0 || !Inside(static_cast<uint64_t>(address.offset), bytes.saturated(), param.bytes))
    return Fail("outside of the parameter");
  if (kernel_param && store) return Fail("a kernel's parameter cannot be written");
  uint32_t offset = MustFit<uint32_t>(uint64_t{address.body_param ? body_param_offsets_[address.index] : param.offset} +
                                      static_cast<uint64_t>(address.offset));
  for (const Operand* value : values) {
    if (store) {
      const SlotClass c = value->kind == Kind::kRegister ? classes_[value->index]
                          : size == 8                    ? SlotClass::k64
                                                         : SlotClass::k32;
      auto p = Source(*value, c, type);
      if (!p) return tl::unexpected(p.error());
      DraftInst& d = Emit(OpStoreCallParam);
      d.inst.aux = static_cast<uint8_t>(size | (c == SlotClass::k64 ? 0x20 : 0));
      d.inst.imm = offset;
      Use(d, 0, *p);
    } else if (value->kind != Kind::kSink) {
      if (value->kind != Kind::kRegister) return Fail("the destination is not a register");
      const SlotClass c = classes_[value->index];
      if (c == SlotClass::kPredicate) return Fail("a predicate holds no parameter");
      if (kernel_param) {
        const uint32_t slot_bytes = c == SlotClass::k64 ? 8 : 4;
        const auto [slot, fresh] =
            param_slots_.try_emplace({offset, size, slot_bytes, is_signed}, function_.grid_area_bytes);
        const uint32_t at = slot->second;
        if (fresh) {
          function_.param_slots.push_back(
              {offset, MustFit<uint8_t>(size), MustFit<uint8_t>(slot_bytes), is_signed, at});
          function_.grid_area_bytes = MustFit<uint32_t>(CheckedSize(at) + CheckedSize(slot_bytes) * kLanes);
        }
        DraftInst& d = Emit(context_.table.Find(slot_bytes == 8 ? "mov.b64" : "mov.b32")->fn);
        UseRegister(d, 0, value->index, true);
        Use(d, 1, {kGridArea, at, ptx::kNoIndex});
      } else {
        DraftInst& d = Emit(OpLoadCallParam);
        d.inst.aux = static_cast<uint8_t>(size | (is_signed ? 0x10 : 0) | (c == SlotClass::k64 ? 0x20 : 0));
        d.inst.imm = offset;
        UseRegister(d, 0, value->index, true);
      }
    }
    offset += size;
  }
  return {};
}

}  // namespace vgpud::soft
