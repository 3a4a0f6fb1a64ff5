// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/checked.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

GpuResult<void> DecodeBranch(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() != 1 || i.operands[0].kind != Operand::Kind::kLabel) return out.Fail("a label was expected");
  DraftInst& d = out.Emit(OpBranch);
  d.falls_through = false;
  out.BranchesTo(i.operands[0].index);
  d.target = i.operands[0].index;
  return {};
}

// A table of labels: one comparison and branch after the other. An index beyond the table goes on below.
GpuResult<void> DecodeIndexedBranch(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() != 2 || i.operands[1].kind != Operand::Kind::kList)
    return out.Fail("an index and labels were expected");
  auto index = out.Source(i.operands[0], SlotClass::k32, ptx::Type::kU32);
  if (!index) return tl::unexpected(index.error());
  const auto& labels = i.operands[1].elements;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (labels[n].kind != Operand::Kind::kLabel) return out.Fail("a label was expected");
    const Reg hit = out.NewRegister(SlotClass::kPredicate);
    DraftInst& compare = out.Emit(out.Row("setp.eq.u32")->fn);
    out.UseRegister(compare, 0, hit, true);
    out.UseRegister(compare, 1, out.NewRegister(SlotClass::kPredicate), true);
    out.Use(compare, 2, *index);
    out.UseConstant(compare, 3, n, 4);
    DraftInst& branch = out.Emit(OpBranchIf);
    out.UseRegister(branch, kGuardOperand, hit, false);
    out.BranchesTo(labels[n].index);
  }
  return {};
}

GpuResult<void> DecodeCall(DraftBuilder& out, const ptx::Instruction& i) {
  CallSite site;
  site.caller = out.index();
  const Operand* callee = nullptr;
  const auto add_params = [&](const Operand& list, std::vector<ptx::Param>& to) -> GpuResult<void> {
    for (const Operand& o : list.elements) {
      if (o.kind != Operand::Kind::kParam || !o.body_param)
        return out.Fail("call arguments other than .param variables", CuStatus::kNotSupported);
      ptx::Param p = out.source().body_params[o.index];
      p.offset = out.BodyParamOffset(o.index);
      to.push_back(std::move(p));
    }
    return {};
  };
  for (const Operand& o : i.operands) {
    if (o.kind == Operand::Kind::kList) {
      if (auto r = add_params(o, callee == nullptr ? site.results : site.arguments); !r) return r;
    } else if (o.kind == Operand::Kind::kFunction || o.kind == Operand::Kind::kRegister) {
      if (callee == nullptr) callee = &o;
    }
  }
  if (callee == nullptr) return out.Fail("the function to call is missing");
  std::optional<Place> handle;
  if (callee->kind == Operand::Kind::kFunction) {
    const auto found = out.FindFunction(callee->name);
    if (!found) return tl::unexpected(found.error());
    site.callee = *found;
    const CodeFunction& f = *out.program().functions[site.callee];
    if (f.is_kernel) return out.Fail("a kernel cannot be called");
    if (f.params.size() != site.arguments.size() || f.returns.size() < site.results.size())
      return out.Fail("arguments do not fit the function");
  } else {
    auto p = out.Source(*callee, SlotClass::k64, ptx::Type::kU64);
    if (!p) return tl::unexpected(p.error());
    handle = *p;
  }
  out.function().callees.push_back(site.callee);
  DraftInst& d = out.Emit(OpCall);
  d.diverts = true;
  d.inst.imm = static_cast<int64_t>(out.program().call_sites.size());
  if (handle) out.Use(d, 0, *handle);
  out.program().call_sites.push_back(std::move(site));
  return {};
}

// Where a kernel ends is where its function does.
GpuResult<void> DecodeReturn(DraftBuilder& out, const ptx::Instruction&) {
  out.RestoreStack();
  out.Emit(out.source().is_kernel ? OpExit : OpReturn).falls_through = false;
  return {};
}

}  // namespace vgpud::soft
