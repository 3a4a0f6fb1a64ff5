// SPDX-License-Identifier: Apache-2.0
// tcgen05: tensor memory and the products that it holds, of one block (.cta_group::1).
#include <algorithm>
#include <bit>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>

#include "gpu/soft/code/tensor_copy_form.h"
#include "gpu/soft/code/tensor_memory_form.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

using Names = std::initializer_list<std::string_view>;

// Has the instruction all of `needed`, perhaps some of `allowed`, and nothing else?
bool HasOnly(const ptx::Instruction& i, Names needed, Names allowed = {}) {
  const auto in = [](Names names, std::string_view m) {
    return std::find(names.begin(), names.end(), m) != names.end();
  };
  return std::all_of(needed.begin(), needed.end(), [&](std::string_view m) { return HasModifier(i, m); }) &&
         std::all_of(i.modifiers.begin(), i.modifiers.end(),
                     [&](std::string_view m) { return in(needed, m) || in(allowed, m); });
}

// An operand [..] that is an address of tensor memory; `offset` is to be added.
GpuResult<Place> TensorAddress(DraftBuilder& out, const Operand& o, int32_t& offset) {
  if (o.kind != Operand::Kind::kAddress) return out.Fail("an address in [] was expected");
  offset = 0;
  if (o.base == Operand::Base::kImmediate || o.base == Operand::Base::kNone)
    return out.Constant(static_cast<uint32_t>(o.bits + static_cast<uint64_t>(o.offset)), 4);
  if (o.base != Operand::Base::kRegister || out.ClassOf(o.index) != SlotClass::k32)
    return out.Fail("an address of tensor memory is in a register of 32 bits");
  if (o.offset < std::numeric_limits<int32_t>::min() || o.offset > std::numeric_limits<int32_t>::max())
    return out.Fail("the offset has more than 32 bits");
  offset = static_cast<int32_t>(o.offset);
  return InRegister(o.index);
}

GpuResult<void> Finish(DraftBuilder& out, const ptx::Instruction& i, const OpRow& row, DraftInst draft) {
  draft.inst.fn = row.fn;
  draft.diverts = true;
  draft.line = i.line;
  out.Add(std::move(draft));
  return {};
}

GpuResult<void> DecodeAllocation(DraftBuilder& out, const ptx::Instruction& i) {
  const bool alloc = HasModifier(i, "alloc");
  const OpRow* row = out.Row(alloc ? "@tcgen05.alloc" : "@tcgen05.dealloc");
  const bool known = alloc ? HasOnly(i, {"alloc", "cta_group::1", "sync", "aligned", "b32"}, {"shared::cta"})
                           : HasOnly(i, {"dealloc", "cta_group::1", "sync", "aligned", "b32"});
  if (!known || row == nullptr || i.operands.size() != 2) return out.Unknown();
  DraftInst draft;
  if (alloc) {
    bool address32 = false;
    const bool shared = HasModifier(i, "shared::cta");
    auto to = out.MemoryAddress(i.operands[0], shared ? ptx::Space::kShared : ptx::Space::kGeneric, draft, address32);
    if (!to) return tl::unexpected(to.error());
    if (address32 && !shared) return out.Fail("a generic address is a 32-bit register");
    draft.inst.flags = address32 ? kAddress32 : 0;
    draft.inst.aux = static_cast<uint8_t>(shared ? MemSpace::kShared : MemSpace::kGeneric);
    out.Use(draft, 0, *to);
  } else {
    auto address = out.Source(i.operands[0], SlotClass::k32, ptx::Type::kB32);
    if (!address) return tl::unexpected(address.error());
    out.Use(draft, 0, *address);
  }
  auto columns = out.Source(i.operands[1], SlotClass::k32, ptx::Type::kU32);
  if (!columns) return tl::unexpected(columns.error());
  out.Use(draft, 1, *columns);
  return Finish(out, i, *row, std::move(draft));
}

// Shape and log2 of the number of registers.
std::optional<uint8_t> TransferForm(const ptx::Instruction& i, std::string_view what) {
  constexpr std::string_view kShapes[] = {"32x32b", "16x64b", "16x128b", "16x256b"};
  constexpr uint32_t kPerRepetition[] = {1, 1, 2, 4};
  std::optional<uint32_t> shape;
  uint32_t repetitions = 0;
  for (const std::string_view m : i.modifiers) {
    if (m == what || m == "sync" || m == "aligned" || m == "b32") continue;
    const auto* at = std::find(std::begin(kShapes), std::end(kShapes), m);
    if (at != std::end(kShapes) && !shape) {
      shape = static_cast<uint32_t>(at - kShapes);
      continue;
    }
    const char* end = m.data() + m.size();
    if (repetitions != 0 || !m.starts_with('x') || std::from_chars(m.data() + 1, end, repetitions).ptr != end)
      return std::nullopt;
  }
  if (!shape || !std::has_single_bit(repetitions) || repetitions > kMostTensorRegisters / kPerRepetition[*shape])
    return std::nullopt;
  const auto registers = static_cast<uint32_t>(std::countr_zero(repetitions * kPerRepetition[*shape]));
  return static_cast<uint8_t>(*shape | registers << kTensorShapeBits);
}

