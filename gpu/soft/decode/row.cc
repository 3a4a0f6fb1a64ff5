// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

// Rounding mode bits of MXCSR.
std::optional<uint8_t> RoundingOf(std::string_view modifier) {
  if (modifier == "rm") return 1;
  if (modifier == "rp") return 2;
  if (modifier == "rz") return 3;
  return std::nullopt;
}

// Where .rn says what is done anyway.
constexpr std::string_view kRounded[] = {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "cvt"};
bool MayBeRounded(std::string_view opcode, const std::vector<std::string_view>& modifiers) {
  const bool of_floats = std::any_of(modifiers.begin(), modifiers.end(), [](auto m) {
    const size_t f = m.find('f');
    return ptx::TypeFromName(m) != ptx::Type::kNone && f != m.npos;
  });
  return of_floats && std::find(std::begin(kRounded), std::end(kRounded), opcode) != std::end(kRounded);
}

}  // namespace

PlainRow FindPlainRow(const OpTable& table, std::string_view opcode, std::vector<std::string_view> modifiers) {
  const auto drop = [&](auto condition) {
    modifiers.erase(std::remove_if(modifiers.begin(), modifiers.end(), condition), modifiers.end());
  };
  if (opcode == "fence" || opcode == "prefetch" || opcode == "prefetchu" || opcode == "discard" ||
      opcode == "applypriority")
    modifiers.clear();
  if (opcode == "bar" || opcode == "barrier") drop([](auto m) { return m == "cta" || m == "aligned"; });
  if (opcode == "barrier" && std::find(modifiers.begin(), modifiers.end(), "cluster") != modifiers.end())
    drop([](auto m) { return m == "release" || m == "relaxed" || m == "acquire"; });
  const auto find = [&] { return table.Find(OpTable::Key(opcode, modifiers)); };
  const OpRow* row = find();
  uint8_t flags = 0;
  uint8_t aux = 0;
  uint8_t rounding = 0;
  uint8_t needs = 0;
  const bool nearest = std::find(modifiers.begin(), modifiers.end(), "rn") != modifiers.end();
  if (row == nullptr && nearest && MayBeRounded(opcode, modifiers)) {
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
        if (nearest || rounding != 0) return {};
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
  if (row == nullptr || (needs & ~row->traits) != 0) return {};
  return {row, flags, aux, rounding};
}

namespace {

// The operands of an instruction, taken one by one as the letters of its row's signature say (op_table.h).
class RowOperands {
 public:
  RowOperands(DraftBuilder& out, const ptx::Instruction& i) : out_(out), type_(LastType(i)) {
    for (const Operand& o : i.operands) operands_.push_back(&o);
  }
  size_t count() const { return operands_.size(); }
  // Stands where the instruction left out a zero.
  void Insert(size_t at, const Operand* o) { operands_.insert(operands_.begin() + static_cast<ptrdiff_t>(at), o); }
  bool AllTaken() const { return next_ == operands_.size(); }

  GpuResult<void> Take(char letter) {
    if (letter == '?') {
      optional_ = true;
      return {};
    }
    if (letter == 'c' || letter == 'C' || letter == 'x') {
      TakeCarry(letter);
      return {};
    }
    if (AllTaken()) {
      if (!optional_) return out_.Fail("operands are missing");
      Read(out_.Constant(0, 4));
      return {};
    }
    const Operand& o = *operands_[next_++];
    switch (letter) {
      case 'd':
        return Destination(o, SlotClass::k32);
      case 'D':
        return Destination(o, SlotClass::k64);
      case 'e':
        if (auto r = Destination(o, SlotClass::k32); !r) return r;
        return SecondPredicate(o);
      case 'P':
        return Destination(o, SlotClass::kPredicate);
      case 'Q':
        if (auto r = Destination(o, SlotClass::kPredicate); !r) return r;
        return SecondPredicate(o);
      case 'p':
        return Read(out_.Predicate(o));
      default:
        return Read(out_.Source(o, letter == 'A' ? SlotClass::k64 : SlotClass::k32, type_));
    }
  }
  void Use(DraftInst& d) const {
    uint8_t at = 0;
    for (const Slot& s : slots_) {
      if (s.write != ptx::kNoIndex) {
        out_.UseRegister(d, at++, s.write, true);
      } else {
        out_.Use(d, at++, s.place);
      }
    }
  }
  void Finish(bool is_signed) const {
    for (const Target& t : targets_) out_.Finish(t, is_signed);
  }

 private:
  struct Slot {
    Place place;
    Reg write = ptx::kNoIndex;
  };
  void TakeCarry(char letter) {
    const Reg carry = out_.Carry();
    if (letter == 'c') {
      Read(InRegister(carry));
    } else {
      slots_.push_back({{}, letter == 'C' ? carry : out_.NewRegister(SlotClass::kPredicate)});
    }
  }
  GpuResult<void> Read(const GpuResult<Place>& place) {
    if (!place) return tl::unexpected(place.error());
    slots_.push_back({*place});
    return {};
  }
  GpuResult<void> Destination(const Operand& o, SlotClass c) {
    const auto t = out_.Destination(o, c);
    if (!t) return tl::unexpected(t.error());
    slots_.push_back({{}, t->reg});
    targets_.push_back(*t);
    return {};
  }
  // What follows |, or nothing.
  GpuResult<void> SecondPredicate(const Operand& o) {
    const Reg second = o.second != ptx::kNoIndex ? o.second : out_.NewRegister(SlotClass::kPredicate);
    if (out_.ClassOf(second) != SlotClass::kPredicate) return out_.Fail("what follows | is not a predicate");
    slots_.push_back({{}, second});
    return {};
  }

  DraftBuilder& out_;
  const ptx::Type type_;
  std::vector<const Operand*> operands_;
  size_t next_ = 0;
  bool optional_ = false;
  std::vector<Slot> slots_;
  std::vector<Target> targets_;
};

}  // namespace

GpuResult<void> DecodePlain(DraftBuilder& out, const ptx::Instruction& i) {
  const PlainRow found = FindPlainRow(out.table(), i.opcode, i.modifiers);
  if (found.row == nullptr) return out.Unknown();
  return DecodeRow(out, i, found);
}

GpuResult<void> DecodeLeastOrMost(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() != 4) return DecodePlain(out, i);
  std::vector<std::string_view> modifiers = i.modifiers;
  modifiers.push_back("three");
  const PlainRow found = FindPlainRow(out.table(), fmt::format("@{}", i.opcode), std::move(modifiers));
  if (found.row == nullptr) return out.Unknown();
  return DecodeRow(out, i, found);
}

