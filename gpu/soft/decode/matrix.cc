// SPDX-License-Identifier: Apache-2.0
// wmma, mma, ldmatrix, stmatrix: instructions whose operands are fragments of matrices, many registers each.
#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;
namespace {

// Types that only matrices have.
constexpr std::string_view kSmallTypes[] = {"s4", "u4", "b1", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3"};
// What need not be in the name of a row.
constexpr std::string_view kImplied[] = {"sync", "aligned", "rn", "popc"};

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
  bool store = false;
  bool stride = false;  // may follow the address
  bool wide = false;    // the registers have 64 bits
  uint32_t scales = 0;  // of a row of A or a column of B; 0 = there are none
  bool sparse = false;
  uint64_t selectors = 4;  // of the metadata of a sparse matrix
};

// "kind::mxf4" and its like, and how many scales it has if nothing is said; 0 = it must be said.
struct MmaKind {
  std::string_view name;
  bool scaled;
  uint32_t scales;
};
constexpr MmaKind kKinds[] = {
    {"kind::f8f6f4", false, 0},
    {"kind::mxf8f6f4", true, 1},
    {"kind::mxf4", true, 2},
    {"kind::mxf4nvf4", true, 0},
};
// "scale_vec::2X" -> 2; 0: it is something else.
uint32_t ScalesOf(std::string_view m) {
  constexpr std::string_view kPrefix = "scale_vec::";
  if (!m.starts_with(kPrefix) || m.size() != kPrefix.size() + 2 || m.back() != 'X') return 0;
  const char digit = m[kPrefix.size()];
  return digit == '1' || digit == '2' || digit == '4' ? static_cast<uint32_t>(digit - '0') : 0;
}

// What the modifiers of wmma or mma say.
struct SaidOfMatrix {
  std::string_view shape, matrix, bits;
  std::vector<std::string_view> types, layouts;
  const MmaKind* kind = nullptr;
  bool block_scale = false;
  uint32_t scales = 0;
  bool sparse = false;
  bool ordered = false;
  bool satfinite = false;
};
// False: a modifier that the instruction does not have.
bool ReadModifiers(const ptx::Instruction& i, bool wmma, bool memory, SaidOfMatrix& said) {
  for (const std::string_view m : i.modifiers) {
    const auto* kind =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const MmaKind& k) { return k.name == m; });
    if (ptx::TypeFromName(m) != ptx::Type::kNone || IsIn(kSmallTypes, m)) {
      said.types.push_back(m);
    } else if (IsShape(m)) {
      said.shape = m;
    } else if (m == "a" || m == "b" || m == "c" || m == "d") {
      said.matrix = m;
    } else if (m == "row" || m == "col") {
      said.layouts.push_back(m);
    } else if (m == "satfinite" && !memory) {
      said.satfinite = true;
    } else if (!memory && (m == "xor" || m == "and")) {
      said.bits = m;
    } else if (!wmma && kind != std::end(kKinds) && said.kind == nullptr) {
      said.kind = kind;
    } else if (!wmma && (m == "sp" || m == "sp::ordered_metadata") && !said.sparse) {
      said.sparse = true;
      said.ordered = m != "sp";
    } else if (!wmma && m == "block_scale") {
      said.block_scale = true;
    } else if (!wmma && ScalesOf(m) != 0 && said.scales == 0) {
      said.scales = ScalesOf(m);
    } else if (!(wmma && m == i.modifiers.front()) && !IsIn(kImplied, m) && !IsSpaceModifier(m)) {
      return false;
    }
  }
  return true;
}