GpuResult<void> DecodeTransfer(DraftBuilder& out, const ptx::Instruction& i) {
  const bool store = HasModifier(i, "st");
  const OpRow* row = out.Row(store ? "@tcgen05.st" : "@tcgen05.ld");
  const auto form = TransferForm(i, store ? "st" : "ld");
  const bool named = HasModifier(i, "sync") && HasModifier(i, "aligned") && HasModifier(i, "b32");
  if (!form || !named || row == nullptr || i.operands.size() != 2) return out.Unknown();
  const Operand& data = i.operands[store ? 1 : 0];
  const bool vector = data.kind == Operand::Kind::kVector;
  const std::span<const Operand> elements =
      vector ? std::span<const Operand>(data.elements) : std::span<const Operand>(&data, 1);
  const size_t wanted = size_t{1} << (*form >> kTensorShapeBits);
  if (elements.size() != wanted)
    return out.Fail(fmt::format("the fragment has {} registers instead of {}", elements.size(), wanted));
  DraftInst draft;
  int32_t offset = 0;
  auto address = TensorAddress(out, i.operands[store ? 0 : 1], offset);
  if (!address) return tl::unexpected(address.error());
  for (const Operand& e : elements) {
    if (store) {
      auto p = out.Source(e, SlotClass::k32, ptx::Type::kB32);
      if (!p) return tl::unexpected(p.error());
      out.UseExtra(draft, *p);
      continue;
    }
    auto t = out.Destination(e, SlotClass::k32);
    if (!t) return tl::unexpected(t.error());
    if (t->widen_to != ptx::kNoIndex || t->narrow_to != ptx::kNoIndex)
      return out.Fail("what is loaded goes to registers of 32 bits");
    out.UpdateExtra(draft, t->reg);
  }
  out.Use(draft, 0, *address);
  draft.inst.aux = *form;
  draft.inst.imm = offset;
  return Finish(out, i, *row, std::move(draft));
}

std::optional<TensorKind> KindOf(const ptx::Instruction& i) {
  constexpr std::pair<std::string_view, TensorKind> kKinds[] = {
      {"kind::f16", kKindF16}, {"kind::tf32", kKindTf32}, {"kind::i8", kKindI8}, {"kind::f8f6f4", kKindF8}};
  for (const auto& [name, kind] : kKinds)
    if (HasOnly(i, {"mma", "cta_group::1", name},
                {"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"}))
      return kind;
  return std::nullopt;
}

// "tcgen05.mma.cta_group::1.kind [d], a, b, descriptor{, disabled lanes}, add{, scale}": a is a descriptor or [..].
GpuResult<void> DecodeProduct(DraftBuilder& out, const ptx::Instruction& i) {
  const auto kind = KindOf(i);
  const OpRow* row = out.Row("@tcgen05.mma");
  if (!kind || row == nullptr || i.operands.size() < 5) return out.Unknown();
  const bool disables = i.operands[4].kind == Operand::Kind::kVector;
  const size_t at = disables ? 5 : 4;  // of the predicate
  const bool scales = i.operands.size() == at + 2 && (*kind == kKindF16 || *kind == kKindTf32);
  if (i.operands.size() != at + (scales ? 2 : 1)) return out.Fail("operands are missing or too many");
  const bool tensor_a = i.operands[1].kind == Operand::Kind::kAddress;
  DraftInst draft;
  int32_t add_d = 0;
  int32_t add_a = 0;
  auto d = TensorAddress(out, i.operands[0], add_d);
  auto a = !d         ? d
           : tensor_a ? TensorAddress(out, i.operands[1], add_a)
                      : out.Source(i.operands[1], SlotClass::k64, ptx::Type::kB64);
  auto b = !a ? a : out.Source(i.operands[2], SlotClass::k64, ptx::Type::kB64);
  auto descriptor = !b ? b : out.Source(i.operands[3], SlotClass::k32, ptx::Type::kB32);
  auto counts = !descriptor ? descriptor : out.Predicate(i.operands[at]);
  if (!counts) return tl::unexpected(counts.error());
  out.UseExtra(draft, *counts);
  if (disables) {
    if (i.operands[4].elements.size() != 4)
      return out.Fail("the mask of the lanes that are not written has four registers");
    for (const Operand& e : i.operands[4].elements) {
      auto p = out.Source(e, SlotClass::k32, ptx::Type::kB32);
      if (!p) return tl::unexpected(p.error());
      out.UseExtra(draft, *p);
    }
  }
  uint64_t scale = 0;
  if (scales) {
    const Operand& o = i.operands[at + 1];
    if (o.kind != Operand::Kind::kImmediate || o.is_float || o.bits > 15)
      return out.Fail("scale-input-d is a number below 16");
    scale = o.bits;
  }
  out.Use(draft, 0, *d);
  out.Use(draft, 1, *a);
  out.Use(draft, 2, *b);
  out.Use(draft, 3, *descriptor);
  draft.inst.aux = static_cast<uint8_t>(*kind | (tensor_a ? kTensorA : 0) | (disables ? kTensorDisable : 0) |
                                        scale << kTensorScaleShift);
  draft.inst.imm = static_cast<int64_t>(uint64_t{static_cast<uint32_t>(add_a)} << 32 | static_cast<uint32_t>(add_d));
  return Finish(out, i, *row, std::move(draft));
}

