// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

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

GpuResult<void> FunctionDecoder::DecodePlain(const ptx::Instruction& i) {
  const PlainRow found = FindPlainRow(context_.table, i.opcode, i.modifiers);
  if (found.row == nullptr) return Unknown();
  return DecodeRow(i, *found.row, found.flags, found.aux, found.rounding);
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
  const bool is_signed = IsSigned(result);
  for (const Target& t : targets)
    if (auto r = Finish(t, is_signed); !r) return r;
  return {};
}

}  // namespace vgpud::soft
