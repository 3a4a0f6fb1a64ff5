// SPDX-License-Identifier: Apache-2.0
// Copies of boxes of tensors, and changes of tensor maps.
#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/code/tensor_form.h"
#include "gpu/soft/decode/families.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

constexpr std::string_view kTells = "mbarrier::complete_tx::bytes";

// What the modifiers of a tensor copy say. Between which spaces it goes is in `from` and `to`.
struct TensorCopy {
  uint32_t rank = 0;
  bool named_rows = false;
  bool reduce = false;
  bool prefetch = false;
  bool multicast = false;
  bool tells = false;
  std::string_view op;  // of a reduction
  std::string_view to, from;
};

// nullopt: a modifier that it does not have, as those of im2col.
std::optional<TensorCopy> ReadTensorCopy(const ptx::Instruction& i) {
  constexpr std::string_view kSaysNothing[] = {"async",      "bulk",           "tensor",      "tile",
                                               "bulk_group", "L2::cache_hint", "cta_group::1"};
  constexpr std::string_view kSpaces[] = {"global", "shared::cta", "shared::cluster", "L2"};
  constexpr std::string_view kOps[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  const auto in = [](const auto& list, std::string_view m) {
    return std::find(std::begin(list), std::end(list), m) != std::end(list);
  };
  TensorCopy copy;
  for (const std::string_view m : i.modifiers) {
    if (m.size() == 2 && m[0] >= '1' && m[0] <= '5' && m[1] == 'd' && copy.rank == 0) {
      copy.rank = static_cast<uint32_t>(m[0] - '0');
    } else if (in(kSpaces, m) && copy.from.empty()) {
      (copy.to.empty() ? copy.to : copy.from) = m;
    } else if (in(kOps, m) && copy.op.empty()) {
      copy.op = m;
    } else if (m == "tile::gather4" || m == "tile::scatter4") {
      copy.named_rows = true;
    } else if (m == "reduce") {
      copy.reduce = true;
    } else if (m == "prefetch") {
      copy.prefetch = true;
    } else if (m == "multicast::cluster") {
      copy.multicast = true;
    } else if (m == kTells) {
      copy.tells = true;
    } else if (!in(kSaysNothing, m)) {
      return std::nullopt;
    }
  }
  return copy;
}

// The row of a copy that there is.
std::string RowOf(const TensorCopy& c) {
  const bool to_shared = c.to == "shared::cta" || c.to == "shared::cluster";
  if (c.prefetch) return c.to == "L2" && c.from == "global" ? "@cp.async.bulk.prefetch.tensor" : "";
  if (to_shared && c.from == "global" && c.tells && !c.reduce)
    return c.multicast ? "@cp.async.bulk.tensor.load.multicast" : "@cp.async.bulk.tensor.load";
  if (c.to != "global" || c.from != "shared::cta" || c.tells || c.multicast) return "";
  return c.reduce ? fmt::format("@cp.reduce.async.bulk.tensor.{}", c.op) : "@cp.async.bulk.tensor.store";
}

}  // namespace

// "cp.async.bulk.tensor.Nd.TO.global.mbarrier::complete_tx::bytes [to], [map, {x, ...}], [mbarrier]{, mask}",
// "cp{.reduce}.async.bulk.tensor.Nd.global.shared::cta{.OP}.bulk_group [map, {x, ...}], [from]",
// "cp.async.bulk.prefetch.tensor.Nd.L2.global [map, {x, ...}]"; a policy may follow. Extra operands: the coordinates.
GpuResult<void> DecodeTensorCopy(DraftBuilder& out, const ptx::Instruction& i) {
  const auto copy = ReadTensorCopy(i);
  const OpRow* row = copy && copy->rank != 0 ? out.Row(RowOf(*copy)) : nullptr;
  if (row == nullptr || (!copy->op.empty() != copy->reduce)) return out.Unknown();
  const size_t shared_operands = copy->prefetch ? 0 : 1;
  const size_t operands = 1 + shared_operands + (copy->tells ? 1 : 0) + (copy->multicast ? 1 : 0) + PolicyOperands(i);
  if (i.operands.size() != operands) return out.Fail("operands are missing or too many");
  const Operand& tensor = i.operands[copy->tells ? 1 : 0];
  if (tensor.elements.size() != 1 || tensor.elements[0].kind != Operand::Kind::kVector)
    return out.Fail("a tensor map and coordinates in [] were expected");
  const std::vector<Operand>& coordinates = tensor.elements[0].elements;
  const size_t expected = copy->named_rows ? 1 + kNamedRows : copy->rank;
  if (coordinates.size() != expected || (copy->named_rows && copy->rank != 2))
    return out.Fail(fmt::format("there are {} coordinates instead of {}", coordinates.size(), expected));

  auto map = GenericAddress(out, tensor, ptx::Space::kGeneric);
  if (!map) return tl::unexpected(map.error());
  DraftInst draft;
  out.Use(draft, 0, *map);
  for (const Operand& c : coordinates) {
    auto place = out.Source(c, SlotClass::k32, ptx::Type::kS32);
    if (!place) return tl::unexpected(place.error());
    out.UseExtra(draft, *place);
  }
  if (shared_operands != 0) {
    auto shared = GenericAddress(out, i.operands[copy->tells ? 0 : 1], ptx::Space::kSharedCluster);
    if (!shared) return tl::unexpected(shared.error());
    out.Use(draft, 1, *shared);
  }
  if (copy->tells) {
    auto barrier = GenericAddress(out, i.operands[2], ptx::Space::kSharedCluster);
    if (!barrier) return tl::unexpected(barrier.error());
    out.Use(draft, 2, *barrier);
  }
  if (copy->multicast) {
    auto mask = out.Source(i.operands[3], SlotClass::k32, ptx::Type::kU16);
    if (!mask) return tl::unexpected(mask.error());
    out.Use(draft, 3, *mask);
  }
  draft.inst.fn = row->fn;
  draft.inst.aux = static_cast<uint8_t>(copy->rank | (copy->named_rows ? kTensorRows : 0));
  draft.line = i.line;
  copy->prefetch ? out.Add(std::move(draft)) : out.AddInPieces(std::move(draft));
  return {};
}

