// SPDX-License-Identifier: Apache-2.0
// wgmma: a product of a warpgroup, and what frames it.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "gpu/soft/code/wgmma_form.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

// What follows the predicate: the signs of A and B, then how each lies in shared memory.
struct TypesOfWgmma {
  std::string_view type;  // of A
  std::string_view k;
  std::string_view sparse_k;  // empty: A cannot be sparse
  uint32_t selectors;         // of the metadata of a sparse A
  bool signs;
  bool layouts;
};
constexpr TypesOfWgmma kTypes[] = {
    {"f16", "16", "32", 2, true, true},   {"bf16", "16", "32", 2, true, true},  {"tf32", "8", "16", 2, true, false},
    {"e4m3", "32", "64", 1, true, false}, {"e5m2", "32", "64", 1, true, false}, {"s8", "32", "64", 1, false, false},
    {"u8", "32", "64", 1, false, false},  {"b1", "256", "", 0, false, false},
};

struct WgmmaForm {
  std::string key;  // of the row
  uint32_t columns = 0;
  bool packed = false;  // two elements of D in a register
  bool satfinite = false;
  bool sparse = false;
  const TypesOfWgmma* types = nullptr;
};

// "m64nNk16": N and what follows k.
std::optional<std::pair<uint32_t, std::string_view>> ShapeOf(std::string_view m) {
  constexpr std::string_view kPrefix = "m64n";
  const size_t k = m.find('k');
  if (!m.starts_with(kPrefix) || k == m.npos) return std::nullopt;
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(m.data() + kPrefix.size(), m.data() + k, n);
  if (error != std::errc() || end != m.data() + k) return std::nullopt;
  return std::pair{n, m.substr(k + 1)};
}
bool ColumnsFit(uint32_t n, const TypesOfWgmma& types) {
  const bool fits = n != 0 && n <= kWgmmaMostN && n % 8 == 0;
  return fits && (types.signs || n % 16 == 0 || n == 8 || n == 24);
}

std::optional<WgmmaForm> FormOf(const ptx::Instruction& i) {
  constexpr std::string_view kImplied[] = {"mma_async", "sync", "aligned"};
  WgmmaForm form;
  std::string_view k;
  std::vector<std::string_view> types;
  bool ands = false;
  bool counts = false;
  for (const std::string_view m : i.modifiers) {
    const auto shape = ShapeOf(m);
    const bool type =
        ptx::TypeFromName(m) != ptx::Type::kNone || m == "b1" || m == "e4m3" || m == "e5m2" || m == "tf32";
    if (shape && form.columns == 0) {
      form.columns = shape->first;
      k = shape->second;
    } else if (type) {
      types.push_back(m);
    } else if (m == "satfinite") {
      form.satfinite = true;
    } else if (m == "sp") {
      form.sparse = true;
    } else if (m == "and") {
      ands = true;
    } else if (m == "popc") {
      counts = true;
    } else if (std::find(std::begin(kImplied), std::end(kImplied), m) == std::end(kImplied)) {
      return std::nullopt;
    }
  }
  if (types.size() != 3) return std::nullopt;
  form.types = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.type == types[1]; });
  if (form.types == std::end(kTypes) || (form.sparse ? form.types->sparse_k : form.types->k) != k ||
      !ColumnsFit(form.columns, *form.types))
    return std::nullopt;
  const bool bits = types[1] == "b1";
  if (ands != bits || counts != bits || (form.satfinite && (types[0] != "s32" || bits))) return std::nullopt;
  form.packed = types[0] == "f16";
  form.key =
      fmt::format("@wgmma.mma_async{}.m64nNk{}.{}.{}.{}", form.sparse ? ".sp" : "", k, types[0], types[1], types[2]);
  return form;
}

// Operand number `at` is one of two numbers; flag: that it is the second one.
std::optional<uint8_t> Choice(const ptx::Instruction& i, size_t at, uint64_t one, uint64_t other, uint8_t flag) {
  const Operand& o = i.operands[at];
  constexpr uint64_t kLow = 0xffffffff;
  if (o.kind != Operand::Kind::kImmediate || o.is_float) return std::nullopt;
  if ((o.bits & kLow) == (one & kLow)) return 0;
  return (o.bits & kLow) == (other & kLow) ? std::optional(flag) : std::nullopt;
}

// Inst::aux; nullopt: what begins at operand number `at` are no signs and layouts.
std::optional<uint8_t> FlagsOf(const ptx::Instruction& i, const WgmmaForm& form, size_t at, bool shared_a,
                               size_t layouts) {
  auto aux = static_cast<uint8_t>((shared_a ? kSharedA : 0) | (form.satfinite ? kSaturates : 0));
  struct Flag {
    bool there;
    uint64_t one, other;
    WgmmaFlag flag;
  };
  const Flag flags[] = {{form.types->signs, 1, ~uint64_t{0}, kNegativeA},
                        {form.types->signs, 1, ~uint64_t{0}, kNegativeB},
                        {layouts == 2, 0, 1, kByKA},
                        {layouts >= 1, 0, 1, kByKB}};
  for (const Flag& f : flags) {
    if (!f.there) continue;
    const auto bit = Choice(i, at++, f.one, f.other, f.flag);
    if (!bit) return std::nullopt;
    aux = static_cast<uint8_t>(aux | *bit);
  }
  return aux;
}

