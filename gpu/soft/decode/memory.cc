// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

namespace {

// Qualifiers of loads and stores that change nothing here, or only say that others may be waited for.
constexpr std::string_view kAccessQualifiers[] = {"nc", "ca",   "cg",  "cs",  "lu",  "cv",     "wb",
                                                  "wt", "weak", "cta", "gpu", "sys", "cluster"};
constexpr std::string_view kSyncQualifiers[] = {"volatile", "relaxed", "acquire", "release", "mmio"};

}  // namespace

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

GpuResult<void> FunctionDecoder::DecodeMemory(const ptx::Instruction& i) {
  const bool store = i.opcode == "st";
  uint32_t count = 1;
  bool sync = false;
  for (const std::string_view m : i.modifiers) {
    if (m == "v2" || m == "v4") {
      count = m == "v2" ? 2 : 4;
    } else if (m == (store ? "nc" : "release") || (store && (m == "acquire" || m == "const"))) {
      return Unknown();
    } else if (std::find(std::begin(kSyncQualifiers), std::end(kSyncQualifiers), m) != std::end(kSyncQualifiers)) {
      sync = true;
    } else if (std::find(std::begin(kAccessQualifiers), std::end(kAccessQualifiers), m) ==
                   std::end(kAccessQualifiers) &&
               ptx::TypeFromName(m) == ptx::Type::kNone && m.substr(0, 4) != "L1::" && m.substr(0, 4) != "L2::" &&
               !IsSpaceModifier(m)) {
      return Unknown();
    }
  }
  const ptx::Type type = LastType(i);
  const uint32_t size = ptx::SizeOf(type);
  if (size == 0 || size > 8 || i.operands.size() != 2 + PolicyOperands(i)) return Unknown();
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
  const bool is_signed = IsSigned(type);

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
  // A block never runs on two threads at once, so its shared and local memory need nothing for others to look at.
  const bool shows = sync && (space == ptx::Space::kGlobal || space == ptx::Space::kGeneric);
  const std::string key = fmt::format("@{}{}.{}.{}{}.{}", shows ? "sync_" : "", store ? "st" : "ld", space_name,
                                      sign_matters ? "s" : "u", size * 8, c == SlotClass::k64 ? 64 : 32);
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
  const bool checked = space == ptx::Space::kShared || space == ptx::Space::kGlobal || space == ptx::Space::kGeneric;
  const MemSpace where = space == ptx::Space::kShared   ? MemSpace::kShared
                         : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                                        : MemSpace::kGeneric;
  const auto bytes = size * count;
  if (checked) EmitCheck(draft, *place, where, store ? CheckedAccess::kStore : CheckedAccess::kLoad, bytes);
  draft_.push_back(std::move(draft));
  for (const Target& t : targets)
    if (auto r = Finish(t, is_signed); !r) return r;
  return {};
}

void FunctionDecoder::EmitCheck(const DraftInst& access, const Place& place, MemSpace space, CheckedAccess what,
                                uint32_t bytes) {
  if (!context_.check) return;
  DraftInst& d = Emit(OpCheckAccess);
  Use(d, 0, place);
  d.inst.imm = access.inst.imm;
  d.inst.flags = access.inst.flags & kAddress32;
  d.inst.aux = static_cast<uint8_t>(static_cast<uint32_t>(space) | static_cast<uint32_t>(what) << 4);
  d.inst.offset[1] = bytes;
}

GpuResult<void> FunctionDecoder::DecodeAtomic(const ptx::Instruction& i) {
  constexpr std::string_view kOps[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
  std::string_view op;
  for (const std::string_view m : i.modifiers) {
    if (std::find(std::begin(kOps), std::end(kOps), m) == std::end(kOps)) continue;
    if (!op.empty()) return Unknown();
    op = m;
  }
  const ptx::Type type = LastType(i);
  std::string_view type_name;
  for (const std::string_view m : i.modifiers)
    if (ptx::TypeFromName(m) != ptx::Type::kNone) type_name = m;
  const bool returns = i.opcode == "atom";
  const OpRow* row = context_.table.Find(fmt::format("@atom.{}.{}", op, type_name));
  const size_t expected = (returns ? 3u : 2u) + (op == "cas" ? 1u : 0u);
  if (row == nullptr || i.operands.size() != expected + PolicyOperands(i)) return Unknown();
  const SlotClass c = ClassOf(type);
  const size_t at = returns ? 1 : 0;
  DraftInst draft;
  bool address32 = false;
  const ptx::Space space = SpaceOf(i);
  if (space != ptx::Space::kGlobal && space != ptx::Space::kShared && space != ptx::Space::kGeneric) return Unknown();
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
  EmitCheck(draft, *place, where, CheckedAccess::kAtomic, ptx::SizeOf(type));
  draft_.push_back(std::move(draft));
  return Finish(target, false);
}

}  // namespace vgpud::soft