// Rows: "@wmma.load.a.<shape>.<type>", "@wmma.store.d.<shape>.<type>", "@wmma.mma.<shape>.<d>.<a>.<b>.<c>" with f16 for
// what old forms leave out, "@mma[.sp].<shape>...", with ".xor" or ".and" before the shape for single bits, with the
// kind and the number of scales there for what has them, whose type comes last; with the layouts of A and B behind
// the shape where there is a choice.
std::optional<MatrixForm> FormOf(const ptx::Instruction& i) {
  if (i.modifiers.empty()) return std::nullopt;
  const bool wmma = i.opcode == "wmma";
  const std::string_view what = wmma ? i.modifiers.front() : "mma";
  MatrixForm form;
  form.store = what == "store";
  form.memory = form.store || what == "load";
  form.stride = form.memory;
  if (!form.memory && what != "mma") return std::nullopt;
  SaidOfMatrix said;
  if (!ReadModifiers(i, wmma, form.memory, said)) return std::nullopt;
  std::vector<std::string_view>& types = said.types;
  if (form.memory) {
    if (types.size() != 1) return std::nullopt;
    form.key = fmt::format("@wmma.{}.{}.{}.{}", what, said.matrix, said.shape, types[0]);
    form.aux = std::count(said.layouts.begin(), said.layouts.end(), "col") != 0 ? 1 : 0;
    form.wide = types[0] == "f64";
    return form;
  }
  if (said.block_scale != (said.kind != nullptr && said.kind->scaled)) return std::nullopt;
  if (said.scales != 0 && !said.block_scale) return std::nullopt;
  if (said.kind != nullptr && said.sparse && !said.ordered) return std::nullopt;
  if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
  if (types.size() != (said.block_scale ? 5u : 4u)) return std::nullopt;
  if (said.satfinite && !wmma && types[0] != "s32") return std::nullopt;
  form.key = wmma ? "@wmma.mma" : said.sparse ? "@mma.sp" : "@mma";
  form.sparse = said.sparse;
  form.selectors = said.kind != nullptr ? 1 : 4;
  for (const std::string_view part : {said.bits, said.kind != nullptr ? said.kind->name : std::string_view()})
    if (!part.empty()) form.key += fmt::format(".{}", part);
  if (said.block_scale) {
    form.scales = said.scales != 0 ? said.scales : said.kind->scales;
    form.key += fmt::format(".scale_vec::{}X", form.scales);
  }
  form.key += fmt::format(".{}", said.shape);
  // Elsewhere A is stored by rows and B by columns.
  const bool laid_out = !wmma && said.shape == "m8n8k4" && types[1] == "f16";
  for (const std::string_view l : said.layouts)
    if (laid_out) form.key += fmt::format(".{}", l);
  for (const std::string_view t : types) form.key += fmt::format(".{}", t);
  form.aux = said.satfinite ? 1 : 0;
  form.wide = types[0] == "f64";
  return form;
}

// Rows: "@ldmatrix[.<shape>][.trans].<count>[.<format in memory>]" and @stmatrix, without the shape where it is m8n8.
std::optional<MatrixForm> TransferFormOf(const ptx::Instruction& i) {
  const bool store = i.opcode == "stmatrix";
  std::string_view shape, count, type, widened, format;
  for (const std::string_view m : i.modifiers) {
    if (m == "m8n8" || (!store && (m == "m8n16" || m == "m16n16")) || (store && m == "m16n8")) {
      if (!shape.empty()) return std::nullopt;
      shape = m;
    } else if (m == "x1" || m == "x2" || m == "x4") {
      if (!count.empty()) return std::nullopt;
      count = m;
    } else if (m == "b16" || m == "b8") {
      type = m;
    } else if (m == "b8x16" && !store) {
      widened = m;
    } else if ((m == "b4x16_p64" || m == "b6x16_p32") && !store) {
      format = m;
    } else if (m != "sync" && m != "aligned" && m != "trans" && !IsSpaceModifier(m)) {
      return std::nullopt;
    }
  }
  // Elements have 16 bits in 8 x 8, 8 bits or what is widened to them elsewhere.
  const bool bytes = !shape.empty() && shape != "m8n8";
  const bool typed =
      format.empty() ? widened.empty() && type == (bytes ? "b8" : "b16") : type.empty() && !widened.empty();
  if (!typed) return std::nullopt;
  MatrixForm form{fmt::format("@{}", i.opcode), 0, true, store};
  if (bytes) form.key += fmt::format(".{}", shape);
  if (HasModifier(i, "trans")) form.key += ".trans";
  for (const std::string_view part : {count, format})
    if (!part.empty()) form.key += fmt::format(".{}", part);
  return form;
}

