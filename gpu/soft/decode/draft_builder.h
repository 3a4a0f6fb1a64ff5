// SPDX-License-Identifier: Apache-2.0
// How one function is decoded: a pass over its instructions that fills draft_ (decode_*.cc, one file per kind of
// instruction), then registers get slots and the draft becomes code (decode_function.cc).
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "gpu/soft/code/texture_form.h"
#include "gpu/soft/decode/function.h"
#include "gpu/soft/decode/slots.h"
#include "gpu/soft/run/access_check.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

// What an instruction's modifiers say.
bool HasModifier(const ptx::Instruction& i, std::string_view modifier);
// 1 if the last operand is a cache policy, which changes nothing here.
inline size_t PolicyOperands(const ptx::Instruction& i) { return HasModifier(i, "L2::cache_hint") ? 1 : 0; }
ptx::Type FirstType(const ptx::Instruction& i);
ptx::Type LastType(const ptx::Instruction& i);
ptx::Space SpaceOf(const ptx::Instruction& i);
bool IsSpaceModifier(std::string_view modifier);
bool IsVideo(std::string_view opcode);
// False: a modifier that an instruction with rows of the decoder's own cannot have.
bool ModifiersAreKnown(const ptx::Instruction& i);
bool IsSigned(ptx::Type type);
SlotClass ClassOf(ptx::Type type);

inline uint64_t RoundUp(uint64_t v, uint64_t to) { return CheckedSize(v).AlignedUp(to).saturated(); }

// Decodes one function; what it has of its own is gone when Decode() has returned.
class FunctionDecoder {
 public:
  FunctionDecoder(ModuleContext& context, uint32_t index, const std::vector<uint64_t>& shared, uint64_t shared_end)
      : context_(context),
        source_(*context.module.functions[index]),
        function_(*context.program.functions[index]),
        index_(index),
        shared_(shared),
        shared_end_(shared_end) {}

  GpuResult<void> Decode();

 private:
  using Operand = ptx::Operand;
  using Kind = Operand::Kind;
  using Status = GpuResult<void>;
  using Reg = uint32_t;

  tl::unexpected<GpuError> Fail(std::string_view why, CuStatus status = CuStatus::kInvalidPtx) const {
    return GpuFail(status,
                   fmt::format("PTX line {}: {}: `{}` in {}", current_->line, why, current_->text, source_.name));
  }
  Status Unknown() const { return Fail("no such instruction, or not one that the soft GPU has"); }

  // --- building ---
  DraftInst& Emit(Handler fn) {
    DraftInst& d = draft_.emplace_back();
    d.inst.fn = fn;
    d.line = current_->line;
    return d;
  }
  Status EmitRow(std::string_view key, std::initializer_list<std::pair<Reg, bool>> registers);
  Reg NewRegister(SlotClass c) {
    classes_.push_back(c);
    return static_cast<Reg>(classes_.size() - 1);
  }
  void UseRegister(DraftInst& d, uint8_t operand, Reg reg, bool write) {
    d.inst.base[operand] = kFrame;
    d.uses.push_back({reg, operand, write});
  }
  void UseConstant(DraftInst& d, uint8_t operand, uint64_t value, uint32_t lane_bytes) {
    d.inst.base[operand] = kConstants;
    d.inst.offset[operand] = context_.constants.Add(value, lane_bytes);
  }

