// SPDX-License-Identifier: Apache-2.0
// cp.async and mbarrier: two addresses, or an address among other operands.
#include <algorithm>

#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

// "cp.async.ca.shared.global [to], [from], size{, source size};" Rows: "@cp.async". Operands: to 0, from 1, source
// size 2.
GpuResult<void> FunctionDecoder::DecodeAsyncCopy(const ptx::Instruction& i) {
  if (HasModifier(i, "mbarrier")) return DecodeBarrierObject(i);
  if (HasModifier(i, "commit_group") || HasModifier(i, "wait_group") || HasModifier(i, "wait_all"))
    return DecodePlain(i);
  const bool known = HasModifier(i, "async") && (HasModifier(i, "ca") || HasModifier(i, "cg")) &&
                     !HasModifier(i, "bulk") && i.operands.size() >= 3;
  const OpRow* row = context_.table.Find("@cp.async");
  if (!known || row == nullptr) return Unknown();
  const Operand& size = i.operands[2];
  if (size.kind != Kind::kImmediate || (size.bits != 4 && size.bits != 8 && size.bits != 16))
    return Fail("a copy of 4, 8 or 16 bytes was expected");
  if (HasModifier(i, "cg") && size.bits != 16) return Fail("past the first cache, only 16 bytes can be copied");
  const size_t operands = i.operands.size() - PolicyOperands(i);
  if (operands > 4) return Fail("there are too many operands");

  DraftInst draft;
  bool address32 = false;
  auto to = MemoryAddress(i.operands[0], ptx::Space::kShared, draft, address32);
  if (!to) return tl::unexpected(to.error());
  DraftInst source;
  bool source32 = false;
  auto from = MemoryAddress(i.operands[1], ptx::Space::kGlobal, source, source32);
  if (!from) return tl::unexpected(from.error());
  if (source32) return Fail("the global address is a 32-bit register");
  if (source.inst.imm != 0) {
    const Reg sum = NewRegister(SlotClass::k64);
    DraftInst& add = Emit(context_.table.Find("add.u64")->fn);
    UseRegister(add, 0, sum, true);
    Use(add, 1, *from);
    UseConstant(add, 2, static_cast<uint64_t>(source.inst.imm), 8);
    from = InRegister(sum);
  }
  Place read = Constant(size.bits, 4);
  if (operands == 4) {
    auto p = Source(i.operands[3], SlotClass::k32, ptx::Type::kU32);
    if (!p) return tl::unexpected(p.error());
    read = *p;
  }
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(size.bits);
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.line = i.line;
  Use(draft, 0, *to);
  Use(draft, 1, *from);
  Use(draft, 2, read);
  draft_.push_back(std::move(draft));
  return {};
}

// Rows: "@mbarrier.<what>" with the operands: address 0, result 1, value 2 (count, state or parity).
GpuResult<void> FunctionDecoder::DecodeBarrierObject(const ptx::Instruction& i) {
  constexpr std::string_view kQualifiers[] = {"shared", "shared::cta", "b64",        "release", "acquire", "relaxed",
                                              "cta",    "cluster",     "noComplete", "noinc",   "async",   "mbarrier"};
  std::string key = i.opcode == "cp" ? "@cp.async.mbarrier.arrive" : "@mbarrier";
  for (const std::string_view m : i.modifiers) {
    if (m == "noinc" && i.opcode == "cp") key += ".noinc";
    if (std::find(std::begin(kQualifiers), std::end(kQualifiers), m) == std::end(kQualifiers) &&
        !(i.opcode == "cp" && m == "arrive"))
      key += fmt::format(".{}", m);
  }
  const OpRow* row = context_.table.Find(key);
  if (row == nullptr) return Unknown();
  const std::string_view signature =
      row->operands;  // D, P: a result comes first; a, A: a value follows; ? may be missing
  const bool has_result = signature.find_first_of("DP") != std::string_view::npos;
  const size_t at = has_result ? 1 : 0;
  if (i.operands.size() <= at) return Fail("operands are missing");
  DraftInst draft;
  bool address32 = false;
  auto address = MemoryAddress(i.operands[at], ptx::Space::kShared, draft, address32);
  if (!address) return tl::unexpected(address.error());
  Use(draft, 0, *address);
  Target target;
  if (has_result) {
    auto t = Destination(i.operands[0], signature.front() == 'P' ? SlotClass::kPredicate : SlotClass::k64);
    if (!t) return tl::unexpected(t.error());
    target = *t;
    UseRegister(draft, 1, target.reg, true);
  }
  if (i.operands.size() > at + 1) {
    const bool wide = signature.find('A') != std::string_view::npos;
    if (signature.find_first_of("aA") == std::string_view::npos) return Fail("there are too many operands");
    auto p =
        Source(i.operands[at + 1], wide ? SlotClass::k64 : SlotClass::k32, wide ? ptx::Type::kB64 : ptx::Type::kU32);
    if (!p) return tl::unexpected(p.error());
    Use(draft, 2, *p);
  } else if (signature.find('?') != std::string_view::npos || signature.find_first_of("aA") == std::string_view::npos) {
    Use(draft, 2, Constant(1, 4));
  } else {
    return Fail("operands are missing");
  }
  draft.inst.fn = row->fn;
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.line = i.line;
  draft_.push_back(std::move(draft));
  return has_result && signature.front() == 'D' ? Finish(target, false) : Status{};
}

}  // namespace vgpud::soft