// Selectors of scales: the first byte and which of a group's threads.
bool SelectorsFit(const Operand& o, uint32_t scales, uint64_t threads) {
  if (o.kind != Operand::Kind::kVector || o.elements.size() != 2) return true;
  const Operand& byte = o.elements[0];
  const Operand& thread = o.elements[1];
  if (byte.kind == Operand::Kind::kImmediate && (byte.bits >= 4 || byte.bits % scales != 0)) return false;
  return thread.kind != Operand::Kind::kImmediate || thread.bits < threads;
}

// Which of a group's threads has the metadata of a sparse matrix.
bool IsSparsitySelector(const Operand& o, uint64_t count) {
  return o.kind == Operand::Kind::kImmediate && !o.is_float && o.bits < count;
}

// Operand 0: the address. Operand 1: elements from one row (column) to the next, 0 = they follow each other.
GpuResult<void> UseMemory(DraftBuilder& out, const ptx::Instruction& i, const MatrixForm& form, size_t least,
                          DraftInst& draft) {
  const ptx::Space space = SpaceOf(i);
  bool address32 = false;
  auto place = out.MemoryAddress(i.operands[form.store ? 0 : 1], space, draft, address32);
  if (!place) return tl::unexpected(place.error());
  if (address32 && space != ptx::Space::kShared) return out.Fail("the address is a 32-bit register");
  out.Use(draft, 0, *place);
  draft.inst.flags = address32 ? kAddress32 : 0;
  auto stride = i.operands.size() > least ? out.Source(i.operands.back(), SlotClass::k32, ptx::Type::kB32)
                                          : GpuResult<Place>(out.Constant(0, 4));
  if (!stride) return tl::unexpected(stride.error());
  out.Use(draft, 1, *stride);
  const MemSpace where = space == ptx::Space::kShared   ? MemSpace::kShared
                         : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                                        : MemSpace::kGeneric;
  draft.inst.aux |= static_cast<uint8_t>(static_cast<uint8_t>(where) << (form.stride ? 1 : 0));
  return {};
}

}  // namespace

// Extra operands: the fragments in the order of the instruction.
GpuResult<void> DecodeMatrix(DraftBuilder& out, const ptx::Instruction& i) {
  const bool transfer = i.opcode == "ldmatrix" || i.opcode == "stmatrix";
  const auto form = transfer ? TransferFormOf(i) : FormOf(i);
  if (!form) return out.Unknown();
  const OpRow* row = out.Row(form->key);
  if (row == nullptr) return out.Unknown();

  // The row's operands are the numbers of registers: "8", or "8888" for d, a, b, c. Wide: 64-bit registers.
  const std::string_view counts = row->operands;
  const bool store = form->store;
  const SlotClass c = form->wide ? SlotClass::k64 : SlotClass::k32;
  const ptx::Type type = c == SlotClass::k64 ? ptx::Type::kB64 : ptx::Type::kB32;
  const size_t fragments_at = store ? 1 : 0;
  const size_t least = counts.size() + (form->memory ? 1 : 0);
  if (i.operands.size() < least || i.operands.size() > least + (form->stride ? 1 : 0))
    return out.Fail("operands are missing or too many");
  const size_t scales_at = form->sparse ? 6 : 4;
  if (form->scales != 0 && (!SelectorsFit(i.operands[scales_at + 1], form->scales, 2) ||
                            !SelectorsFit(i.operands[scales_at + 3], form->scales, 4)))
    return out.Fail("a selector of scales names a byte or a thread that has none");
  if (form->sparse && !IsSparsitySelector(i.operands[5], form->selectors))
    return out.Fail(form->selectors == 1 ? "the sparsity selector of this form is 0"
                                         : "the sparsity selector is a number from 0 to 3");
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
  draft.inst.aux = form->aux;
  if (form->memory) {
    if (auto r = UseMemory(out, i, *form, least, draft); !r) return r;
  }
  out.Add(std::move(draft));
  for (const Target& t : targets) out.Finish(t, false);
  return {};
}

}  // namespace vgpud::soft
