// SPDX-License-Identifier: Apache-2.0
// cp.async and mbarrier: two addresses, or an address among other operands.
#include <algorithm>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

// "cp.async.ca.shared.global [to], [from], size{, source size};" Rows: "@cp.async". Operands: to 0, from 1, source
// size 2.
GpuResult<void> DecodeAsyncCopy(DraftBuilder& out, const ptx::Instruction& i) {
  if (HasModifier(i, "bulk")) return DecodeBulkCopy(out, i);
  if (HasModifier(i, "mbarrier")) return DecodeBarrierObject(out, i);
  if (HasModifier(i, "commit_group") || HasModifier(i, "wait_group") || HasModifier(i, "wait_all"))
    return DecodePlain(out, i);
  const bool known =
      HasModifier(i, "async") && (HasModifier(i, "ca") || HasModifier(i, "cg")) && i.operands.size() >= 3;
  const OpRow* row = out.Row("@cp.async");
  if (!known || row == nullptr) return out.Unknown();
  const Operand& size = i.operands[2];
  if (size.kind != Operand::Kind::kImmediate || (size.bits != 4 && size.bits != 8 && size.bits != 16))
    return out.Fail("a copy of 4, 8 or 16 bytes was expected");
  if (HasModifier(i, "cg") && size.bits != 16) return out.Fail("past the first cache, only 16 bytes can be copied");
  const size_t operands = i.operands.size() - PolicyOperands(i);
  if (operands > 4) return out.Fail("there are too many operands");

  DraftInst draft;
  bool address32 = false;
  auto to = out.MemoryAddress(i.operands[0], ptx::Space::kShared, draft, address32);
  if (!to) return tl::unexpected(to.error());
  DraftInst source;
  bool source32 = false;
  auto from = out.MemoryAddress(i.operands[1], ptx::Space::kGlobal, source, source32);
  if (!from) return tl::unexpected(from.error());
  if (source32) return out.Fail("the global address is a 32-bit register");
  if (source.inst.imm != 0) {
    const Reg sum = out.NewRegister(SlotClass::k64);
    DraftInst& add = out.Emit(out.Row("add.u64")->fn);
    out.UseRegister(add, 0, sum, true);
    out.Use(add, 1, *from);
    out.UseConstant(add, 2, static_cast<uint64_t>(source.inst.imm), 8);
    from = InRegister(sum);
  }
  Place read = out.Constant(size.bits, 4);
  if (operands == 4) {
    auto p = out.Source(i.operands[3], SlotClass::k32, ptx::Type::kU32);
    if (!p) return tl::unexpected(p.error());
    read = *p;
  }
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(size.bits);
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.line = i.line;
  out.Use(draft, 0, *to);
  out.Use(draft, 1, *from);
  out.Use(draft, 2, read);
  out.Add(std::move(draft));
  return {};
}

// Rows: "@mbarrier.<what>" with the operands: address 0, result 1, value 2 (count, state or parity).
GpuResult<void> DecodeBarrierObject(DraftBuilder& out, const ptx::Instruction& i) {
  if (HasModifier(i, "pending_count")) return DecodePlain(out, i);
  constexpr std::string_view kQualifiers[] = {
      "shared",  "shared::cta", "b64",   "release", "acquire",  "relaxed",        "cta",
      "cluster", "noComplete",  "noinc", "async",   "mbarrier", "shared::cluster"};
  std::string key = i.opcode == "cp" ? "@cp.async.mbarrier.arrive" : "@mbarrier";
  for (const std::string_view m : i.modifiers) {
    if (m == "noinc" && i.opcode == "cp") key += ".noinc";
    if (std::find(std::begin(kQualifiers), std::end(kQualifiers), m) == std::end(kQualifiers) &&
        !(i.opcode == "cp" && m == "arrive"))
      key += fmt::format(".{}", m);
  }
  const OpRow* row = out.Row(key);
  if (row == nullptr) return out.Unknown();
  const std::string_view signature =
      row->operands;  // D, P: a result comes first; a, A: a value follows; ? may be missing
  const bool has_result = signature.find_first_of("DP") != std::string_view::npos;
  const size_t at = has_result ? 1 : 0;
  if (i.operands.size() <= at) return out.Fail("operands are missing");
  DraftInst draft;
  bool address32 = false;
  const ptx::Space space = SpaceOf(i);
  auto address = out.MemoryAddress(i.operands[at], space, draft, address32);
  if (!address) return tl::unexpected(address.error());
  const MemSpace where = space == ptx::Space::kShared ? MemSpace::kShared : MemSpace::kGeneric;
  if (address32 && where != MemSpace::kShared) return out.Fail("a generic address is a 32-bit register");
  out.Use(draft, 0, *address);
  Target target;
  if (has_result) {
    auto t = out.Destination(i.operands[0], signature.front() == 'P' ? SlotClass::kPredicate : SlotClass::k64);
    if (!t) return tl::unexpected(t.error());
    target = *t;
    out.UseRegister(draft, 1, target.reg, true);
  }
  if (i.operands.size() > at + 1) {
    const bool wide = signature.find('A') != std::string_view::npos;
    if (signature.find_first_of("aA") == std::string_view::npos) return out.Fail("there are too many operands");
    auto p = out.Source(i.operands[at + 1], wide ? SlotClass::k64 : SlotClass::k32,
                        wide ? ptx::Type::kB64 : ptx::Type::kU32);
    if (!p) return tl::unexpected(p.error());
    out.Use(draft, 2, *p);
  } else if (signature.find('?') != std::string_view::npos || signature.find_first_of("aA") == std::string_view::npos) {
    out.Use(draft, 2, out.Constant(1, 4));
  } else {
    return out.Fail("operands are missing");
  }
  draft.inst.fn = row->fn;
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.inst.aux = static_cast<uint8_t>(where);
  draft.line = i.line;
  out.Add(std::move(draft));
  if (has_result && signature.front() == 'D') out.Finish(target, false);
  return {};
}

}  // namespace vgpud::soft
