// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/function.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "gpu/soft/code/frame_layout.h"
#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {
namespace {
// Instructions with a destination "d|p" or "p|q".
constexpr std::string_view kPairs[] = {"setp", "shfl", "match", "elect"};
// Where the `.param` variables of a body begin, per lane, and what a lane's block is a multiple of.
constexpr uint64_t kBlockAlign = 16;
// Of a module, host memory; far above what compilers emit.
constexpr size_t kMostCode = 16u << 20;            // decoded instructions
constexpr size_t kMostConstantBytes = 512u << 20;  // an operand takes up to 256
constexpr uint32_t kMostGridArea = 32u << 20;      // of a kernel
constexpr std::string_view kOnTextures[] = {"tex", "tld4", "txq", "suld", "sust", "sured", "suq"};
}  // namespace

GpuResult<void> FunctionDecoder::DecodeOne(const ptx::Instruction& i) {
  const size_t begin = draft_.size();
  if (!ModifiersAreKnown(i)) return Unknown();
  for (const Operand& o : i.operands) {
    const bool pair =
        &o == i.operands.data() && std::find(std::begin(kPairs), std::end(kPairs), i.opcode) != std::end(kPairs);
    if (o.second != ptx::kNoIndex && !pair) return Fail("two registers where one was expected");
  }
  // A guard around what changes control flow, or around several instructions, becomes a branch.
  const bool guarded = i.guard != ptx::kNoIndex;
  Status r;
  if (i.opcode == "bra") {
    r = DecodeBranch(i);
    if (r && guarded) {
      DraftInst& d = draft_.back();
      d.inst.fn = OpBranchIf;
      d.falls_through = true;
      d.inst.flags = i.guard_negated ? kGuardNegated : 0;
      UseRegister(d, kGuardOperand, i.guard, false);
    }
    return r;
  }
  const size_t skip = begin;
  if (guarded) {
    DraftInst& d = Emit(OpBranchIf);
    d.inst.flags = i.guard_negated ? 0 : kGuardNegated;
    UseRegister(d, kGuardOperand, i.guard, false);
  }
  if (i.opcode == "ret") {
    Emit(source_.is_kernel ? OpExit : OpReturn).falls_through = false;
  } else if (i.opcode == "call") {
    r = DecodeCall(i);
  } else if (i.opcode == "brx") {
    r = DecodeIndexedBranch(i);
  } else if (i.opcode == "ld" || i.opcode == "st" || i.opcode == "ldu") {
    r = DecodeMemory(i);
  } else if (i.opcode == "atom" || i.opcode == "red") {
    r = DecodeAtomic(i);
  } else if (i.opcode == "wmma" || i.opcode == "mma" || i.opcode == "ldmatrix") {
    r = DecodeMatrix(i);
  } else if (std::find(std::begin(kOnTextures), std::end(kOnTextures), i.opcode) != std::end(kOnTextures)) {
    r = DecodeTexture(i);
  } else if (IsVideo(i.opcode)) {
    r = DecodeVideo(i);
  } else if (i.opcode == "cp") {
    r = DecodeAsyncCopy(i);
  } else if (i.opcode == "mbarrier" && !HasModifier(i, "pending_count")) {
    r = DecodeBarrierObject(i);
  } else if (i.opcode == "createpolicy") {
    r = DecodeCachePolicy(i);
  } else if (i.opcode == "cvta") {
    r = DecodeCvta(i);
  } else if (i.opcode == "isspacep") {
    r = DecodeIsSpaceP(i);
  } else if (i.opcode == "mov" && i.operands.size() == 2 &&
             (i.operands[0].kind == Kind::kVector || i.operands[1].kind == Kind::kVector)) {
    r = DecodeMove(i);
  } else {
    r = DecodePlain(i);
  }
  // What writes to shared memory without being followed.
  if (r && context_.check && (i.opcode == "cp" || i.opcode == "mbarrier" || i.opcode == "wmma")) Emit(OpSharedUnknown);
  if (!r || !guarded) return r;
  // One ordinary instruction runs under the guard itself.
  const DraftInst& only = draft_.back();
  const bool simple = draft_.size() == skip + 2 && only.inst.inner == nullptr && only.falls_through &&
                      std::none_of(only.uses.begin(), only.uses.end(),
                                   [](const RegisterUse& u) { return u.operand == kGuardOperand; }) &&
                      only.inst.base[kGuardOperand] == kFrame && only.inst.offset[kGuardOperand] == 0 && !only.diverts;
  if (simple) {
    draft_.erase(draft_.begin() + static_cast<ptrdiff_t>(skip));
    DraftInst& d = draft_.back();
    d.inst.inner = d.inst.fn;
    d.inst.fn = OpGuarded;
    d.conditional = true;
    if (i.guard_negated) d.inst.flags |= kGuardNegated;
    UseRegister(d, kGuardOperand, i.guard, false);
    return r;
  }
  draft_[skip].target = MustFit<uint32_t>(draft_.size());
  return r;
}

