// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

// Qualifiers of loads and stores that change nothing here, or only say that others may be waited for.
constexpr std::string_view kAccessQualifiers[] = {"nc", "ca",   "cg",  "cs",  "lu",  "cv",     "wb",
                                                  "wt", "weak", "cta", "gpu", "sys", "cluster"};
constexpr std::string_view kSyncQualifiers[] = {"volatile", "relaxed", "acquire", "release", "mmio"};

}  // namespace

namespace {

// What one ld or st says, looked at.
struct Access {
  bool store = false;
  bool sync = false;  // ordered, or what others wait for
  uint32_t count = 1;
  ptx::Type type = ptx::Type::kNone;
  uint32_t size = 0;  // of an element, bytes
  ptx::Space space = ptx::Space::kGeneric;
  const Operand* address = nullptr;
  std::vector<const Operand*> values;
  std::vector<Operand> halves;  // of a value of 128 bits

  MemSpace where() const {
    return space == ptx::Space::kShared   ? MemSpace::kShared
           : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                          : MemSpace::kGeneric;
  }
  const char* space_name() const {
    return space == ptx::Space::kShared                                           ? "shared"
           : space == ptx::Space::kLocal                                          ? "local"
           : space == ptx::Space::kParam                                          ? "param"
           : space == ptx::Space::kGeneric || space == ptx::Space::kSharedCluster ? "generic"
                                                                                  : "global";
  }
};

// False: a modifier that no such instruction has.
bool ReadModifiers(const ptx::Instruction& i, Access& access) {
  const auto in = [](const auto& list, std::string_view m) {
    return std::find(std::begin(list), std::end(list), m) != std::end(list);
  };
  for (const std::string_view m : i.modifiers) {
    if (m == "v2" || m == "v4" || m == "v8") {
      access.count = static_cast<uint32_t>(m[1] - '0');
    } else if (m == (access.store ? "nc" : "release") || (access.store && (m == "acquire" || m == "const"))) {
      return false;
    } else if (in(kSyncQualifiers, m)) {
      access.sync = true;
    } else if (!in(kAccessQualifiers, m) && ptx::TypeFromName(m) == ptx::Type::kNone && m.substr(0, 4) != "L1::" &&
               m.substr(0, 4) != "L2::" && !IsSpaceModifier(m)) {
      return false;
    }
  }
  return true;
}

GpuResult<Access> ReadAccess(DraftBuilder& out, const ptx::Instruction& i) {
  Access access;
  access.store = i.opcode == "st";
  access.type = LastType(i);
  access.size = ptx::SizeOf(access.type);
  access.space = SpaceOf(i);
  const bool wide = access.type == ptx::Type::kB128;
  if (!ReadModifiers(i, access) || access.size == 0 || (wide && access.count != 1) ||
      i.operands.size() != 2 + PolicyOperands(i))
    return tl::unexpected(out.Unknown().error());
  // 32 bytes are for global memory only.
  if (access.count == 8 && (access.size != 4 || access.space != ptx::Space::kGlobal))
    return tl::unexpected(out.Unknown().error());
  access.address = &i.operands[access.store ? 0 : 1];
  const Operand& data = i.operands[access.store ? 1 : 0];
  if (wide) {
    const auto halves = out.HalvesOf(data);
    if (!halves) return tl::unexpected(halves.error());
    access.halves.assign(halves->begin(), halves->end());
    for (const Operand& h : access.halves) access.values.push_back(&h);
    access.count = 2;
    access.size = 8;
    access.type = ptx::Type::kB64;
  } else if (access.count == 1) {
    // ptxas takes a single register in braces, too.
    const bool braces = data.kind == Operand::Kind::kVector && data.elements.size() == 1;
    access.values.push_back(braces ? data.elements.data() : &data);
  } else {
    for (const Operand& e : data.elements) access.values.push_back(&e);
  }
  if (access.values.size() != access.count) return out.Fail("the vector has the wrong number of elements");
  return access;
}

// All elements have one slot width; a register of another width is brought to it.
SlotClass WidthOf(const DraftBuilder& out, const Access& access) {
  const Operand& first = *access.values[0];
  if (access.size < 8 && access.count == 1 && first.kind == Operand::Kind::kRegister &&
      out.ClassOf(first.index) == SlotClass::k64)
    return SlotClass::k64;
  return access.size == 8 ? SlotClass::k64 : SlotClass::k32;
}

const OpRow* RowOf(const DraftBuilder& out, const Access& access, SlotClass c) {
  const bool sign_matters = !access.store && IsSigned(access.type) && access.size < (c == SlotClass::k64 ? 8u : 4u);
  // A block never runs on two threads at once, so its shared and local memory need nothing for others to look at.
  const bool shows = access.sync && access.space != ptx::Space::kShared && access.space != ptx::Space::kLocal &&
                     access.space != ptx::Space::kParam;
  return out.Row(fmt::format("@{}{}.{}.{}{}.{}", shows ? "sync_" : "", access.store ? "st" : "ld", access.space_name(),
                             sign_matters ? "s" : "u", access.size * 8, c == SlotClass::k64 ? 64 : 32));
}

// Operands 1 and on: what is read or written, `count` values from number `first` on. `targets` are to be finished.
GpuResult<void> UseValues(DraftBuilder& out, const Access& access, SlotClass c, size_t first, size_t count,
                          DraftInst& draft, std::vector<Target>& targets) {
  uint8_t operand = 1;
  for (size_t n = first; n < first + count; ++n) {
    const Operand& v = *access.values[n];
    if (access.store) {
      const auto p = out.Source(v, c, access.type);
      if (!p) return tl::unexpected(p.error());
      out.Use(draft, operand++, *p);
    } else {
      const auto t = out.Destination(v, c);
      if (!t) return tl::unexpected(t.error());
      out.UseRegister(draft, operand++, t->reg, true);
      targets.push_back(*t);
    }
  }
  return {};
}

}  // namespace