// "fence.proxy.tensormap::generic.acquire.SCOPE [map], 128": as one that names nothing.
GpuResult<void> DecodeFence(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.empty()) return DecodePlain(out, i);
  const bool fits = HasModifier(i, "tensormap::generic") && HasModifier(i, "acquire") && i.operands.size() == 2 &&
                    i.operands[0].kind == Operand::Kind::kAddress && i.operands[1].kind == Operand::Kind::kImmediate &&
                    i.operands[1].bits == sizeof(vgpu_tensor_map);
  if (!fits) return out.Unknown();
  ptx::Instruction plain = i;
  plain.operands.clear();
  return DecodePlain(out, plain);
}

// "tensormap.replace.tile.FIELD{.global | .shared::cta}.b1024.TYPE [map]{, n}, value" and
// "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.SCOPE.sync.aligned [to], [from], 128".
GpuResult<void> DecodeTensorMap(DraftBuilder& out, const ptx::Instruction& i) {
  const auto space_of = [](std::string_view name) {
    return name.starts_with("shared::") ? ptx::Space::kSharedCluster : ptx::Space::kGeneric;
  };
  if (i.modifiers.size() >= 3 && i.modifiers[0] == "cp_fenceproxy") {
    const OpRow* row = out.Row("@tensormap.cp_fenceproxy");
    const bool fits = i.modifiers[1] == "global" && i.modifiers[2] == "shared::cta" && i.operands.size() == 3 &&
                      i.operands[2].kind == Operand::Kind::kImmediate && i.operands[2].bits == sizeof(vgpu_tensor_map);
    if (row == nullptr || !fits) return out.Unknown();
    auto to = GenericAddress(out, i.operands[0], ptx::Space::kGeneric);
    if (!to) return tl::unexpected(to.error());
    auto from = GenericAddress(out, i.operands[1], ptx::Space::kSharedCluster);
    if (!from) return tl::unexpected(from.error());
    DraftInst& d = out.Emit(row->fn);
    out.Use(d, 0, *to);
    out.Use(d, 1, *from);
    return {};
  }
  if (i.modifiers.size() < 3 || i.modifiers[0] != "replace" || i.modifiers[1] != "tile") return out.Unknown();
  const OpRow* row = out.Row(fmt::format("@tensormap.replace.tile.{}", i.modifiers[2]));
  if (row == nullptr || !HasModifier(i, "b1024")) return out.Unknown();
  const std::string_view letters = row->operands;
  const bool wide = letters.back() == 'A';
  if (i.operands.size() != 1 + letters.size() || LastType(i) != (wide ? ptx::Type::kB64 : ptx::Type::kB32))
    return out.Unknown();
  const bool shared = HasModifier(i, "shared::cta");
  auto map = GenericAddress(out, i.operands[0], space_of(shared ? "shared::cta" : "global"));
  if (!map) return tl::unexpected(map.error());
  DraftInst draft;
  if (letters.front() == 'n') {
    const Operand& n = i.operands[1];
    const uint64_t dimensions = VGPU_TENSOR_MAP_RANK - (i.modifiers[2] == "global_stride" ? 1 : 0);
    if (n.kind != Operand::Kind::kImmediate || n.is_float || n.bits >= dimensions)
      return out.Fail("a tensor map has no such dimension");
    draft.inst.imm = static_cast<int64_t>(n.bits);
  }
  auto value = out.Source(i.operands.back(), wide ? SlotClass::k64 : SlotClass::k32, LastType(i));
  if (!value) return tl::unexpected(value.error());
  out.Use(draft, 0, *map);
  out.Use(draft, 1, *value);
  draft.inst.fn = row->fn;
  draft.line = i.line;
  out.Add(std::move(draft));
  return {};
}

}  // namespace vgpud::soft
