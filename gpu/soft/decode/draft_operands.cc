// SPDX-License-Identifier: Apache-2.0
// From an operand of the PTX to a place in the draft.
#include <cstring>

#include "gpu/soft/code/special_registers.h"
#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

constexpr std::string_view kWide = "a 128-bit register can be moved, loaded, stored and exchanged, nothing else";
constexpr std::string_view kPart = "only video instructions name parts of a register";

uint64_t ImmediateBits(const ptx::Operand& o, ptx::Type type) {
  if (type == ptx::Type::kF32) {
    if (!o.is_float || o.is_f32) return o.is_float ? o.bits : o.bits & 0xffffffff;
    double d;
    std::memcpy(&d, &o.bits, 8);
    const auto f = static_cast<float>(d);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits;
  }
  if (type == ptx::Type::kF64 && o.is_float && o.is_f32) {
    const auto bits = static_cast<uint32_t>(o.bits);
    float f;
    std::memcpy(&f, &bits, 4);
    const auto d = static_cast<double>(f);
    uint64_t r;
    std::memcpy(&r, &d, 8);
    return r;
  }
  return o.bits;
}

}  // namespace

GpuResult<Place> DraftBuilder::Special(std::string_view name, SlotClass c) {
  const SpecialRegister* s = FindSpecialRegister(name);
  if (s == nullptr) return Fail(fmt::format("special register {} is unknown", name));
  const uint32_t bytes = c == SlotClass::k64 ? 8 : 4;
  switch (s->where) {
    case SpecialRegister::kConstant:
      return Constant(s->value, bytes);
    case SpecialRegister::kLaneTable: {
      uint32_t lanes[kLanes];
      for (uint32_t l = 0; l < kLanes; ++l) lanes[l] = LaneTableValue(*s, l);
      if (c == SlotClass::k64) return Fail("a 32-bit special register is read as 64 bits");
      return Place{kConstants, context_.constants.AddLanes(lanes), ptx::kNoIndex};
    }
    case SpecialRegister::kWarp:
    case SpecialRegister::kGrid: {
      if (s->where == SpecialRegister::kWarp) function_.warp_specials |= 1u << s->value;
      if (s->where == SpecialRegister::kGrid && s->value >= kReservedSharedBegin && s->value <= kReservedSharedEnd)
        function_.warp_specials |= 1u << kUsesReservedShared;
      const Place place{s->where == SpecialRegister::kWarp ? kWarpArea : kGridArea,
                        static_cast<uint32_t>(s->value) * kSlot32, ptx::kNoIndex};
      if (c != SlotClass::k64) return place;
      const Reg wide = NewRegister(SlotClass::k64);
      DraftInst& d = Emit(Row("@widen.u")->fn);
      UseRegister(d, 0, wide, true);
      Use(d, 1, place);
      return InRegister(wide);
    }
    case SpecialRegister::kRead: {
      const bool wide = c == SlotClass::k64;
      const OpRow* row = Row(fmt::format("@{}.{}", s->row, wide ? 64 : 32));
      if (row == nullptr) return Fail("this special register does not have that width");
      const Reg reg = NewRegister(c);
      UseRegister(Emit(row->fn), 0, reg, true);
      return InRegister(reg);
    }
  }
  return Fail("special register is unknown");
}

