#include "gpu/soft/decode_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "gpu/soft/slots.h"
#include "gpu/soft/special_registers.h"
#include "gpu/soft/warp.h"

namespace vgpud::soft {
namespace {

using ptx::Operand;
using Kind = Operand::Kind;

uint64_t RoundUp(uint64_t v, uint64_t to) { return to <= 1 ? v : (v + to - 1) / to * to; }

bool Has(const ptx::Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

ptx::Type LastType(const ptx::Instruction& i) {
  for (auto m = i.modifiers.rbegin(); m != i.modifiers.rend(); ++m) {
    const ptx::Type t = ptx::TypeFromName(*m);
    if (t != ptx::Type::kNone) return t;
  }
  return ptx::Type::kNone;
}

ptx::Type FirstType(const ptx::Instruction& i) {
  for (const std::string_view m : i.modifiers) {
    const ptx::Type t = ptx::TypeFromName(m);
    if (t != ptx::Type::kNone) return t;
  }
  return ptx::Type::kNone;
}

SlotClass ClassOf(ptx::Type type) {
  if (type == ptx::Type::kPred) return SlotClass::kPredicate;
  return ptx::SizeOf(type) > 4 ? SlotClass::k64 : SlotClass::k32;
}

uint64_t ImmediateBits(const Operand& o, ptx::Type type) {
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

// Rounding mode bits of MXCSR.
std::optional<uint8_t> RoundingOf(std::string_view modifier) {
  if (modifier == "rm") return 1;
  if (modifier == "rp") return 2;
  if (modifier == "rz") return 3;
  return std::nullopt;
}

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
  Status DecodeCall(const ptx::Instruction& i);
  Status DecodeMemory(const ptx::Instruction& i);
  Status DecodeParamAccess(const ptx::Instruction& i, const Operand& address, ptx::Type type,
                           const std::vector<const Operand*>& values, bool store);
  Status DecodeAtomic(const ptx::Instruction& i);
  Status DecodeCvta(const ptx::Instruction& i);
  Status DecodeIsSpaceP(const ptx::Instruction& i);
  Status DecodeMove(const ptx::Instruction& i);
  GpuResult<Place> MemoryAddress(const Operand& o, ptx::Space space, DraftInst& d, bool& address32);
  Status FindFunction(std::string_view name, uint32_t& index) const;

  Status LayOutLocals();
  void WriteOut();

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
};

GpuResult<FunctionDecoder::Place> FunctionDecoder::Special(std::string_view name, SlotClass c) {
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
      const Place place{s->where == SpecialRegister::kWarp ? kWarpArea : kGridArea,
                        static_cast<uint32_t>(s->value) * kSlot32, ptx::kNoIndex};
      if (c != SlotClass::k64) return place;
      const Reg wide = NewRegister(SlotClass::k64);
      DraftInst& d = Emit(context_.table.Find("@widen.u")->fn);
      UseRegister(d, 0, wide, true);
      Use(d, 1, place);
      return InRegister(wide);
    }
    case SpecialRegister::kRead: {
      const bool wide = c == SlotClass::k64;
      const OpRow* row = context_.table.Find(fmt::format("@{}.{}", s->row, wide ? 64 : 32));
      if (row == nullptr) return Fail("this special register does not have that width");
      const Reg reg = NewRegister(c);
      UseRegister(Emit(row->fn), 0, reg, true);
      return InRegister(reg);
    }
  }
  return Fail("special register is unknown");
}

// The address of a variable or parameter, or a function's handle, in a register of `lane_bytes`.
GpuResult<FunctionDecoder::Place> FunctionDecoder::AddressOf(const Operand& o, uint32_t lane_bytes) {
  const bool is_param = o.kind == Kind::kParam || (o.kind == Kind::kAddress && o.base == Operand::Base::kParam);
  const auto offset = static_cast<uint64_t>(o.offset);
  if (o.kind == Kind::kFunction) {
    uint32_t f = 0;
    if (auto r = FindFunction(o.name, f); !r) return tl::unexpected(r.error());
    return Constant(kFunctionHandle | f, lane_bytes);
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
    DraftInst& d = Emit(context_.table.Find(lane_bytes == 8 ? "add.u64" : "add.u32")->fn);
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
  return Constant(context_.addresses[o.index] + offset, lane_bytes);
}

GpuResult<FunctionDecoder::Place> FunctionDecoder::Predicate(const Operand& o) {
  if (o.kind == Kind::kImmediate) {
    const bool on = (o.bits != 0) != o.negated;
    return Constant(on ? kFullMask : 0, 4);
  }
  if (o.kind != Kind::kRegister || classes_[o.index] != SlotClass::kPredicate) return Fail("a predicate was expected");
  if (!o.negated) return InRegister(o.index);
  const Reg inverse = NewRegister(SlotClass::kPredicate);
  DraftInst& d = Emit(context_.table.Find("not.pred")->fn);
  UseRegister(d, 0, inverse, true);
  UseRegister(d, 1, o.index, false);
  return InRegister(inverse);
}

GpuResult<FunctionDecoder::Place> FunctionDecoder::Source(const Operand& o, SlotClass c, ptx::Type type) {
  const uint32_t bytes = c == SlotClass::k64 ? 8 : 4;
  switch (o.kind) {
    case Kind::kRegister: {
      const SlotClass have = classes_[o.index];
      if (have == SlotClass::kPredicate) return Fail("a predicate where a value was expected");
      if (have == c) return InRegister(o.index);
      const Reg reg = NewRegister(c);
      DraftInst& d = Emit(context_.table.Find(c == SlotClass::k64 ? "@widen.u" : "@narrow")->fn);
      UseRegister(d, 0, reg, true);
      UseRegister(d, 1, o.index, false);
      return InRegister(reg);
    }
    case Kind::kImmediate:
      return Constant(ImmediateBits(o, type), bytes);
    case Kind::kSpecial:
      return Special(o.name, c);
    case Kind::kVariable:
    case Kind::kParam:
    case Kind::kFunction:
      return AddressOf(o, bytes);
    default:
      return Fail("this kind of operand does not fit here");
  }
}

GpuResult<FunctionDecoder::Target> FunctionDecoder::Destination(const Operand& o, SlotClass c) {
  if (o.kind == Kind::kSink) return Target{NewRegister(c), ptx::kNoIndex, ptx::kNoIndex};
  if (o.kind != Kind::kRegister) return Fail("the destination is not a register");
  const SlotClass have = classes_[o.index];
  if (have == c) return Target{o.index, ptx::kNoIndex, ptx::kNoIndex};
  if (have == SlotClass::kPredicate || c == SlotClass::kPredicate) return Fail("destination of the wrong kind");
  const Reg reg = NewRegister(c);
  if (have == SlotClass::k64) return Target{reg, o.index, ptx::kNoIndex};
  return Target{reg, ptx::kNoIndex, o.index};
}

GpuResult<void> FunctionDecoder::Finish(const Target& t, bool is_signed) {
  if (t.widen_to == ptx::kNoIndex && t.narrow_to == ptx::kNoIndex) return {};
  const char* row = t.narrow_to != ptx::kNoIndex ? "@narrow" : is_signed ? "@widen.s" : "@widen.u";
  DraftInst& d = Emit(context_.table.Find(row)->fn);
  UseRegister(d, 0, t.narrow_to != ptx::kNoIndex ? t.narrow_to : t.widen_to, true);
  UseRegister(d, 1, t.reg, false);
  return {};
}

// Common form: look for the row with everything that was written, then without what a flag can say.
GpuResult<void> FunctionDecoder::DecodePlain(const ptx::Instruction& i) {
  std::vector<std::string_view> modifiers = i.modifiers;
  const auto drop = [&](auto condition) {
    modifiers.erase(std::remove_if(modifiers.begin(), modifiers.end(), condition), modifiers.end());
  };
  if (i.opcode == "fence" || i.opcode == "prefetch" || i.opcode == "prefetchu" || i.opcode == "discard" ||
      i.opcode == "applypriority")
    modifiers.clear();
  if (i.opcode == "bar" || i.opcode == "barrier") drop([](auto m) { return m == "cta" || m == "aligned"; });
  const auto find = [&] { return context_.table.Find(OpTable::Key(i.opcode, modifiers)); };
  const OpRow* row = find();
  uint8_t flags = 0;
  uint8_t aux = 0;
  uint8_t rounding = 0;
  uint8_t needs = 0;
  if (row == nullptr) {
    drop([](auto m) { return m == "rn"; });
    row = find();
  }
  if (row == nullptr) {
    if (std::find(modifiers.begin(), modifiers.end(), "ftz") != modifiers.end()) {
      flags |= kFtz;
      needs |= kTakesFtz;
    }
    if (std::find(modifiers.begin(), modifiers.end(), "sat") != modifiers.end()) {
      flags |= kSat;
      needs |= kTakesSat;
    }
    drop([](auto m) { return m == "ftz" || m == "sat"; });
    row = find();
  }
  if (row == nullptr) {
    for (const std::string_view m : modifiers) {
      if (const auto r = RoundingOf(m)) {
        rounding = *r;
        needs |= kRounds;
      }
    }
    drop([](auto m) { return RoundingOf(m).has_value(); });
    row = find();
  }
  if (row == nullptr) {
    constexpr std::string_view kHow[] = {"", "and", "or", "xor"};
    for (uint8_t how = 1; how < 4; ++how) {
      if (std::find(modifiers.begin(), modifiers.end(), kHow[how]) != modifiers.end()) {
        aux = how;
        needs |= kCombines;
      }
    }
    drop([](auto m) { return m == "and" || m == "or" || m == "xor"; });
    row = find();
  }
  if (row == nullptr || (needs & ~row->traits) != 0) return Unknown();
  return DecodeRow(i, *row, flags, aux, rounding);
}

GpuResult<void> FunctionDecoder::DecodeRow(const ptx::Instruction& i, const OpRow& row, uint8_t flags, uint8_t aux,
                                           uint8_t rounding) {
  const std::string_view signature = row.operands;
  const ptx::Type type = LastType(i);
  if (signature == "-") {
    Emit(row.fn);
    return {};
  }
  std::vector<const Operand*> operands;
  for (const Operand& o : i.operands) operands.push_back(&o);
  // bar.red leaves the thread count out in the middle.
  static const Operand kZero = [] {
    Operand o;
    o.kind = Kind::kImmediate;
    return o;
  }();
  if (signature.size() == 4 && signature.substr(1) == "aap" && operands.size() == 3)
    operands.insert(operands.begin() + 2, &kZero);
  struct Slot {
    uint8_t operand;
    Place place;
    Reg write = ptx::kNoIndex;
  };
  std::vector<Slot> slots;
  std::vector<Target> targets;
  size_t next = 0;
  uint8_t at = 0;
  bool optional = false;
  std::string full(signature);
  if (aux != 0) full += 'p';
  for (const char kind : full) {
    if (kind == '?') {
      optional = true;
      continue;
    }
    if (kind == 'c' || kind == 'C' || kind == 'x') {
      if (carry_ == ptx::kNoIndex) carry_ = NewRegister(SlotClass::kPredicate);
      if (kind == 'c') {
        slots.push_back({at++, InRegister(carry_), ptx::kNoIndex});
      } else {
        slots.push_back({at++, {}, kind == 'C' ? carry_ : NewRegister(SlotClass::kPredicate)});
      }
      continue;
    }
    if (next >= operands.size()) {
      if (!optional) return Fail("operands are missing");
      slots.push_back({at++, Constant(0, 4), ptx::kNoIndex});
      continue;
    }
    const Operand& o = *operands[next++];
    switch (kind) {
      case 'd':
      case 'D':
      case 'e': {
        auto t = Destination(o, kind == 'D' ? SlotClass::k64 : SlotClass::k32);
        if (!t) return tl::unexpected(t.error());
        targets.push_back(*t);
        slots.push_back({at++, {}, t->reg});
        if (kind == 'e') {
          const Reg second = o.second != ptx::kNoIndex ? o.second : NewRegister(SlotClass::kPredicate);
          if (classes_[second] != SlotClass::kPredicate) return Fail("what follows | is not a predicate");
          slots.push_back({at++, {}, second});
        }
        break;
      }
      case 'P':
      case 'Q': {
        auto t = Destination(o, SlotClass::kPredicate);
        if (!t) return tl::unexpected(t.error());
        slots.push_back({at++, {}, t->reg});
        if (kind == 'Q') {
          const Reg second = o.second != ptx::kNoIndex ? o.second : NewRegister(SlotClass::kPredicate);
          if (classes_[second] != SlotClass::kPredicate) return Fail("what follows | is not a predicate");
          slots.push_back({at++, {}, second});
        }
        break;
      }
      case 'p': {
        auto p = Predicate(o);
        if (!p) return tl::unexpected(p.error());
        slots.push_back({at++, *p, ptx::kNoIndex});
        break;
      }
      default: {
        auto p = Source(o, kind == 'A' ? SlotClass::k64 : SlotClass::k32, type);
        if (!p) return tl::unexpected(p.error());
        slots.push_back({at++, *p, ptx::kNoIndex});
        break;
      }
    }
  }
  if (next != operands.size()) return Fail("there are too many operands");
  DraftInst& d = Emit(row.fn);
  d.inst.flags = flags;
  d.inst.aux = aux;
  if (rounding != 0) {
    d.inst.inner = row.fn;
    d.inst.fn = OpRounded;
    d.inst.aux = rounding;
  }
  d.diverts = row.traits & kDiverts;
  if (row.fn == OpExit || i.opcode == "trap") d.falls_through = false;
  for (const Slot& s : slots) {
    if (s.write != ptx::kNoIndex) {
      UseRegister(d, s.operand, s.write, true);
    } else {
      Use(d, s.operand, s.place);
    }
  }
  const ptx::Type result = FirstType(i);
  const bool is_signed = result == ptx::Type::kS8 || result == ptx::Type::kS16 || result == ptx::Type::kS32;
  for (const Target& t : targets)
    if (auto r = Finish(t, is_signed); !r) return r;
  return {};
}

GpuResult<void> FunctionDecoder::DecodeBranch(const ptx::Instruction& i) {
  if (i.operands.size() != 1 || i.operands[0].kind != Kind::kLabel) return Fail("a label was expected");
  DraftInst& d = Emit(OpBranch);
  d.falls_through = false;
  branches_.push_back({static_cast<uint32_t>(draft_.size() - 1), i.operands[0].index});
  d.target = i.operands[0].index;
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
  const bool is_signed = type == ptx::Type::kS8 || type == ptx::Type::kS16 || type == ptx::Type::kS32;
  const bool kernel_param = source_.is_kernel && !address.body_param && !address.return_param;
  const std::vector<ptx::Param>& list = address.body_param     ? source_.body_params
                                        : address.return_param ? function_.returns
                                                               : function_.params;
  if (address.index >= list.size()) return Fail("no such parameter");
  const ptx::Param& param = list[address.index];
  const uint64_t end = static_cast<uint64_t>(address.offset) + uint64_t{size} * values.size();
  if (address.offset < 0 || end > param.bytes) return Fail("outside of the parameter");
  if (kernel_param && store) return Fail("a kernel's parameter cannot be written");
  uint32_t offset =
      (address.body_param ? body_param_offsets_[address.index] : param.offset) + static_cast<uint32_t>(address.offset);
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
      if (kernel_param) {
        const uint32_t slot_bytes = c == SlotClass::k64 ? 8 : 4;
        uint32_t at = ptx::kNoIndex;
        for (const ParamSlot& s : function_.param_slots)
          if (s.param_offset == offset && s.bytes == size && s.slot_bytes == slot_bytes && s.is_signed == is_signed)
            at = s.area_offset;
        if (at == ptx::kNoIndex) {
          at = function_.grid_area_bytes;
          function_.param_slots.push_back(
              {offset, static_cast<uint8_t>(size), static_cast<uint8_t>(slot_bytes), is_signed, at});
          function_.grid_area_bytes += slot_bytes * kLanes;
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

// Operand 0 of a memory instruction; imm takes the constant part.
GpuResult<FunctionDecoder::Place> FunctionDecoder::MemoryAddress(const Operand& o, ptx::Space space, DraftInst& d,
                                                                 bool& address32) {
  address32 = false;
  if (o.kind != Kind::kAddress) return Fail("an address in [] was expected");
  switch (o.base) {
    case Operand::Base::kRegister:
      if (classes_[o.index] == SlotClass::kPredicate) return Fail("a predicate is no address");
      address32 = classes_[o.index] == SlotClass::k32;
      d.inst.imm = o.offset;
      return InRegister(o.index);
    case Operand::Base::kImmediate:
    case Operand::Base::kNone:
      return Constant(o.bits + static_cast<uint64_t>(o.offset), 8);
    case Operand::Base::kVariable:
    case Operand::Base::kParam:
      address32 = space == ptx::Space::kShared;
      return AddressOf(o, address32 ? 4 : 8);
  }
  return Fail("an address was expected");
}

struct SpaceName {
  std::string_view name;
  ptx::Space space;
};
constexpr SpaceName kSpaces[] = {
    {"global", ptx::Space::kGlobal},      {"const", ptx::Space::kConst},       {"shared", ptx::Space::kShared},
    {"shared::cta", ptx::Space::kShared}, {"local", ptx::Space::kLocal},       {"param", ptx::Space::kParam},
    {"param::entry", ptx::Space::kParam}, {"param::func", ptx::Space::kParam},
};
ptx::Space SpaceOf(const ptx::Instruction& i) {
  for (const std::string_view m : i.modifiers)
    for (const SpaceName& s : kSpaces)
      if (s.name == m) return s.space;
  return ptx::Space::kGeneric;
}

// Qualifiers of loads and stores that change nothing here, or only say that others may be waited for.
constexpr std::string_view kAccessQualifiers[] = {"nc", "ca",   "cg",  "cs",  "lu",  "cv",      "wb",
                                                  "wt", "weak", "cta", "gpu", "sys", "cluster", "mmio"};
constexpr std::string_view kSyncQualifiers[] = {"volatile", "relaxed", "acquire", "release"};

GpuResult<void> FunctionDecoder::DecodeMemory(const ptx::Instruction& i) {
  const bool store = i.opcode == "st";
  uint32_t count = 1;
  bool sync = false;
  for (const std::string_view m : i.modifiers) {
    if (m == "v2" || m == "v4") {
      count = m == "v2" ? 2 : 4;
    } else if (std::find(std::begin(kSyncQualifiers), std::end(kSyncQualifiers), m) != std::end(kSyncQualifiers)) {
      sync = true;
    } else if (std::find(std::begin(kAccessQualifiers), std::end(kAccessQualifiers), m) ==
                   std::end(kAccessQualifiers) &&
               ptx::TypeFromName(m) == ptx::Type::kNone && m.substr(0, 4) != "L1::" && m.substr(0, 4) != "L2::" &&
               std::none_of(std::begin(kSpaces), std::end(kSpaces), [&](const SpaceName& s) { return s.name == m; })) {
      return Unknown();
    }
  }
  const ptx::Type type = LastType(i);
  const uint32_t size = ptx::SizeOf(type);
  if (size == 0 || size > 8 || i.operands.size() != 2) return Unknown();
  const Operand& address = i.operands[store ? 0 : 1];
  const Operand& data = i.operands[store ? 1 : 0];
  std::vector<const Operand*> values;
  if (count == 1) {
    values.push_back(&data);
  } else {
    for (const Operand& e : data.elements) values.push_back(&e);
  }
  if (values.size() != count) return Fail("the vector has the wrong number of elements");
  const ptx::Space space = SpaceOf(i);
  if (space == ptx::Space::kParam && address.kind == Kind::kAddress && address.base == Operand::Base::kParam)
    return DecodeParamAccess(i, address, type, values, store);
  const bool is_signed = type == ptx::Type::kS8 || type == ptx::Type::kS16 || type == ptx::Type::kS32;

  // All elements have one slot width; a register of another width is brought to it.
  SlotClass c = size == 8 ? SlotClass::k64 : SlotClass::k32;
  if (size < 8 && count == 1 && data.kind == Kind::kRegister && classes_[data.index] == SlotClass::k64)
    c = SlotClass::k64;
  const char* space_name = space == ptx::Space::kShared    ? "shared"
                           : space == ptx::Space::kLocal   ? "local"
                           : space == ptx::Space::kParam   ? "param"
                           : space == ptx::Space::kGeneric ? "generic"
                                                           : "global";
  const bool sign_matters = !store && is_signed && size < (c == SlotClass::k64 ? 8u : 4u);
  const std::string key = fmt::format("@{}.{}.{}{}.{}", store ? "st" : "ld", space_name, sign_matters ? "s" : "u",
                                      size * 8, c == SlotClass::k64 ? 64 : 32);
  const OpRow* row = context_.table.Find(key);
  if (row == nullptr) return Unknown();
  DraftInst draft;
  bool address32 = false;
  auto place = MemoryAddress(address, space, draft, address32);
  if (!place) return tl::unexpected(place.error());
  const bool narrow_ok = space == ptx::Space::kShared || space == ptx::Space::kLocal;
  if (address32 && !narrow_ok) {
    const Reg wide = NewRegister(SlotClass::k64);
    DraftInst& w = Emit(context_.table.Find("@widen.u")->fn);
    UseRegister(w, 0, wide, true);
    Use(w, 1, *place);
    place = InRegister(wide);
    address32 = false;
  }
  std::vector<Place> sources;
  std::vector<Target> targets;
  for (const Operand* v : values) {
    if (store) {
      auto p = Source(*v, c, type);
      if (!p) return tl::unexpected(p.error());
      sources.push_back(*p);
    } else {
      auto t = Destination(*v, c);
      if (!t) return tl::unexpected(t.error());
      targets.push_back(*t);
    }
  }
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(count);
  draft.inst.flags = static_cast<uint8_t>((address32 ? kAddress32 : 0) | (sync ? kSync : 0));
  draft.line = i.line;
  Use(draft, 0, *place);
  for (size_t e = 0; e < count; ++e) {
    const auto operand = static_cast<uint8_t>(1 + e);
    if (store) {
      Use(draft, operand, sources[e]);
    } else {
      UseRegister(draft, operand, targets[e].reg, true);
    }
  }
  draft_.push_back(std::move(draft));
  for (const Target& t : targets)
    if (auto r = Finish(t, is_signed); !r) return r;
  return {};
}

GpuResult<void> FunctionDecoder::DecodeAtomic(const ptx::Instruction& i) {
  constexpr std::string_view kOps[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
  std::string_view op;
  for (const std::string_view m : i.modifiers)
    if (std::find(std::begin(kOps), std::end(kOps), m) != std::end(kOps)) op = m;
  const ptx::Type type = LastType(i);
  std::string_view type_name;
  for (const std::string_view m : i.modifiers)
    if (ptx::TypeFromName(m) != ptx::Type::kNone) type_name = m;
  const bool returns = i.opcode == "atom";
  const OpRow* row = context_.table.Find(fmt::format("@atom.{}.{}", op, type_name));
  const size_t expected = (returns ? 3u : 2u) + (op == "cas" ? 1u : 0u);
  if (row == nullptr || i.operands.size() != expected) return Unknown();
  const SlotClass c = ClassOf(type);
  const size_t at = returns ? 1 : 0;
  DraftInst draft;
  bool address32 = false;
  const ptx::Space space = SpaceOf(i);
  auto place = MemoryAddress(i.operands[at], space, draft, address32);
  if (!place) return tl::unexpected(place.error());
  Target target{NewRegister(c), ptx::kNoIndex, ptx::kNoIndex};
  if (returns) {
    auto t = Destination(i.operands[0], c);
    if (!t) return tl::unexpected(t.error());
    target = *t;
  }
  auto b = Source(i.operands[at + 1], c, type);
  if (!b) return tl::unexpected(b.error());
  Place third = Constant(0, 8);
  if (op == "cas") {
    auto p = Source(i.operands[at + 2], c, type);
    if (!p) return tl::unexpected(p.error());
    third = *p;
  }
  const MemSpace where = space == ptx::Space::kShared   ? MemSpace::kShared
                         : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                                        : MemSpace::kGeneric;
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(where);
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.line = i.line;
  Use(draft, 0, *place);
  UseRegister(draft, 1, target.reg, true);
  Use(draft, 2, *b);
  Use(draft, 3, third);
  draft_.push_back(std::move(draft));
  return Finish(target, false);
}

uint64_t WindowOf(ptx::Space space) {
  switch (space) {
    case ptx::Space::kShared:
      return kSharedWindow;
    case ptx::Space::kLocal:
      return kLocalWindow;
    case ptx::Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

GpuResult<void> FunctionDecoder::DecodeCvta(const ptx::Instruction& i) {
  if (LastType(i) != ptx::Type::kU64 || i.operands.size() != 2) return Unknown();
  const uint64_t window = WindowOf(SpaceOf(i));
  auto target = Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  auto source = Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  DraftInst& d = Emit(context_.table.Find(window == 0 ? "mov.b64" : "add.u64")->fn);
  UseRegister(d, 0, target->reg, true);
  Use(d, 1, *source);
  if (window != 0) UseConstant(d, 2, Has(i, "to") ? 0 - window : window, 8);
  return Finish(*target, false);
}

GpuResult<void> FunctionDecoder::DecodeIsSpaceP(const ptx::Instruction& i) {
  if (i.operands.size() != 2) return Unknown();
  const ptx::Space space = SpaceOf(i);
  const bool arena = space == ptx::Space::kGlobal || space == ptx::Space::kConst;
  const uint64_t base = arena ? kArenaVa : WindowOf(space);
  auto target = Destination(i.operands[0], SlotClass::kPredicate);
  if (!target) return tl::unexpected(target.error());
  auto source = Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  const Reg offset = NewRegister(SlotClass::k64);
  DraftInst& sub = Emit(context_.table.Find("sub.u64")->fn);
  UseRegister(sub, 0, offset, true);
  Use(sub, 1, *source);
  UseConstant(sub, 2, base, 8);
  DraftInst& d = Emit(context_.table.Find("setp.lt.u64")->fn);
  UseRegister(d, 0, target->reg, true);
  UseRegister(d, 1, NewRegister(SlotClass::kPredicate), true);
  UseRegister(d, 2, offset, false);
  UseConstant(d, 3, arena ? uint64_t{1} << 46 : kWindowBytes, 8);
  return {};
}

// mov with a vector on one side packs or unpacks.
GpuResult<void> FunctionDecoder::DecodeMove(const ptx::Instruction& i) {
  const bool unpack = i.operands[0].kind == Kind::kVector;
  const Operand& vector = i.operands[unpack ? 0 : 1];
  const Operand& whole = i.operands[unpack ? 1 : 0];
  const uint32_t bits = ptx::SizeOf(LastType(i)) * 8;
  const auto parts = static_cast<uint8_t>(std::min<size_t>(vector.elements.size(), 5));
  const OpRow* row = context_.table.Find(fmt::format("@{}.b{}.{}", unpack ? "unpack" : "pack", bits, parts));
  if (row == nullptr) return Unknown();
  const SlotClass whole_class = bits == 64 ? SlotClass::k64 : SlotClass::k32;
  std::vector<Place> sources;
  std::vector<Target> targets;
  if (unpack) {
    for (const Operand& e : vector.elements) {
      auto t = Destination(e, SlotClass::k32);
      if (!t) return tl::unexpected(t.error());
      targets.push_back(*t);
    }
    auto p = Source(whole, whole_class, LastType(i));
    if (!p) return tl::unexpected(p.error());
    sources.push_back(*p);
  } else {
    auto t = Destination(whole, whole_class);
    if (!t) return tl::unexpected(t.error());
    targets.push_back(*t);
    for (const Operand& e : vector.elements) {
      auto p = Source(e, SlotClass::k32, bits / parts == 32 ? ptx::Type::kB32 : ptx::Type::kB16);
      if (!p) return tl::unexpected(p.error());
      sources.push_back(*p);
    }
  }
  DraftInst& d = Emit(row->fn);
  uint8_t at = 0;
  for (const Target& t : targets) UseRegister(d, at++, t.reg, true);
  for (const Place& p : sources) Use(d, at++, p);
  for (const Target& t : targets)
    if (auto r = Finish(t, false); !r) return r;
  return {};
}

GpuResult<void> FunctionDecoder::DecodeOne(const ptx::Instruction& i) {
  const size_t begin = draft_.size();
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
  } else if (i.opcode == "ld" || i.opcode == "st" || i.opcode == "ldu") {
    r = DecodeMemory(i);
  } else if (i.opcode == "atom" || i.opcode == "red") {
    r = DecodeAtomic(i);
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
  draft_[skip].target = static_cast<uint32_t>(draft_.size());
  return r;
}

GpuResult<void> FunctionDecoder::LayOutLocals() {
  uint64_t shared = shared_end_;
  uint64_t local = 0;
  for (const ptx::Variable& v : source_.variables) {
    if (v.space == ptx::Space::kShared && v.bytes != 0) {
      shared = RoundUp(shared, v.align);
      variable_offsets_.push_back(shared);
      shared += v.bytes;
    } else if (v.space == ptx::Space::kLocal) {
      local = RoundUp(local, std::max<uint64_t>(v.align, 8));
      variable_offsets_.push_back(local);
      local += v.bytes;
    } else {
      variable_offsets_.push_back(0);
    }
  }
  if (local > kWindowBytes || shared > kWindowBytes)
    return GpuFail(CuStatus::kInvalidPtx, fmt::format("variables of {} are too large", source_.name));
  function_.local_bytes = static_cast<uint32_t>(RoundUp(local, 16));
  function_.shared_bytes = static_cast<uint32_t>(shared);
  uint32_t block = function_.block_bytes;
  for (const ptx::Param& p : source_.body_params) {
    block = static_cast<uint32_t>(RoundUp(block, std::max(p.align, 8u)));
    body_param_offsets_.push_back(block);
    if (p.bytes > 65536) return GpuFail(CuStatus::kInvalidPtx, fmt::format("parameter {} is too large", p.name));
    block += p.bytes;
  }
  function_.block_bytes = static_cast<uint32_t>(RoundUp(block, 16));
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
    start_of_.push_back(static_cast<uint32_t>(draft_.size()));
    if (auto r = DecodeOne(i); !r) return r;
  }
  start_of_.push_back(static_cast<uint32_t>(draft_.size()));
  // Falling off the end is the same as ret.
  DraftInst last;
  last.inst.fn = source_.is_kernel ? OpExit : OpReturn;
  last.falls_through = false;
  last.line = source_.code.empty() ? source_.line : source_.code.back().line;
  draft_.push_back(std::move(last));
  for (const auto& [draft, target] : branches_) draft_[draft].target = start_of_[target];
  WriteOut();
  return {};
}

void FunctionDecoder::WriteOut() {
  const SlotPlan plan = AllocateSlots(draft_, classes_, sizeof(FrameHeader));
  function_.params_at = plan.frame_bytes;
  function_.frame_bytes =
      static_cast<uint32_t>(RoundUp(plan.frame_bytes + uint64_t{function_.block_bytes} * kLanes, 64));
  function_.entry = static_cast<uint32_t>(context_.program.code.size());
  function_.info.registers = std::clamp(plan.slots32 + 2 * plan.slots64, 1u, 255u);
  function_.info.static_shared_bytes = function_.shared_bytes;
  for (DraftInst& d : draft_) {
    Inst inst = d.inst;
    for (const RegisterUse& u : d.uses) inst.offset[u.operand] = plan.offset[u.reg];
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
}

}  // namespace

uint32_t ConstantPool::Add(uint64_t value, uint32_t lane_bytes) {
  if (lane_bytes == 4) value &= 0xffffffff;
  const auto [at, fresh] = known.emplace(std::pair(value, lane_bytes), static_cast<uint32_t>(bytes.size()));
  if (!fresh) return at->second;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const size_t end = bytes.size();
    bytes.resize(end + lane_bytes);
    std::memcpy(bytes.data() + end, &value, lane_bytes);
  }
  return at->second;
}

uint32_t ConstantPool::AddLanes(const uint32_t (&lanes)[kLanes]) {
  const auto at = static_cast<uint32_t>(bytes.size());
  bytes.resize(at + sizeof(lanes));
  std::memcpy(bytes.data() + at, lanes, sizeof(lanes));
  return at;
}

void LayOutParameters(const ptx::Module& module, Program& program) {
  for (size_t n = 0; n < module.functions.size(); ++n) {
    const ptx::Function& source = *module.functions[n];
    CodeFunction& f = *program.functions[n];
    f.params = source.params;
    f.returns = source.returns;
    std::copy(std::begin(source.max_threads), std::end(source.max_threads), f.required_threads);
    if (source.is_kernel) {
      f.info.param_bytes = source.param_bytes;
      for (const ptx::Param& p : source.params) f.info.params.push_back({p.offset, p.bytes});
      uint64_t threads = 1;
      for (const uint32_t m : source.max_threads) threads *= std::max(m, 1u);
      if (source.max_threads[0] != 0) f.info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
      if (!source.required_threads) std::fill(std::begin(f.required_threads), std::end(f.required_threads), 0);
      f.info.ptx_version = module.target;
      continue;
    }
    uint32_t at = 0;
    for (std::vector<ptx::Param>* list : {&f.params, &f.returns}) {
      for (ptx::Param& p : *list) {
        at = static_cast<uint32_t>(RoundUp(at, std::max(p.align, 8u)));
        p.offset = at;
        at += p.bytes;
      }
    }
    f.block_bytes = at;
  }
}

GpuResult<void> DecodeFunction(ModuleContext& context, uint32_t index, const std::vector<uint64_t>& shared_offsets,
                               uint64_t shared_end) {
  return FunctionDecoder(context, index, shared_offsets, shared_end).Decode();
}

}  // namespace vgpud::soft