std::span<const Operand> ElementsOf(const Operand& o) {
  return o.kind == Operand::Kind::kVector ? std::span<const Operand>(o.elements) : std::span<const Operand>(&o, 1);
}

}  // namespace

// "wgmma.mma_async{.sp}.sync.aligned.m64nNkK.D.A.B d, a, b{, metadata, selector}, scale-d{, sign-a, sign-b}{,
// layout-a}{, layout-b}": b is a descriptor, a is one or four registers, which have no layout. Operands: scale-d 0, a
// 1, b 2, metadata 3; extra: d, a's registers.
GpuResult<void> DecodeWgmma(DraftBuilder& out, const ptx::Instruction& i) {
  const std::string_view what = i.modifiers.empty() ? std::string_view() : i.modifiers.front();
  const bool synced = HasModifier(i, "sync") && HasModifier(i, "aligned");
  if (what == "fence" || what == "commit_group" || what == "wait_group") {
    const OpRow* row = out.Row(fmt::format("@wgmma.{}", what));
    if (row == nullptr || !synced || i.modifiers.size() != 3 || i.operands.size() != (what == "wait_group" ? 1u : 0u))
      return out.Unknown();
    out.Emit(row->fn).diverts = true;
    return {};
  }
  const auto form = synced ? FormOf(i) : std::nullopt;
  const OpRow* row = form ? out.Row(form->key) : nullptr;
  if (row == nullptr || i.operands.size() < (form->sparse ? 6u : 4u)) return out.Unknown();
  const std::span<const Operand> sums = ElementsOf(i.operands[0]);
  const size_t wanted = form->columns / (form->packed ? 4 : 2);
  if (sums.size() != wanted)
    return out.Fail(fmt::format("the fragment has {} registers instead of {}", sums.size(), wanted));
  const bool shared_a = i.operands[1].kind != Operand::Kind::kVector;
  const size_t layouts = form->types->layouts ? (shared_a ? 2 : 1) : 0;
  const size_t scale_at = form->sparse ? 5 : 3;
  if (i.operands.size() != scale_at + 1 + (form->types->signs ? 2 : 0) + layouts)
    return out.Fail("operands are missing or too many");

  const auto aux = FlagsOf(i, *form, scale_at + 1, shared_a, layouts);
  if (!aux) return out.Fail("a sign is 1 or -1, a layout 0 or 1");
  DraftInst draft;
  for (const Operand& e : sums) {
    auto t = out.Destination(e, SlotClass::k32);
    if (!t) return tl::unexpected(t.error());
    if (t->widen_to != ptx::kNoIndex || t->narrow_to != ptx::kNoIndex) return out.Fail("D is in registers of 32 bits");
    out.UpdateExtra(draft, t->reg);
  }
  if (!shared_a) {
    if (i.operands[1].elements.size() != kWgmmaRegistersA) return out.Fail("A has four registers");
    for (const Operand& e : i.operands[1].elements) {
      auto p = out.Source(e, SlotClass::k32, ptx::Type::kB32);
      if (!p) return tl::unexpected(p.error());
      out.UseExtra(draft, *p);
    }
  }
  auto counts = out.Predicate(i.operands[scale_at]);
  if (!counts) return tl::unexpected(counts.error());
  auto b = out.Source(i.operands[2], SlotClass::k64, ptx::Type::kB64);
  if (!b) return tl::unexpected(b.error());
  auto a = shared_a ? out.Source(i.operands[1], SlotClass::k64, ptx::Type::kB64) : b;
  if (!a) return tl::unexpected(a.error());
  out.Use(draft, 0, *counts);
  out.Use(draft, 1, *a);
  out.Use(draft, 2, *b);
  draft.inst.fn = row->fn;
  draft.inst.aux = *aux;
  draft.inst.imm = form->columns;
  if (form->sparse) {
    const Operand& selector = i.operands[4];
    if (selector.kind != Operand::Kind::kImmediate || selector.is_float || selector.bits >= form->types->selectors)
      return out.Fail(fmt::format("the sparsity selector is a number below {}", form->types->selectors));
    auto metadata = out.Source(i.operands[3], SlotClass::k32, ptx::Type::kB32);
    if (!metadata) return tl::unexpected(metadata.error());
    out.Use(draft, 3, *metadata);
    draft.inst.imm += static_cast<int64_t>(selector.bits) * (kWgmmaColumns + 1);
  }
  draft.diverts = true;
  draft.line = i.line;
  out.Add(std::move(draft));
  return {};
}

}  // namespace vgpud::soft