GpuResult<void> DecodeRegisterCount(DraftBuilder& out, const ptx::Instruction& i) {
  constexpr uint64_t kLeast = 24;
  constexpr uint64_t kMost = 256;
  const bool fits = i.operands.size() == 1 && i.operands[0].kind == Operand::Kind::kImmediate &&
                    !i.operands[0].is_float && i.operands[0].bits >= kLeast && i.operands[0].bits <= kMost &&
                    i.operands[0].bits % 8 == 0;
  if (!fits) return out.Fail(fmt::format("a number of registers is a multiple of 8 from {} to {}", kLeast, kMost));
  return DecodePlain(out, i);
}

GpuResult<void> DecodeRow(DraftBuilder& out, const ptx::Instruction& i, const PlainRow& plain) {
  const OpRow& row = *plain.row;
  const std::string_view signature = row.operands;
  if (signature == "-") {
    out.Emit(row.fn);
    return {};
  }
  RowOperands operands(out, i);
  // bar.red leaves the thread count out in the middle.
  static const Operand kZero = [] {
    Operand o;
    o.kind = Operand::Kind::kImmediate;
    return o;
  }();
  if (signature.size() == 4 && signature.substr(1) == "aap" && operands.count() == 3) operands.Insert(2, &kZero);
  std::string full(signature);
  if (plain.aux != 0) full += 'p';
  for (const char letter : full)
    if (auto r = operands.Take(letter); !r) return r;
  if (!operands.AllTaken()) return out.Fail("there are too many operands");
  DraftInst& d = out.Emit(row.fn);
  d.inst.flags = plain.flags;
  d.inst.aux = plain.aux;
  if (plain.rounding != 0) {
    d.inst.inner = row.fn;
    d.inst.fn = OpRounded;
    d.inst.aux = plain.rounding;
  }
  d.diverts = row.traits & kDiverts;
  if (row.fn == OpExit || i.opcode == "trap") d.falls_through = false;
  operands.Use(d);
  operands.Finish(IsSigned(FirstType(i)));
  return {};
}

}  // namespace vgpud::soft
