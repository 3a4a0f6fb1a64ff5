// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/function.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "gpu/soft/code/frame_layout.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {
namespace {

// Instructions with a destination "d|p" or "p|q".
constexpr std::string_view kPairs[] = {"setp", "shfl", "match", "elect"};

GpuResult<void> CheckPairs(DraftBuilder& out, const ptx::Instruction& i) {
  const bool has_pair = std::find(std::begin(kPairs), std::end(kPairs), i.opcode) != std::end(kPairs);
  for (const ptx::Operand& o : i.operands)
    if (o.second != ptx::kNoIndex && !(has_pair && &o == i.operands.data()))
      return out.Fail("two registers where one was expected");
  return {};
}

void GuardBy(DraftInst& d, const ptx::Instruction& i, bool negated) {
  if (negated) d.inst.flags |= kGuardNegated;
  DraftBuilder::UseRegister(d, kGuardOperand, i.guard, false);
}

// An ordinary instruction: it can run under its guard itself.
bool CanRunGuarded(const DraftInst& d) {
  return d.inst.inner == nullptr && d.falls_through && !d.diverts && d.inst.base[kGuardOperand] == kFrame &&
         d.inst.offset[kGuardOperand] == 0 &&
         std::none_of(d.uses.begin(), d.uses.end(), [](const RegisterUse& u) { return u.operand == kGuardOperand; });
}

// `@p bra`: the branch itself becomes conditional.
GpuResult<void> DecodeGuardedBranch(DraftBuilder& out, const ptx::Instruction& i) {
  if (auto r = DecodeBranch(out, i); !r) return r;
  DraftInst& d = out.draft().back();
  d.inst.fn = OpBranchIf;
  d.falls_through = true;
  GuardBy(d, i, i.guard_negated);
  return {};
}

GpuResult<void> DecodeAs(DraftBuilder& out, const ptx::Instruction& i, const Family& family) {
  if (auto r = family.decode(out, i); !r) return r;
  if (out.check() && family.writes_unseen) out.Emit(OpSharedUnknown);
  return {};
}

// A guard around what changes control flow, or around several instructions, becomes a branch.
GpuResult<void> DecodeGuarded(DraftBuilder& out, const ptx::Instruction& i, const Family& family) {
  const size_t skip = out.draft().size();
  GuardBy(out.Emit(OpBranchIf), i, !i.guard_negated);
  if (auto r = DecodeAs(out, i, family); !r) return r;
  std::vector<DraftInst>& draft = out.draft();
  if (draft.size() == skip + 2 && CanRunGuarded(draft.back())) {
    draft.erase(draft.begin() + static_cast<ptrdiff_t>(skip));
    DraftInst& d = draft.back();
    d.inst.inner = d.inst.fn;
    d.inst.fn = OpGuarded;
    d.conditional = true;
    GuardBy(d, i, i.guard_negated);
    return {};
  }
  draft[skip].target = MustFit<uint32_t>(draft.size());
  return {};
}

bool TakesLocal(const ptx::Instruction& i) { return i.opcode == "alloca"; }

GpuResult<void> DecodeOne(DraftBuilder& out, const ptx::Instruction& i) {
  if (!ModifiersAreKnown(i)) return out.Unknown();
  if (auto r = CheckPairs(out, i); !r) return r;
  const Family& family = FamilyOf(i.opcode);
  if (i.guard == ptx::kNoIndex) return DecodeAs(out, i, family);
  return family.decode == DecodeBranch ? DecodeGuardedBranch(out, i) : DecodeGuarded(out, i, family);
}

}  // namespace

uint32_t ConstantPool::Add(uint64_t value, uint32_t lane_bytes) {
  if (lane_bytes == 4) value &= 0xffffffff;
  const auto [at, fresh] = known.emplace(std::pair(value, lane_bytes), MustFit<uint32_t>(bytes.size()));
  if (!fresh) return at->second;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const size_t end = bytes.size();
    bytes.resize(end + lane_bytes);
    std::memcpy(bytes.data() + end, &value, lane_bytes);
  }
  return at->second;
}

uint32_t ConstantPool::AddAddress(uint32_t variable, uint64_t addend, uint32_t lane_bytes) {
  const auto [at, fresh] =
      known_addresses.emplace(std::tuple(variable, addend, lane_bytes), MustFit<uint32_t>(bytes.size()));
  if (!fresh) return at->second;
  bytes.resize(bytes.size() + size_t{kLanes} * lane_bytes);
  addresses.push_back({at->second, lane_bytes, variable, addend});
  return at->second;
}

uint32_t ConstantPool::AddLanes(const uint32_t (&lanes)[kLanes]) {
  const auto at = MustFit<uint32_t>(bytes.size());
  bytes.resize(at + sizeof(lanes));
  std::memcpy(bytes.data() + at, lanes, sizeof(lanes));
  return at;
}

void LayOutParameters(const ptx::Module& module, ProgramCode& program) {
  for (size_t n = 0; n < module.functions.size(); ++n) {
    const ptx::Function& source = *module.functions[n];
    CodeFunction& f = *program.functions[n];
    f.params = source.params;
    f.returns = source.returns;
    std::copy(std::begin(source.max_threads), std::end(source.max_threads), f.required_threads);
    if (source.is_kernel) {
      f.info.param_bytes = source.param_bytes;
      for (const ptx::Param& p : source.params) f.info.params.push_back({p.offset, p.bytes});
      CheckedSize threads = 1u;
      for (const uint32_t m : source.max_threads) threads *= std::max(m, 1u);
      if (source.max_threads[0] != 0) f.info.max_threads = threads.Fits(1024) ? MustFit<uint32_t>(threads) : 1024;
      if (!source.required_threads) std::fill(std::begin(f.required_threads), std::end(f.required_threads), 0);
      f.info.ptx_version = module.target.sm;
      std::copy(std::begin(source.cluster), std::end(source.cluster), f.info.cluster);
      f.info.most_cluster_blocks = source.most_cluster_blocks;
      f.info.needs_cluster = source.explicit_cluster;
      continue;
    }
    // What the parser lets through is far below 2^32: two lists, each at most kParamBytes without the alignment to 8.
    CheckedSize at;
    for (std::vector<ptx::Param>* list : {&f.params, &f.returns}) {
      for (ptx::Param& p : *list) {
        at = at.AlignedUp(std::max(p.align, 8u));
        p.offset = MustFit<uint32_t>(at);
        at += p.bytes;
      }
    }
    f.block_bytes = MustFit<uint32_t>(at);
  }
}

GpuResult<void> DecodeFunction(ModuleContext& context, uint32_t index, const std::vector<uint64_t>& shared_offsets,
                               uint64_t shared_end) {
  DraftBuilder out(context, index, shared_offsets, shared_end);
  if (auto r = out.LayOutLocals(); !r) return r;
  out.function().grid_area_bytes = kGridAreaFixed;
  out.TakeRegisters();
  const ptx::Function& source = out.source();
  if (!source.is_kernel && std::any_of(source.code.begin(), source.code.end(), TakesLocal)) out.SaveStack();
  for (const ptx::Instruction& i : source.code) {
    out.Begin(i);
    if (auto r = DecodeOne(out, i); !r) return r;
    if (auto r = out.CheckLimits(); !r) return r;
  }
  // Falling off the end is the same as ret.
  DraftInst last;
  last.inst.fn = source.is_kernel ? OpExit : OpReturn;
  last.falls_through = false;
  last.line = source.code.empty() ? source.line : source.code.back().line;
  out.End(std::move(last));
  return out.WriteOut();
}

}  // namespace vgpud::soft
