// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/draft_builder.h"

#include <algorithm>

#include "gpu/soft/code/frame_layout.h"
#include "gpu/soft/code/register_file.h"

namespace vgpud::soft {
namespace {

// What a lane's block of `.param` variables is a multiple of.
constexpr uint64_t kBlockAlign = 16;
// Of a module, host memory; far above what compilers emit.
constexpr size_t kMostCode = 16u << 20;            // decoded instructions
constexpr size_t kMostConstantBytes = 512u << 20;  // an operand takes up to 256
constexpr uint32_t kMostGridArea = 32u << 20;      // of a kernel

}  // namespace

DraftBuilder::DraftBuilder(ModuleContext& context, uint32_t index, const std::vector<uint64_t>& shared,
                           uint64_t shared_end)
    : context_(context),
      source_(*context.module.functions[index]),
      function_(*context.program.functions[index]),
      index_(index),
      shared_(shared),
      shared_end_(shared_end) {}

tl::unexpected<GpuError> DraftBuilder::Fail(std::string_view why, CuStatus status) const {
  return GpuFail(status, fmt::format("PTX line {}: {}: `{}` in {}", current_->line, why, current_->text, source_.name));
}

void DraftBuilder::Begin(const ptx::Instruction& i) {
  current_ = &i;
  form_ = FormOf(i.opcode, i.modifiers);
  start_of_.push_back(MustFit<uint32_t>(draft_.size()));
}

void DraftBuilder::End(DraftInst&& last) {
  start_of_.push_back(MustFit<uint32_t>(draft_.size()));
  RestoreStack();
  Add(std::move(last));
}

// What a form has no number for counts as the first one.
uint16_t DraftBuilder::FormOf(std::string_view opcode, const std::vector<std::string_view>& modifiers) {
  if (!context_.what_for.profile) return 0;
  std::string form(opcode);
  for (const std::string_view modifier : modifiers) form.append(".").append(modifier);
  std::vector<std::string>& forms = context_.program.forms;
  if (forms.size() > UINT16_MAX) return 0;
  const auto [at, fresh] = context_.forms.emplace(std::move(form), static_cast<uint16_t>(forms.size()));
  if (fresh) forms.push_back(at->first);
  return at->second;
}

DraftInst& DraftBuilder::Emit(Handler fn) {
  DraftInst& d = draft_.emplace_back();
  d.inst.fn = fn;
  d.line = current_ != nullptr ? current_->line : source_.line;
  d.form = form_;
  return d;
}

void DraftBuilder::AddInPieces(DraftInst&& draft) {
  const Reg done = NewRegister(SlotClass::k32);
  DraftInst& start = Emit(Row("mov.b32")->fn);
  UseRegister(start, 0, done, true);
  UseConstant(start, 1, 0, 4);
  UseRegister(draft, kDoneOperand, done, false);
  UseRegister(draft, kDoneOperand, done, true);
  draft.diverts = true;
  draft.line = current_->line;
  Add(std::move(draft));
}

void DraftBuilder::SaveStack() {
  saved_stack_ = NewRegister(SlotClass::k64);
  UseRegister(Emit(OpStackSave), 0, saved_stack_, true);
}

void DraftBuilder::RestoreStack() {
  if (saved_stack_ != ptx::kNoIndex) UseRegister(Emit(OpStackRestore), 0, saved_stack_, false);
}

Reg DraftBuilder::NewRegister(SlotClass c) {
  classes_.push_back(c);
  return static_cast<Reg>(classes_.size() - 1);
}

Reg DraftBuilder::Carry() {
  if (carry_ == ptx::kNoIndex) carry_ = NewRegister(SlotClass::kPredicate);
  return carry_;
}

void DraftBuilder::UseRegister(DraftInst& d, uint8_t operand, Reg reg, bool write) {
  d.inst.base[operand] = kFrame;
  d.uses.push_back({reg, operand, write});
}

void DraftBuilder::UseConstant(DraftInst& d, uint8_t operand, uint64_t value, uint32_t lane_bytes) {
  d.inst.base[operand] = kConstants;
  d.inst.offset[operand] = context_.constants.Add(value, lane_bytes);
}

void DraftBuilder::Use(DraftInst& d, uint8_t operand, const Place& p) {
  d.inst.base[operand] = p.base;
  d.inst.offset[operand] = p.offset;
  if (p.reg != ptx::kNoIndex) d.uses.push_back({p.reg, operand, false});
}

void DraftBuilder::UseExtra(DraftInst& d, const Place& p, bool write) {
  if (p.reg != ptx::kNoIndex) d.uses.push_back({p.reg, MustFit<uint8_t>(kFirstExtra + d.extra.size()), write});
  d.extra.push_back({p.base, p.offset});
}

void DraftBuilder::UpdateExtra(DraftInst& d, Reg reg) {
  UseExtra(d, InRegister(reg), true);
  d.uses.push_back({reg, d.uses.back().operand, false});
}

Place DraftBuilder::Constant(uint64_t value, uint32_t lane_bytes) {
  return {kConstants, context_.constants.Add(value, lane_bytes), ptx::kNoIndex};
}

GpuResult<uint32_t> DraftBuilder::FindFunction(std::string_view name) const {
  const auto it = context_.program.function_index.find(std::string(name));
  if (it == context_.program.function_index.end()) return Fail(fmt::format("function {} is unknown", name));
  return it->second;
}

uint32_t DraftBuilder::ParamSlot(uint32_t offset, uint32_t bytes, uint32_t slot_bytes, bool is_signed) {
  const auto [slot, fresh] =
      param_slots_.try_emplace({offset, bytes, slot_bytes, is_signed}, function_.grid_area_bytes);
  const uint32_t at = slot->second;
  if (fresh) {
    function_.param_slots.push_back({offset, MustFit<uint8_t>(bytes), MustFit<uint8_t>(slot_bytes), is_signed, at});
    function_.grid_area_bytes = MustFit<uint32_t>(CheckedSize(at) + CheckedSize(slot_bytes) * kLanes);
  }
  return at;
}

GpuResult<void> DraftBuilder::LayOutLocals() {
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

void DraftBuilder::TakeRegisters() {
  for (const ptx::Register& r : source_.registers) classes_.push_back(soft::ClassOf(r.type));
  // Registers of 128 bits are two others, which follow each other.
  wide_.assign(source_.registers.size(), ptx::kNoIndex);
  for (Reg n = 0; n < wide_.size(); ++n) {
    if (source_.registers[n].type != ptx::Type::kB128) continue;
    wide_[n] = NewRegister(SlotClass::k64);
    NewRegister(SlotClass::k64);
  }
}

GpuResult<void> DraftBuilder::CheckLimits() const {
  if (draft_.size() > kMostCode - context_.program.code.size())
    return Fail(fmt::format("a module has at most {} instructions, counting what they are taken apart to", kMostCode));
  if (context_.constants.bytes.size() > kMostConstantBytes)
    return Fail(fmt::format("the numbers in the instructions of a module take more than {} bytes", kMostConstantBytes));
  if (function_.grid_area_bytes > kMostGridArea)
    return Fail(fmt::format("the parameters that a kernel reads take more than {} bytes", kMostGridArea));
  return {};
}

// As many as the kernel's values take, and no more than its launch bounds leave a thread. A kernel without bounds may
// be launched with as many threads as a block can have.
uint32_t DraftBuilder::Registers(const SlotPlan& plan) const {
  const uint32_t named = source_.most_registers != 0 ? source_.most_registers : kMostRegisters;
  const uint32_t fit = RegistersThatFit(function_.info.max_threads, std::max(source_.least_blocks, 1u));
  return std::clamp(plan.slots32 + 2 * plan.slots64, 1u, std::min({named, fit, kMostRegisters}));
}

GpuResult<void> DraftBuilder::WriteOut() {
  for (const auto& [draft, target] : branches_) draft_[draft].target = start_of_[target];
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
  function_.info.registers = Registers(plan);
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
    const Handler runs = inst.inner != nullptr ? inst.inner : inst.fn;
    if (runs == OpLoadCallParam || runs == OpStoreCallParam) {
      inst.offset[1] = function_.params_at;
      inst.offset[2] = function_.block_bytes;
    }
    // Index + 1 until the code array stops growing.
    if (d.target != ptx::kNoIndex)
      inst.target = reinterpret_cast<const Inst*>(uintptr_t{function_.entry} + d.target + 1);
    context_.program.code.push_back(inst);
    context_.program.origins.push_back({d.line, index_});
    if (context_.what_for.profile) context_.program.form_of.push_back(d.form);
  }
  return {};
}

}  // namespace vgpud::soft