// "tcgen05.cp.cta_group::1.shape [to], descriptor"
GpuResult<void> DecodeCopy(DraftBuilder& out, const ptx::Instruction& i) {
  const OpRow* row = out.Row("@tcgen05.cp");
  std::optional<uint8_t> form;
  if (HasOnly(i, {"cp", "cta_group::1", "128x256b"})) form = 2;
  if (HasOnly(i, {"cp", "cta_group::1", "128x128b"})) form = 1;
  if (HasOnly(i, {"cp", "cta_group::1", "32x128b", "warpx4"})) form = 1 | kCopiesToQuarters;
  if (!form || row == nullptr || i.operands.size() != 2) return out.Unknown();
  DraftInst draft;
  int32_t offset = 0;
  auto to = TensorAddress(out, i.operands[0], offset);
  auto from = !to ? to : out.Source(i.operands[1], SlotClass::k64, ptx::Type::kB64);
  if (!from) return tl::unexpected(from.error());
  out.Use(draft, 0, *to);
  out.Use(draft, 1, *from);
  draft.inst.aux = *form;
  draft.inst.imm = offset;
  return Finish(out, i, *row, std::move(draft));
}

// All that was asked for before is done: an arrival at the mbarrier.
GpuResult<void> DecodeCommit(DraftBuilder& out, const ptx::Instruction& i) {
  const OpRow* row = out.Row("@cp.async.mbarrier.arrive.noinc");
  if (!HasOnly(i, {"commit", "cta_group::1", "mbarrier::arrive::one", "b64"}, {"shared::cluster"}) || row == nullptr ||
      i.operands.size() != 1)
    return out.Unknown();
  DraftInst draft;
  bool address32 = false;
  const bool shared = HasModifier(i, "shared::cluster");
  auto address =
      out.MemoryAddress(i.operands[0], shared ? ptx::Space::kSharedCluster : ptx::Space::kGeneric, draft, address32);
  if (!address) return tl::unexpected(address.error());
  if (address32) return out.Fail("a generic address is a 32-bit register");
  out.Use(draft, 0, *address);
  out.Use(draft, 2, out.Constant(1, 4));
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(MemSpace::kGeneric);
  draft.line = i.line;
  out.Add(std::move(draft));
  return {};
}

}  // namespace

GpuResult<void> DecodeTensorCore(DraftBuilder& out, const ptx::Instruction& i) {
  out.function().warp_specials |= 1u << kUsesTensorMemory;
  const std::string_view what = i.modifiers.empty() ? std::string_view() : i.modifiers.front();
  if (what == "alloc" || what == "dealloc") return DecodeAllocation(out, i);
  if (what == "ld" || what == "st") return DecodeTransfer(out, i);
  if (what == "cp") return DecodeCopy(out, i);
  if (what == "mma") return DecodeProduct(out, i);
  if (what == "commit") return DecodeCommit(out, i);
  struct Simple {
    std::string_view what, row;
    bool known;
  };
  const bool waits = HasOnly(i, {what, "sync", "aligned"});
  const Simple simple[] = {
      {"relinquish_alloc_permit", "@tcgen05.relinquish",
       HasOnly(i, {"relinquish_alloc_permit", "cta_group::1", "sync", "aligned"})},
      {"wait::ld", "@tcgen05.wait", waits},
      {"wait::st", "@tcgen05.wait", waits},
      {"fence::before_thread_sync", "@tcgen05.fence", i.modifiers.size() == 1},
      {"fence::after_thread_sync", "@tcgen05.fence", i.modifiers.size() == 1},
  };
  for (const Simple& s : simple) {
    if (s.what != what) continue;
    const OpRow* row = out.Row(s.row);
    if (row == nullptr || !s.known || !i.operands.empty()) break;
    out.Emit(row->fn).diverts = true;
    return {};
  }
  return out.Unknown();
}

}  // namespace vgpud::soft
