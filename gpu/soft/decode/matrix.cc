// SPDX-License-Identifier: Apache-2.0
// wmma, mma, ldmatrix: instructions whose operands are fragments of matrices, many registers each.
#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;
namespace {

// Types that only matrices have.
constexpr std::string_view kSmallTypes[] = {"s4", "u4", "b1"};
// What need not be in the name of a row.
constexpr std::string_view kImplied[] = {"sync", "aligned", "row", "col", "rn", "popc"};

template <size_t kCount>
bool IsIn(const std::string_view (&list)[kCount], std::string_view m) {
  return std::find(std::begin(list), std::end(list), m) != std::end(list);
}

// "m16n8k16"
bool IsShape(std::string_view m) {
  return m.size() > 4 && m[0] == 'm' && m[1] >= '1' && m[1] <= '9' && m.find('n') != m.npos && m.find('k') != m.npos;
}

struct MatrixForm {
  std::string key;  // of the row
  uint8_t aux = 0;
  bool memory = false;
  bool wide = false;  // the registers have 64 bits
};

// Rows: "@wmma.load.a.<shape>.<type>", "@wmma.store.d.<shape>.<type>", "@wmma.mma.<shape>.<d>.<a>.<b>.<c>" with f16 for
// what old forms leave out, "@mma.<shape>...", with ".xor" or ".and" before the shape for single bits.
std::optional<MatrixForm> FormOf(const ptx::Instruction& i) {
  if (i.modifiers.empty()) return std::nullopt;
  const bool wmma = i.opcode == "wmma";
  const std::string_view what = wmma ? i.modifiers.front() : "mma";
  MatrixForm form;
  form.memory = what == "load" || what == "store";
  if (!form.memory && what != "mma") return std::nullopt;
  std::string_view shape;
  std::string_view matrix;
  std::string_view bits;
  std::vector<std::string_view> types;
  for (const std::string_view m : i.modifiers) {
    if (ptx::TypeFromName(m) != ptx::Type::kNone || IsIn(kSmallTypes, m)) {
      types.push_back(m);
    } else if (IsShape(m)) {
      shape = m;
    } else if (m == "a" || m == "b" || m == "c" || m == "d") {
      matrix = m;
    } else if (m == "col" && form.memory) {
      form.aux |= 1;
    } else if (m == "satfinite" && !form.memory) {
      form.aux |= 1;
    } else if (!form.memory && (m == "xor" || m == "and")) {
      bits = m;
    } else if (!(wmma && m == what) && !IsIn(kImplied, m) && !IsSpaceModifier(m)) {
      return std::nullopt;
    }
  }
  if (form.memory) {
    if (types.size() != 1) return std::nullopt;
    form.key = fmt::format("@wmma.{}.{}.{}.{}", what, matrix, shape, types[0]);
  } else {
    if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
    if (types.size() != 4) return std::nullopt;
    form.key = fmt::format("{}{}{}.{}.{}.{}.{}.{}", wmma ? "@wmma.mma" : "@mma", bits.empty() ? "" : ".", bits, shape,
                           types[0], types[1], types[2], types[3]);
  }
  form.wide = types[0] == "f64";
  return form;
}

// Rows: "@ldmatrix[.trans].<count>".
std::optional<MatrixForm> LdmatrixFormOf(const ptx::Instruction& i) {
  MatrixForm form{"@ldmatrix", 0, true, false};
  if (HasModifier(i, "trans")) form.key += ".trans";
  for (const std::string_view m : i.modifiers) {
    if (m == "x1" || m == "x2" || m == "x4") {
      form.key += fmt::format(".{}", m);
    } else if (m != "sync" && m != "aligned" && m != "m8n8" && m != "b16" && m != "trans" && !IsSpaceModifier(m)) {
      return std::nullopt;
    }
  }
  return form;
}

}  // namespace

// Extra operands: the fragments in the order of the instruction.
GpuResult<void> DecodeMatrix(DraftBuilder& out, const ptx::Instruction& i) {
  const bool ldmatrix = i.opcode == "ldmatrix";
  const auto form = ldmatrix ? LdmatrixFormOf(i) : FormOf(i);
  if (!form) return out.Unknown();
  const OpRow* row = out.Row(form->key);
  if (row == nullptr) return out.Unknown();

  // The row's operands are the numbers of registers: "8", or "8888" for d, a, b, c. Wide: 64-bit registers.
  const std::string_view counts = row->operands;
  const bool store = i.modifiers.front() == "store";
  const SlotClass c = form->wide ? SlotClass::k64 : SlotClass::k32;
  const ptx::Type type = c == SlotClass::k64 ? ptx::Type::kB64 : ptx::Type::kB32;
  const size_t fragments_at = store ? 1 : 0;
  const size_t least = counts.size() + (form->memory ? 1 : 0);
  if (i.operands.size() < least || i.operands.size() > least + (form->memory && !ldmatrix ? 1 : 0))
    return out.Fail("operands are missing or too many");
  DraftInst draft;
  std::vector<Target> targets;
  for (size_t f = 0; f < counts.size(); ++f) {
    const Operand& o = i.operands[fragments_at + f];
    const std::span<const Operand> elements =
        o.kind == Operand::Kind::kVector ? std::span<const Operand>(o.elements) : std::span<const Operand>(&o, 1);
    if (elements.size() != static_cast<size_t>(counts[f] - '0'))
      return out.Fail(fmt::format("the fragment has {} registers instead of {}", elements.size(), counts[f]));
    const bool write = f == 0 && !store;
    for (const Operand& e : elements) {
      if (write) {
        auto t = out.Destination(e, c);
        if (!t) return tl::unexpected(t.error());
        targets.push_back(*t);
        out.UseExtra(draft, InRegister(t->reg), true);
      } else {
        auto p = out.Source(e, c, type);
        if (!p) return tl::unexpected(p.error());
        out.UseExtra(draft, *p);
      }
    }
  }
  draft.inst.fn = row->fn;
  draft.diverts = true;
  draft.line = i.line;
  uint8_t aux = form->aux;
  if (form->memory) {
    const ptx::Space space = SpaceOf(i);
    bool address32 = false;
    auto place = out.MemoryAddress(i.operands[store ? 0 : 1], space, draft, address32);
    if (!place) return tl::unexpected(place.error());
    if (address32 && space != ptx::Space::kShared) return out.Fail("the address is a 32-bit register");
    out.Use(draft, 0, *place);
    draft.inst.flags = address32 ? kAddress32 : 0;
    // Operand 1: elements from one row (column) to the next, 0 = they follow each other.
    auto stride = i.operands.size() > least ? out.Source(i.operands.back(), SlotClass::k32, ptx::Type::kB32)
                                            : GpuResult<Place>(out.Constant(0, 4));
    if (!stride) return tl::unexpected(stride.error());
    out.Use(draft, 1, *stride);
    const MemSpace where = space == ptx::Space::kShared   ? MemSpace::kShared
                           : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                                          : MemSpace::kGeneric;
    aux |= static_cast<uint8_t>(static_cast<uint8_t>(where) << (ldmatrix ? 0 : 1));
  }
  draft.inst.aux = aux;
  out.Add(std::move(draft));
  for (const Target& t : targets) out.Finish(t, false);
  return {};
}

}  // namespace vgpud::soft
