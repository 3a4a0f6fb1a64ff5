// SPDX-License-Identifier: Apache-2.0
// The draft of one function: instructions whose registers have no places yet. The families of instructions (families.h)
// append to it through this class; decode/function.cc lays it out and writes it down.
#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "gpu/soft/decode/function.h"
#include "gpu/soft/decode/modifiers.h"
#include "gpu/soft/decode/slots.h"
#include "gpu/soft/run/access_check.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

// A register of the function: those of its PTX first, then those that the decoder makes.
using Reg = uint32_t;

// A source operand: where its 32 lanes are.
struct Place {
  uint8_t base = kConstants;
  uint32_t offset = 0;
  Reg reg = ptx::kNoIndex;
};
inline Place InRegister(Reg reg) { return {kFrame, 0, reg}; }

// A register to be written; the others are what DraftBuilder::Finish has to bring it to.
struct Target {
  Reg reg = ptx::kNoIndex;
  Reg widen_to = ptx::kNoIndex;
  Reg narrow_to = ptx::kNoIndex;
};

class DraftBuilder {
 public:
  // `shared`: offsets of the module's variables, `shared_end`: where the function's own ones begin.
  DraftBuilder(ModuleContext& context, uint32_t index, const std::vector<uint64_t>& shared, uint64_t shared_end);

  const ptx::Function& source() const { return source_; }
  CodeFunction& function() { return function_; }
  uint32_t index() const { return index_; }
  const OpTable& table() const { return context_.table; }
  ProgramCode& program() { return context_.program; }
  bool check() const { return context_.what_for.check; }
  // nullptr: no such row.
  const OpRow* Row(std::string_view key) const { return context_.table.Find(key); }
  SlotClass ClassOf(Reg reg) const { return classes_[reg]; }

  // The next instruction of the PTX: errors name it.
  void Begin(const ptx::Instruction& i);
  // All were decoded; `last` is what happens after them.
  void End(DraftInst&& last);
  tl::unexpected<GpuError> Fail(std::string_view why, CuStatus status = CuStatus::kInvalidPtx) const;
  GpuResult<void> Unknown() const { return Fail("no such instruction, or not one that the soft GPU has"); }

  // --- instructions ---
  DraftInst& Emit(Handler fn);
  void Add(DraftInst&& draft) {
    draft.form = form_;
    draft_.push_back(std::move(draft));
  }
  // `draft`, of a row with kInPieces, with the register that says what is done of it.
  void AddInPieces(DraftInst&& draft);
  // The last one branches to the PTX instruction `target`.
  void BranchesTo(uint32_t target) { branches_.push_back({MustFit<uint32_t>(draft_.size() - 1), target}); }
  // Of the check mode; nothing without it. Before `access`, whose address is `place`, is added.
  void EmitCheck(const DraftInst& access, const Place& place, MemSpace space, CheckedAccess what, uint32_t bytes);
  std::vector<DraftInst>& draft() { return draft_; }

  // --- operands of an instruction ---
  Reg NewRegister(SlotClass c);
  // The carry flag; made when somebody needs it.
  Reg Carry();
  static void UseRegister(DraftInst& d, uint8_t operand, Reg reg, bool write);
  void UseConstant(DraftInst& d, uint8_t operand, uint64_t value, uint32_t lane_bytes);
  static void Use(DraftInst& d, uint8_t operand, const Place& p);
  static void UseExtra(DraftInst& d, const Place& p, bool write = false);
  // Of a register that is read and written.
  static void UpdateExtra(DraftInst& d, Reg reg);
  Place Constant(uint64_t value, uint32_t lane_bytes);
  // From the PTX; what has to run before is emitted.
  GpuResult<Place> Source(const ptx::Operand& o, SlotClass c, ptx::Type type);
  GpuResult<Place> Predicate(const ptx::Operand& o);
  // Operand [..] of a memory instruction; `d.inst.imm` takes the constant part. In the space kSharedCluster what comes
  // back is a generic address.
  GpuResult<Place> MemoryAddress(const ptx::Operand& o, ptx::Space space, DraftInst& d, bool& address32);
  GpuResult<Target> Destination(const ptx::Operand& o, SlotClass c);
  // A register of 128 bits: its low and its high half as operands of 64 bits.
  GpuResult<std::array<ptx::Operand, 2>> HalvesOf(const ptx::Operand& o) const;
  // After the instruction that writes `target`.
  void Finish(const Target& target, bool is_signed);

  // Before the first instruction of a function that takes local memory while it runs, and before each of its ends.
  void SaveStack();
  void RestoreStack();

  // --- functions and parameters ---
  GpuResult<uint32_t> FindFunction(std::string_view name) const;
  // Offset in the frame's block of `.param` variables.
  uint32_t BodyParamOffset(uint32_t index) const { return body_param_offsets_[index]; }
  // Where in the grid's area the lanes of a kernel's parameter are.
  uint32_t ParamSlot(uint32_t offset, uint32_t bytes, uint32_t slot_bytes, bool is_signed);

  // --- the whole ---
  GpuResult<void> LayOutLocals();
  // Registers of the PTX.
  void TakeRegisters();
  // Is the draft, with what the module has so far, within the limits?
  GpuResult<void> CheckLimits() const;
  // To the end of the program's code, after End.
  uint32_t Registers(const SlotPlan& plan) const;
  GpuResult<void> WriteOut();

 private:
  uint16_t FormOf(std::string_view opcode, const std::vector<std::string_view>& modifiers);
  Place GenericOfShared(Place place, int64_t offset);
  bool IsWide(Reg reg) const { return reg < wide_.size() && wide_[reg] != ptx::kNoIndex; }
  GpuResult<Place> AddressOf(const ptx::Operand& o, uint32_t lane_bytes);
  GpuResult<Place> Special(std::string_view name, SlotClass c);

  ModuleContext& context_;
  const ptx::Function& source_;
  CodeFunction& function_;
  const uint32_t index_;
  const std::vector<uint64_t>& shared_;
  uint64_t shared_end_;
  const ptx::Instruction* current_ = nullptr;
  uint16_t form_ = 0;  // of current_
  std::vector<DraftInst> draft_;
  std::vector<SlotClass> classes_;
  std::vector<Reg> wide_;                                // of a PTX register of 128 bits, its first half
  std::vector<uint64_t> variable_offsets_;               // of source_.variables
  std::vector<uint32_t> body_param_offsets_;             // in the block
  std::vector<uint32_t> start_of_;                       // PTX index -> draft index
  std::vector<std::pair<uint32_t, uint32_t>> branches_;  // draft index, PTX target
  Reg carry_ = ptx::kNoIndex;
  Reg saved_stack_ = ptx::kNoIndex;
  // Of function_.param_slots: offset, bytes, slot bytes, signed -> place in the grid area.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, bool>, uint32_t> param_slots_;
};

inline uint64_t RoundUp(uint64_t v, uint64_t to) { return CheckedSize(v).AlignedUp(to).saturated(); }

}  // namespace vgpud::soft