GpuResult<void> FunctionDecoder::LayOutLocals() {
  CheckedSize shared = shared_end_;
  CheckedSize local;
  for (const ptx::Variable& v : source_.variables) {
    if (v.space == ptx::Space::kShared && v.bytes != 0) {
      shared = shared.AlignedUp(v.align);
      variable_offsets_.push_back(shared.saturated());
      shared += v.bytes;
    } else if (v.space == ptx::Space::kLocal) {
      local = local.AlignedUp(std::max<uint64_t>(v.align, 8));
      variable_offsets_.push_back(local.saturated());
      local += v.bytes;
    } else {
      variable_offsets_.push_back(0);
    }
  }
  if (!local.Fits(kWindowBytes) || !shared.Fits(kWindowBytes))
    return GpuFail(CuStatus::kInvalidPtx, fmt::format("variables of {} are too large", source_.name));
  function_.local_bytes = MustFit<uint32_t>(local.AlignedUp(16));
  function_.shared_bytes = MustFit<uint32_t>(shared);
  // Where body .params lie, the parser has decided: those of blocks that have ended share their bytes.
  const uint64_t begin = RoundUp(function_.block_bytes, kBlockAlign);
  uint64_t end = begin;
  for (const ptx::Param& p : source_.body_params) {
    body_param_offsets_.push_back(MustFit<uint32_t>(begin + p.offset));
    end = std::max(end, begin + p.offset + p.bytes);
  }
  function_.block_bytes = MustFit<uint32_t>(RoundUp(end, kBlockAlign));
  return {};
}

GpuResult<void> FunctionDecoder::Decode() {
  if (auto r = LayOutLocals(); !r) return r;
  function_.grid_area_bytes = kGridAreaFixed;
  for (const ptx::Register& r : source_.registers) {
    if (ptx::SizeOf(r.type) > 8)
      return GpuFail(CuStatus::kNotSupported,
                     fmt::format("register {} of {} is wider than 64 bits", r.name, source_.name));
    classes_.push_back(ClassOf(r.type));
  }
  for (const ptx::Instruction& i : source_.code) {
    current_ = &i;
    start_of_.push_back(MustFit<uint32_t>(draft_.size()));
    if (auto r = DecodeOne(i); !r) return r;
    if (draft_.size() > kMostCode - context_.program.code.size())
      return Fail(
          fmt::format("a module has at most {} instructions, counting what they are taken apart to", kMostCode));
    if (context_.constants.bytes.size() > kMostConstantBytes)
      return Fail(
          fmt::format("the numbers in the instructions of a module take more than {} bytes", kMostConstantBytes));
    if (function_.grid_area_bytes > kMostGridArea)
      return Fail(fmt::format("the parameters that a kernel reads take more than {} bytes", kMostGridArea));
  }
  start_of_.push_back(MustFit<uint32_t>(draft_.size()));
  // Falling off the end is the same as ret.
  DraftInst last;
  last.inst.fn = source_.is_kernel ? OpExit : OpReturn;
  last.falls_through = false;
  last.line = source_.code.empty() ? source_.line : source_.code.back().line;
  draft_.push_back(std::move(last));
  for (const auto& [draft, target] : branches_) draft_[draft].target = start_of_[target];
  return WriteOut();
}

GpuResult<void> FunctionDecoder::WriteOut() {
  const SlotPlan plan = AllocateSlots(draft_, classes_, sizeof(FrameHeader), kMaxStackBytes);
  const CheckedSize frame =
      (CheckedSize(plan.frame_bytes) + CheckedSize(function_.block_bytes) * kLanes).AlignedUp(kSlotAlign);
  if (!frame.Fits(kMaxStackBytes))
    return GpuFail(CuStatus::kInvalidPtx,
                   fmt::format("registers and parameters of {} need {} bytes of a warp's stack, at most {}",
                               source_.name, frame.saturated(), kMaxStackBytes));
  function_.params_at = MustFit<uint32_t>(plan.frame_bytes);
  function_.frame_bytes = MustFit<uint32_t>(frame);
  function_.entry = MustFit<uint32_t>(context_.program.code.size());
  function_.info.registers = std::clamp(plan.slots32 + 2 * plan.slots64, 1u, 255u);
  function_.info.static_shared_bytes = function_.shared_bytes;
  for (DraftInst& d : draft_) {
    Inst inst = d.inst;
    for (const RegisterUse& u : d.uses) {
      if (u.operand < kFirstExtra) {
        inst.offset[u.operand] = plan.offset[u.reg];
      } else {
        d.extra[u.operand - kFirstExtra].offset = plan.offset[u.reg];
      }
    }
    if (!d.extra.empty()) {
      inst.offset[kExtraOperand] = MustFit<uint32_t>(context_.program.extra.size());
      context_.program.extra.insert(context_.program.extra.end(), d.extra.begin(), d.extra.end());
    }
    if (inst.fn == OpLoadCallParam || inst.fn == OpStoreCallParam) {
      inst.offset[1] = function_.params_at;
      inst.offset[2] = function_.block_bytes;
    }
    // Index + 1 until the code array stops growing.
    if (d.target != ptx::kNoIndex)
      inst.target = reinterpret_cast<const Inst*>(uintptr_t{function_.entry} + d.target + 1);
    context_.program.code.push_back(inst);
    context_.program.origins.push_back({d.line, index_});
  }
  return {};
}

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
      f.info.ptx_version = module.target;
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
  return FunctionDecoder(context, index, shared_offsets, shared_end).Decode();
}

}  // namespace vgpud::soft
