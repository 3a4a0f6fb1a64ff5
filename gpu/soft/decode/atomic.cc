// SPDX-License-Identifier: Apache-2.0
// atom and red. A vector of elements is as many atomic operations, one after the other: each is atomic by itself.
#include <algorithm>
#include <iterator>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

constexpr std::string_view kOps[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};

// What one atom or red says, looked at.
struct AtomicForm {
  std::string_view op;
  std::string_view type_name;
  ptx::Type type = ptx::Type::kNone;
  ptx::Space space = ptx::Space::kGeneric;
  uint32_t count = 0;  // elements of the vector; 0 = it is none
  bool returns = false;

  uint32_t elements() const { return std::max(count, 1u); }
  MemSpace where() const {
    return space == ptx::Space::kShared   ? MemSpace::kShared
           : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                          : MemSpace::kGeneric;
  }
};

// Vectors have 16 bytes at most, lie in global memory, and hold floating-point values of 16 or 32 bits; of these, min
// and max exist in vectors only.
bool IsVectorForm(const AtomicForm& form, bool noftz) {
  const bool small = form.type == ptx::Type::kF16 || form.type == ptx::Type::kBf16 || form.type == ptx::Type::kF16x2 ||
                     form.type == ptx::Type::kBf16x2;
  const bool known = form.op == "add" || (small && (form.op == "min" || form.op == "max"));
  if (form.count == 0) return form.op == "add" || !small;
  return known && (small ? noftz : form.type == ptx::Type::kF32) && form.count * ptx::SizeOf(form.type) <= 16 &&
         (form.space == ptx::Space::kGlobal || form.space == ptx::Space::kGeneric);
}

// False: there is no such form.
bool ReadForm(const ptx::Instruction& i, AtomicForm& form) {
  for (const std::string_view m : i.modifiers) {
    if (m == "v2" || m == "v4" || m == "v8") {
      if (form.count != 0) return false;
      form.count = static_cast<uint32_t>(m[1] - '0');
    } else if (std::find(std::begin(kOps), std::end(kOps), m) != std::end(kOps)) {
      if (!form.op.empty()) return false;
      form.op = m;
    } else if (ptx::TypeFromName(m) != ptx::Type::kNone) {
      form.type_name = m;
    }
  }
  form.type = LastType(i);
  form.space = SpaceOf(i);
  form.returns = i.opcode == "atom";
  const size_t expected = (form.returns ? 3u : 2u) + (form.op == "cas" ? 1u : 0u);
  return IsVectorForm(form, HasModifier(i, "noftz")) && i.operands.size() == expected + PolicyOperands(i) &&
         (form.space == ptx::Space::kGlobal || form.space == ptx::Space::kShared ||
          form.space == ptx::Space::kGeneric || form.space == ptx::Space::kSharedCluster);
}

// Element n of a vector, or the operand itself.
const Operand& ElementOf(const Operand& o, const AtomicForm& form, uint32_t n) {
  return form.count != 0 ? o.elements[n] : o;
}

// exch and cas of 128 bits.
GpuResult<void> DecodeWideAtomic(DraftBuilder& out, const ptx::Instruction& i, const AtomicForm& form) {
  const OpRow* row = out.Row(fmt::format("@atom.{}.b128", form.op));
  if (row == nullptr || !form.returns) return out.Unknown();
  DraftInst draft;
  bool address32 = false;
  const auto place = out.MemoryAddress(i.operands[1], form.space, draft, address32);
  if (!place) return tl::unexpected(place.error());
  for (const size_t n : {0, 2, 3}) {
    if (n == 3 && form.op != "cas") break;
    const auto halves = out.HalvesOf(i.operands[n]);
    if (!halves) return tl::unexpected(halves.error());
    for (const Operand& h : *halves) out.UseExtra(draft, InRegister(h.index), n == 0);
  }
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(form.where());
  draft.inst.flags = address32 ? kAddress32 : 0;
  draft.line = i.line;
  out.Use(draft, 0, *place);
  out.EmitCheck(draft, *place, form.where(), CheckedAccess::kAtomic, ptx::SizeOf(form.type));
  out.Add(std::move(draft));
  return {};
}

}  // namespace

GpuResult<void> DecodeAtomic(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.opcode == "red" && HasModifier(i, "async")) return DecodeAsyncAccess(out, i);
  AtomicForm form;
  if (!ReadForm(i, form)) return out.Unknown();
  if (form.type == ptx::Type::kB128) return DecodeWideAtomic(out, i, form);
  const OpRow* row = out.Row(fmt::format("@atom.{}.{}", form.op, form.type_name));
  if (row == nullptr) return out.Unknown();
  const SlotClass c = ClassOf(form.type);
  const size_t at = form.returns ? 1 : 0;
  for (const size_t n : {size_t{0}, at + 1})
    if (form.count != 0 && (n != 0 || form.returns) && i.operands[n].elements.size() != form.count)
      return out.Fail("the vector has the wrong number of elements");
  DraftInst start;
  bool address32 = false;
  auto place = out.MemoryAddress(i.operands[at], form.space, start, address32);
  if (!place) return tl::unexpected(place.error());
  std::vector<Target> targets;
  for (uint32_t n = 0; n < form.elements(); ++n) {
    Target target{out.NewRegister(c), ptx::kNoIndex, ptx::kNoIndex};
    if (form.returns) {
      auto t = out.Destination(ElementOf(i.operands[0], form, n), c);
      if (!t) return tl::unexpected(t.error());
      target = *t;
    }
    targets.push_back(target);
    auto b = out.Source(ElementOf(i.operands[at + 1], form, n), c, form.type);
    if (!b) return tl::unexpected(b.error());
    Place third = out.Constant(0, 8);
    if (form.op == "cas") {
      auto p = out.Source(i.operands[at + 2], c, form.type);
      if (!p) return tl::unexpected(p.error());
      third = *p;
    }
    DraftInst draft;
    draft.inst.fn = row->fn;
    draft.inst.aux = static_cast<uint8_t>(form.where());
    draft.inst.flags = address32 ? kAddress32 : 0;
    draft.inst.imm = start.inst.imm + int64_t{n} * ptx::SizeOf(form.type);
    draft.line = i.line;
    out.Use(draft, 0, *place);
    out.UseRegister(draft, 1, target.reg, true);
    out.Use(draft, 2, *b);
    out.Use(draft, 3, third);
    out.EmitCheck(draft, *place, form.where(), CheckedAccess::kAtomic, ptx::SizeOf(form.type));
    out.Add(std::move(draft));
  }
  for (const Target& t : targets) out.Finish(t, false);
  return {};
}

}  // namespace vgpud::soft