// The address of a variable or parameter, or a function's handle, in a register of `lane_bytes`.
GpuResult<Place> DraftBuilder::AddressOf(const Operand& o, uint32_t lane_bytes) {
  const bool is_param =
      o.kind == Operand::Kind::kParam || (o.kind == Operand::Kind::kAddress && o.base == Operand::Base::kParam);
  const auto offset = static_cast<uint64_t>(o.offset);
  if (o.kind == Operand::Kind::kFunction) {
    const auto f = FindFunction(o.name);
    if (!f) return tl::unexpected(f.error());
    return Constant(kFunctionHandle | *f, lane_bytes);
  }
  if (is_param) {
    if (!source_.is_kernel || o.body_param || o.return_param)
      return Fail("the address of a function's parameter cannot be taken", CuStatus::kNotSupported);
    return Constant(function_.params[o.index].offset + offset, lane_bytes);
  }
  const std::vector<ptx::Variable>& list = o.local_variable ? source_.variables : context_.module.variables;
  if (o.index >= list.size()) return Fail("no such variable");
  const ptx::Variable& v = list[o.index];
  if (v.space == ptx::Space::kShared) {
    if (v.bytes != 0)
      return Constant((o.local_variable ? variable_offsets_[o.index] : shared_[o.index]) + offset, lane_bytes);
    // Dynamic shared memory begins where the static one of the launched kernel ends.
    const Place base{kGridArea, lane_bytes == 8 ? kDynamicBase64 : kDynamicBase32, ptx::kNoIndex};
    if (offset == 0) return base;
    const Reg reg = NewRegister(lane_bytes == 8 ? SlotClass::k64 : SlotClass::k32);
    DraftInst& d = Emit(Row(lane_bytes == 8 ? "add.u64" : "add.u32")->fn);
    UseRegister(d, 0, reg, true);
    Use(d, 1, base);
    UseConstant(d, 2, offset, lane_bytes);
    return InRegister(reg);
  }
  if (v.space == ptx::Space::kLocal) {
    if (!o.local_variable) return Fail("a .local variable at module scope", CuStatus::kNotSupported);
    const Reg reg = NewRegister(lane_bytes == 8 ? SlotClass::k64 : SlotClass::k32);
    DraftInst& d = Emit(OpLocalAddress);
    d.inst.aux = static_cast<uint8_t>(lane_bytes);
    d.inst.imm = static_cast<int64_t>(variable_offsets_[o.index] + offset);
    UseRegister(d, 0, reg, true);
    return InRegister(reg);
  }
  if (o.local_variable) return Fail("a variable of this space inside a function", CuStatus::kNotSupported);
  return Place{kConstants, context_.constants.AddAddress(o.index, offset, lane_bytes), ptx::kNoIndex};
}

GpuResult<Place> DraftBuilder::Predicate(const Operand& o) {
  if (o.kind == Operand::Kind::kImmediate) {
    const bool on = (o.bits != 0) != o.negated;
    return Constant(on ? kFullMask : 0, 4);
  }
  if (o.kind == Operand::Kind::kSpecial && o.name == "%is_explicit_cluster" && !o.negated)
    return Place{kGridArea, kIsExplicitCluster * kSlot32, ptx::kNoIndex};
  if (o.kind != Operand::Kind::kRegister || classes_[o.index] != SlotClass::kPredicate)
    return Fail("a predicate was expected");
  if (!o.negated) return InRegister(o.index);
  const Reg inverse = NewRegister(SlotClass::kPredicate);
  DraftInst& d = Emit(Row("not.pred")->fn);
  UseRegister(d, 0, inverse, true);
  UseRegister(d, 1, o.index, false);
  return InRegister(inverse);
}

GpuResult<Place> DraftBuilder::Source(const Operand& o, SlotClass c, ptx::Type type) {
  const uint32_t bytes = c == SlotClass::k64 ? 8 : 4;
  switch (o.kind) {
    case Operand::Kind::kRegister: {
      const SlotClass have = classes_[o.index];
      if (!o.name.empty()) return Fail(kPart);
      if (IsWide(o.index)) return Fail(kWide);
      if (o.negated) return Fail("only a predicate can be negated");
      if (have == SlotClass::kPredicate) return Fail("a predicate where a value was expected");
      if (have == c) return InRegister(o.index);
      const Reg reg = NewRegister(c);
      DraftInst& d = Emit(Row(c == SlotClass::k64 ? "@widen.u" : "@narrow")->fn);
      UseRegister(d, 0, reg, true);
      UseRegister(d, 1, o.index, false);
      return InRegister(reg);
    }
    case Operand::Kind::kImmediate:
      return Constant(ImmediateBits(o, type), bytes);
    case Operand::Kind::kSpecial:
      return Special(o.name, c);
    case Operand::Kind::kVariable:
    case Operand::Kind::kParam:
    case Operand::Kind::kFunction:
      return AddressOf(o, bytes);
    default:
      return Fail("this kind of operand does not fit here");
  }
}