  // A source operand: where its 32 lanes are. Emits what has to run before.
  struct Place {
    uint8_t base = kConstants;
    uint32_t offset = 0;
    Reg reg = ptx::kNoIndex;
  };
  static Place InRegister(Reg reg) { return {kFrame, 0, reg}; }
  Place Constant(uint64_t value, uint32_t lane_bytes) {
    return {kConstants, context_.constants.Add(value, lane_bytes), ptx::kNoIndex};
  }
  void Use(DraftInst& d, uint8_t operand, const Place& p) {
    d.inst.base[operand] = p.base;
    d.inst.offset[operand] = p.offset;
    if (p.reg != ptx::kNoIndex) d.uses.push_back({p.reg, operand, false});
  }
  void UseExtra(DraftInst& d, const Place& p, bool write = false) {
    if (p.reg != ptx::kNoIndex) d.uses.push_back({p.reg, MustFit<uint8_t>(kFirstExtra + d.extra.size()), write});
    d.extra.push_back({p.base, p.offset});
  }
  GpuResult<Place> Source(const Operand& o, SlotClass c, ptx::Type type);
  GpuResult<Place> Predicate(const Operand& o);
  GpuResult<Place> AddressOf(const Operand& o, uint32_t lane_bytes);
  GpuResult<Place> Special(std::string_view name, SlotClass c);
  // A register to be written; `fix` is what must run afterwards to bring it to the operand's width.
  struct Target {
    Reg reg = ptx::kNoIndex;
    Reg widen_to = ptx::kNoIndex;
    Reg narrow_to = ptx::kNoIndex;
  };
  GpuResult<Target> Destination(const Operand& o, SlotClass c);
  Status Finish(const Target& target, bool is_signed);

  // --- instructions ---
  Status DecodeOne(const ptx::Instruction& i);
  Status DecodePlain(const ptx::Instruction& i);
  Status DecodeRow(const ptx::Instruction& i, const OpRow& row, uint8_t flags, uint8_t aux, uint8_t rounding);
  Status DecodeBranch(const ptx::Instruction& i);
  Status DecodeIndexedBranch(const ptx::Instruction& i);
  Status DecodeCall(const ptx::Instruction& i);
  Status DecodeMemory(const ptx::Instruction& i);
  Status DecodeParamAccess(const ptx::Instruction& i, const Operand& address, ptx::Type type,
                           const std::vector<const Operand*>& values, bool store);
  Status DecodeAtomic(const ptx::Instruction& i);
  Status DecodeAsyncCopy(const ptx::Instruction& i);
  Status DecodeBarrierObject(const ptx::Instruction& i);
  Status DecodeMatrix(const ptx::Instruction& i);
  Status DecodeCvta(const ptx::Instruction& i);
  Status DecodeCachePolicy(const ptx::Instruction& i);
  Status DecodeIsSpaceP(const ptx::Instruction& i);
  Status DecodeMove(const ptx::Instruction& i);
  Status DecodeTexture(const ptx::Instruction& i);
  Status DecodeVideo(const ptx::Instruction& i);
  struct SourceOperand {
    const Operand* operand;
    SlotClass slot;
    ptx::Type type;
  };
  Status EmitTexture(std::string_view key, TextureForm form, const Operand& object,
                     const std::vector<SourceOperand>& sources, const std::vector<const Operand*>& destinations,
                     SlotClass wide);
  static bool TakeElements(const Operand& o, size_t count, std::vector<const Operand*>& to);
  GpuResult<Place> MemoryAddress(const Operand& o, ptx::Space space, DraftInst& d, bool& address32);
  // Of the check mode; nothing without it. Before `access`, whose address is `place`, is put into the draft.
  void EmitCheck(const DraftInst& access, const Place& place, MemSpace space, CheckedAccess what, uint32_t bytes);
  Status FindFunction(std::string_view name, uint32_t& index) const;

  Status LayOutLocals();
  Status WriteOut();

  ModuleContext& context_;
  const ptx::Function& source_;
  CodeFunction& function_;
  const uint32_t index_;
  const std::vector<uint64_t>& shared_;
  uint64_t shared_end_;
  const ptx::Instruction* current_ = nullptr;
  std::vector<DraftInst> draft_;
  std::vector<SlotClass> classes_;
  std::vector<uint64_t> variable_offsets_;               // of source_.variables
  std::vector<uint32_t> body_param_offsets_;             // in the block
  std::vector<uint32_t> start_of_;                       // PTX index -> draft index
  std::vector<std::pair<uint32_t, uint32_t>> branches_;  // draft index, PTX target
  Reg carry_ = ptx::kNoIndex;
  // Of function_.param_slots: offset, bytes, slot bytes, signed -> place in the grid area.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, bool>, uint32_t> param_slots_;
};

}  // namespace vgpud::soft