GpuResult<void> DecodeMemory(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.opcode == "st" && HasModifier(i, "async")) return DecodeAsyncAccess(out, i);
  const auto access = ReadAccess(out, i);
  if (!access) return tl::unexpected(access.error());
  if (access->space == ptx::Space::kParam && access->address->kind == Operand::Kind::kAddress &&
      access->address->base == Operand::Base::kParam)
    return DecodeParamAccess(out, *access->address, access->type, access->values, access->store);
  const SlotClass c = WidthOf(out, *access);
  const OpRow* row = RowOf(out, *access, c);
  if (row == nullptr) return out.Unknown();
  DraftInst start;
  bool address32 = false;
  auto place = out.MemoryAddress(*access->address, access->space, start, address32);
  if (!place) return tl::unexpected(place.error());
  const bool narrow_ok = access->space == ptx::Space::kShared || access->space == ptx::Space::kLocal;
  if (address32 && !narrow_ok) {
    const Reg wide = out.NewRegister(SlotClass::k64);
    DraftInst& w = out.Emit(out.Row("@widen.u")->fn);
    out.UseRegister(w, 0, wide, true);
    out.Use(w, 1, *place);
    place = InRegister(wide);
    address32 = false;
  }
  const bool checked = access->space == ptx::Space::kShared || access->space == ptx::Space::kGlobal ||
                       access->space == ptx::Space::kGeneric || access->space == ptx::Space::kSharedCluster;
  std::vector<Target> targets;
  // An instruction takes four values.
  for (uint32_t first = 0; first < access->count; first += 4) {
    const uint32_t count = std::min(access->count - first, 4u);
    DraftInst draft;
    draft.inst.imm = start.inst.imm + int64_t{first} * access->size;
    out.Use(draft, 0, *place);
    if (auto r = UseValues(out, *access, c, first, count, draft, targets); !r) return r;
    draft.inst.fn = row->fn;
    draft.inst.aux = static_cast<uint8_t>(count);
    draft.inst.flags = static_cast<uint8_t>((address32 ? kAddress32 : 0) | (access->sync ? kSync : 0));
    draft.line = i.line;
    if (checked)
      out.EmitCheck(draft, *place, access->where(), access->store ? CheckedAccess::kStore : CheckedAccess::kLoad,
                    access->size * count);
    out.Add(std::move(draft));
  }
  for (const Target& t : targets) out.Finish(t, IsSigned(access->type));
  return {};
}

}  // namespace vgpud::soft