GpuResult<Target> DraftBuilder::Destination(const Operand& o, SlotClass c) {
  if (o.kind == Operand::Kind::kSink) return Target{NewRegister(c), ptx::kNoIndex, ptx::kNoIndex};
  if (o.kind != Operand::Kind::kRegister) return Fail("the destination is not a register");
  if (!o.name.empty()) return Fail(kPart);
  if (IsWide(o.index)) return Fail(kWide);
  const SlotClass have = classes_[o.index];
  if (have == c) return Target{o.index, ptx::kNoIndex, ptx::kNoIndex};
  if (have == SlotClass::kPredicate || c == SlotClass::kPredicate) return Fail("destination of the wrong kind");
  const Reg reg = NewRegister(c);
  if (have == SlotClass::k64) return Target{reg, o.index, ptx::kNoIndex};
  return Target{reg, ptx::kNoIndex, o.index};
}

GpuResult<std::array<Operand, 2>> DraftBuilder::HalvesOf(const Operand& o) const {
  if (o.kind != Operand::Kind::kRegister || !o.name.empty() || o.negated || !IsWide(o.index))
    return Fail("a 128-bit register was expected");
  std::array<Operand, 2> halves;
  for (uint32_t n = 0; n < 2; ++n) {
    halves[n].kind = Operand::Kind::kRegister;
    halves[n].index = wide_[o.index] + n;
  }
  return halves;
}

void DraftBuilder::Finish(const Target& t, bool is_signed) {
  if (t.widen_to == ptx::kNoIndex && t.narrow_to == ptx::kNoIndex) return;
  const char* row = t.narrow_to != ptx::kNoIndex ? "@narrow" : is_signed ? "@widen.s" : "@widen.u";
  DraftInst& d = Emit(Row(row)->fn);
  UseRegister(d, 0, t.narrow_to != ptx::kNoIndex ? t.narrow_to : t.widen_to, true);
  UseRegister(d, 1, t.reg, false);
}

// The generic address of what lies at `place` + `offset` in shared memory.
Place DraftBuilder::GenericOfShared(Place place, int64_t offset) {
  const bool narrow = place.reg == ptx::kNoIndex || classes_[place.reg] == SlotClass::k32;
  const Reg generic = NewRegister(SlotClass::k64);
  DraftInst& d = Emit(Row(narrow ? "@generic.shared.32" : "@generic.shared.64")->fn);
  UseRegister(d, 0, generic, true);
  Use(d, 1, place);
  d.inst.imm = offset;
  return InRegister(generic);
}

GpuResult<Place> DraftBuilder::MemoryAddress(const Operand& o, ptx::Space space, DraftInst& d, bool& address32) {
  address32 = false;
  if (o.kind != Operand::Kind::kAddress) return Fail("an address in [] was expected");
  switch (o.base) {
    case Operand::Base::kRegister:
      if (classes_[o.index] == SlotClass::kPredicate) return Fail("a predicate is no address");
      if (IsWide(o.index)) return Fail(kWide);
      if (space == ptx::Space::kSharedCluster) return GenericOfShared(InRegister(o.index), o.offset);
      address32 = classes_[o.index] == SlotClass::k32;
      d.inst.imm = o.offset;
      return InRegister(o.index);
    case Operand::Base::kImmediate:
    case Operand::Base::kNone: {
      const uint64_t at = o.bits + static_cast<uint64_t>(o.offset);
      return Constant(space == ptx::Space::kSharedCluster ? SharedAddressOf(at) : at, 8);
    }
    case Operand::Base::kVariable:
    case Operand::Base::kParam:
      if (space == ptx::Space::kSharedCluster) {
        const auto place = AddressOf(o, 4);
        return place ? GenericOfShared(*place, 0) : place;
      }
      address32 = space == ptx::Space::kShared;
      return AddressOf(o, address32 ? 4 : 8);
  }
  return Fail("an address was expected");
}

void DraftBuilder::EmitCheck(const DraftInst& access, const Place& place, MemSpace space, CheckedAccess what,
                             uint32_t bytes) {
  if (!check()) return;
  DraftInst& d = Emit(OpCheckAccess);
  Use(d, 0, place);
  d.inst.imm = access.inst.imm;
  d.inst.flags = access.inst.flags & kAddress32;
  d.inst.aux = static_cast<uint8_t>(static_cast<uint32_t>(space) | static_cast<uint32_t>(what) << 4);
  d.inst.offset[1] = bytes;
}

}  // namespace vgpud::soft
