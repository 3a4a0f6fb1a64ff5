// SPDX-License-Identifier: Apache-2.0
// What works on the shared memory of a whole cluster: addresses in it, and copies that tell an mbarrier. Such addresses
// become generic ones (kClusterWindowBytes), and most of this is said with rows that there are anyway.
#include <algorithm>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

Reg Arithmetic(DraftBuilder& out, const char* row, SlotClass c, const Place& a, const Place& b) {
  const Reg to = out.NewRegister(c);
  DraftInst& d = out.Emit(out.Row(row)->fn);
  out.UseRegister(d, 0, to, true);
  out.Use(d, 1, a);
  out.Use(d, 2, b);
  return to;
}

// The bytes have come: the mbarrier at a generic address is told.
void TellBarrier(DraftBuilder& out, const Place& barrier, const Place& bytes) {
  DraftInst& d = out.Emit(out.Row("@mbarrier.complete_tx")->fn);
  d.inst.aux = static_cast<uint8_t>(MemSpace::kGeneric);
  out.Use(d, 0, barrier);
  out.Use(d, 2, bytes);
}

std::string_view SpaceBehind(const ptx::Instruction& i, std::string_view word) {
  const auto at = std::find(i.modifiers.begin(), i.modifiers.end(), word);
  return at == i.modifiers.end() || at + 1 == i.modifiers.end() ? std::string_view() : *(at + 1);
}

}  // namespace

GpuResult<Place> GenericAddress(DraftBuilder& out, const Operand& o, ptx::Space space) {
  DraftInst address;
  bool address32 = false;
  auto place = out.MemoryAddress(o, space, address, address32);
  if (!place) return place;
  if (address32) return out.Fail("the address is a 32-bit register");
  if (address.inst.imm == 0) return place;
  const Place offset = out.Constant(static_cast<uint64_t>(address.inst.imm), 8);
  return InRegister(Arithmetic(out, "add.u64", SlotClass::k64, *place, offset));
}

// "mapa.shared::cluster.u32 to, address, rank", also of generic addresses and of 64 bits.
GpuResult<void> DecodeMapAddress(DraftBuilder& out, const ptx::Instruction& i) {
  const ptx::Type type = LastType(i);
  const bool wide = type == ptx::Type::kU64;
  const ptx::Space space = SpaceOf(i);
  if ((!wide && type != ptx::Type::kU32) || i.operands.size() != 3 ||
      (space != ptx::Space::kSharedCluster && (space != ptx::Space::kGeneric || !wide)))
    return out.Unknown();
  const SlotClass c = wide ? SlotClass::k64 : SlotClass::k32;
  const uint32_t bytes = wide ? 8 : 4;
  auto target = out.Destination(i.operands[0], c);
  if (!target) return tl::unexpected(target.error());
  auto address = out.Source(i.operands[1], c, type);
  if (!address) return tl::unexpected(address.error());
  auto rank = out.Source(i.operands[2], SlotClass::k32, ptx::Type::kU32);
  if (!rank) return tl::unexpected(rank.error());
  const Reg within = Arithmetic(out, wide ? "and.b64" : "and.b32", c, *address, out.Constant(kWindowBytes - 1, bytes));
  const uint64_t first = kWindowBytes + (space == ptx::Space::kGeneric ? kSharedWindow : 0);
  const Reg window = out.NewRegister(c);
  DraftInst& multiply = out.Emit(out.Row(wide ? "mad.wide.u32" : "mad.lo.u32")->fn);
  out.UseRegister(multiply, 0, window, true);
  out.Use(multiply, 1, *rank);
  out.UseConstant(multiply, 2, kWindowBytes, 4);
  out.UseConstant(multiply, 3, first, bytes);
  DraftInst& join = out.Emit(out.Row(wide ? "or.b64" : "or.b32")->fn);
  out.UseRegister(join, 0, target->reg, true);
  out.UseRegister(join, 1, window, false);
  out.UseRegister(join, 2, within, false);
  out.Finish(*target, false);
  return {};
}

// "getctarank.shared::cluster.u32 rank, address"
GpuResult<void> DecodeRankOfAddress(DraftBuilder& out, const ptx::Instruction& i) {
  const ptx::Type type = LastType(i);
  const bool wide = type == ptx::Type::kU64;
  const ptx::Space space = SpaceOf(i);
  if ((!wide && type != ptx::Type::kU32) || i.operands.size() != 2 ||
      (space != ptx::Space::kSharedCluster && (space != ptx::Space::kGeneric || !wide)))
    return out.Unknown();
  const SlotClass c = wide ? SlotClass::k64 : SlotClass::k32;
  auto target = out.Destination(i.operands[0], SlotClass::k32);
  if (!target) return tl::unexpected(target.error());
  auto address = out.Source(i.operands[1], c, type);
  if (!address) return tl::unexpected(address.error());
  Operand rank_of_block;
  rank_of_block.kind = Operand::Kind::kSpecial;
  rank_of_block.name = "%cluster_ctarank";
  auto own = out.Source(rank_of_block, SlotClass::k32, ptx::Type::kU32);
  if (!own) return tl::unexpected(own.error());
  constexpr uint32_t kShift = 24;
  static_assert(uint64_t{1} << kShift == kWindowBytes);
  Reg number = Arithmetic(out, wide ? "shr.u64" : "shr.u32", c, *address, out.Constant(kShift, 4));
  if (wide) {
    const Reg narrow = out.NewRegister(SlotClass::k32);
    DraftInst& d = out.Emit(out.Row("@narrow")->fn);
    out.UseRegister(d, 0, narrow, true);
    out.UseRegister(d, 1, number, false);
    number = narrow;
  }
  // Of a generic address the low bits of its window count; the windows of shared memory begin at a multiple of them.
  constexpr uint32_t kWindows = 255;
  number = Arithmetic(out, "and.b32", SlotClass::k32, InRegister(number), out.Constant(kWindows, 4));
  const Reg rank = Arithmetic(out, "sub.u32", SlotClass::k32, InRegister(number), out.Constant(1, 4));
  const Reg is_own = out.NewRegister(SlotClass::kPredicate);
  DraftInst& compare = out.Emit(out.Row("setp.eq.u32")->fn);
  out.UseRegister(compare, 0, is_own, true);
  out.UseRegister(compare, 1, out.NewRegister(SlotClass::kPredicate), true);
  out.UseRegister(compare, 2, number, false);
  out.UseConstant(compare, 3, 0, 4);
  DraftInst& select = out.Emit(out.Row("selp.u32")->fn);
  out.UseRegister(select, 0, target->reg, true);
  out.Use(select, 1, *own);
  out.UseRegister(select, 2, rank, false);
  out.UseRegister(select, 3, is_own, false);
  out.Finish(*target, false);
  return {};
}

namespace {

// "cp.reduce.async.bulk.TO.shared::cta{.mbarrier::complete_tx::bytes | .bulk_group}.OP.TYPE [to], [from], size{,
// [mbarrier]}"
GpuResult<void> DecodeBulkReduce(DraftBuilder& out, const ptx::Instruction& i) {
  constexpr std::string_view kTells = "mbarrier::complete_tx::bytes";
  constexpr std::string_view kKnown[] = {"reduce",          "async", "bulk",       "global",         "shared::cta",
                                         "shared::cluster", kTells,  "bulk_group", "L2::cache_hint", "noftz"};
  constexpr std::string_view kOps[] = {"and", "or", "xor", "add", "inc", "dec", "min", "max"};
  const auto in = [](const auto& list, std::string_view m) {
    return std::find(std::begin(list), std::end(list), m) != std::end(list);
  };
  std::string_view op, type_name;
  for (const std::string_view m : i.modifiers) {
    if (in(kOps, m) && op.empty()) {
      op = m;
    } else if (ptx::TypeFromName(m) != ptx::Type::kNone && type_name.empty()) {
      type_name = m;
    } else if (!in(kKnown, m)) {
      return out.Unknown();
    }
  }
  const std::string_view to_name = SpaceBehind(i, "bulk");
  const bool to_global = to_name == "global";
  const bool tells = HasModifier(i, kTells);
  const ptx::Type type = LastType(i);
  // To shared memory go integers of 32 bits, and sums of 64.
  const bool fits =
      to_global || (to_name == "shared::cluster" && (ptx::SizeOf(type) == 4 || (op == "add" && type_name == "u64")) &&
                    type != ptx::Type::kF32);
  const bool noftz = op == "add" && ptx::SizeOf(type) == 2;
  const OpRow* row = out.Row(fmt::format("@cp.reduce.async.bulk.{}.{}", op, type_name));
  if (row == nullptr || !fits || SpaceBehind(i, to_name) != "shared::cta" || tells == to_global ||
      HasModifier(i, "noftz") != noftz || i.operands.size() != 3u + (tells ? 1 : 0) + PolicyOperands(i))
    return out.Unknown();
  auto to = GenericAddress(out, i.operands[0], to_global ? ptx::Space::kGlobal : ptx::Space::kSharedCluster);
  if (!to) return tl::unexpected(to.error());
  auto from = GenericAddress(out, i.operands[1], ptx::Space::kSharedCluster);
  if (!from) return tl::unexpected(from.error());
  auto bytes = out.Source(i.operands[2], SlotClass::k32, ptx::Type::kU32);
  if (!bytes) return tl::unexpected(bytes.error());
  Place barrier;
  if (tells) {
    auto place = GenericAddress(out, i.operands[3], ptx::Space::kSharedCluster);
    if (!place) return tl::unexpected(place.error());
    barrier = *place;
  }
  DraftInst d;
  d.inst.fn = row->fn;
  out.Use(d, 0, *to);
  out.Use(d, 1, *from);
  out.Use(d, 2, *bytes);
  out.AddInPieces(std::move(d));
  if (tells) TellBarrier(out, barrier, *bytes);
  return {};
}

// "cp.async.bulk.prefetch.L2.global [from], size"
GpuResult<void> DecodeBulkPrefetch(DraftBuilder& out, const ptx::Instruction& i) {
  constexpr std::string_view kKnown[] = {"async", "bulk", "prefetch", "L2", "global", "L2::cache_hint"};
  const bool known = std::all_of(i.modifiers.begin(), i.modifiers.end(), [&](auto m) {
    return std::find(std::begin(kKnown), std::end(kKnown), m) != std::end(kKnown);
  });
  if (!known || SpaceBehind(i, "L2") != "global" || i.operands.size() != 2 + PolicyOperands(i) ||
      i.operands[0].kind != Operand::Kind::kAddress)
    return out.Unknown();
  out.Emit(out.Row("@cp.async.bulk.prefetch")->fn);
  return {};
}

}  // namespace

// "cp.async.bulk.TO.FROM{.mbarrier::complete_tx::bytes | .bulk_group} [to], [from], size{, [mbarrier]}{, mask}"; with
// .cp_mask, to global memory, the last operand says which bytes of 16 are copied.
GpuResult<void> DecodeBulkCopy(DraftBuilder& out, const ptx::Instruction& i) {
  if (HasModifier(i, "commit_group") || HasModifier(i, "wait_group")) return DecodePlain(out, i);
  if (HasModifier(i, "tensor")) return DecodeTensorCopy(out, i);
  if (HasModifier(i, "reduce")) return DecodeBulkReduce(out, i);
  if (HasModifier(i, "prefetch")) return DecodeBulkPrefetch(out, i);
  constexpr std::string_view kTells = "mbarrier::complete_tx::bytes";
  constexpr std::string_view kKnown[] = {
      "async", "bulk",       "global",         "shared::cta",        "shared::cluster",
      kTells,  "bulk_group", "L2::cache_hint", "multicast::cluster", "cp_mask"};
  const bool known = i.opcode == "cp" && std::all_of(i.modifiers.begin(), i.modifiers.end(), [&](auto m) {
                       return std::find(std::begin(kKnown), std::end(kKnown), m) != std::end(kKnown);
                     });
  const std::string_view to_name = SpaceBehind(i, "bulk");
  const std::string_view from_name = SpaceBehind(i, to_name);
  const bool tells = HasModifier(i, kTells);
  const bool multicast = HasModifier(i, "multicast::cluster");
  const bool masked = HasModifier(i, "cp_mask");
  const bool from_global = from_name == "global";
  const bool to_global = to_name == "global";
  const auto is_shared = [](std::string_view name) { return name.starts_with("shared::"); };
  // Between global and shared memory, or from the block's shared memory to another block's; an mbarrier is told of what
  // comes to shared memory, the rest is of a group.
  const bool pair_exists = (from_global && is_shared(to_name)) || (from_name == "shared::cta" && to_global) ||
                           (from_name == "shared::cta" && to_name == "shared::cluster");
  const size_t operands = 3u + (tells ? 1 : 0) + (multicast || masked ? 1 : 0) + PolicyOperands(i);
  if (!known || !pair_exists || tells == to_global || (multicast && !from_global) || (masked && !to_global) ||
      i.operands.size() != operands)
    return out.Unknown();
  const auto space = [](bool global) { return global ? ptx::Space::kGlobal : ptx::Space::kSharedCluster; };
  auto to = GenericAddress(out, i.operands[0], space(to_global));
  if (!to) return tl::unexpected(to.error());
  auto from = GenericAddress(out, i.operands[1], space(from_global));
  if (!from) return tl::unexpected(from.error());
  auto bytes = out.Source(i.operands[2], SlotClass::k32, ptx::Type::kU32);
  if (!bytes) return tl::unexpected(bytes.error());
  Place barrier, mask;
  if (tells) {
    auto place = GenericAddress(out, i.operands[3], ptx::Space::kSharedCluster);
    if (!place) return tl::unexpected(place.error());
    barrier = *place;
  }
  if (multicast || masked) {
    auto place = out.Source(multicast ? i.operands[4] : i.operands.back(), SlotClass::k32, ptx::Type::kU16);
    if (!place) return tl::unexpected(place.error());
    mask = *place;
  }
  DraftInst d;
  d.inst.fn = out.Row(multicast ? "@cp.async.bulk.multicast"
                      : masked  ? "@cp.async.bulk.cp_mask"
                                : "@cp.async.bulk")
                  ->fn;
  out.Use(d, 0, *to);
  out.Use(d, 1, *from);
  out.Use(d, 2, *bytes);
  if (masked) out.Use(d, 3, mask);
  if (multicast) {
    out.Use(d, 3, barrier);
    out.Use(d, 4, mask);
  }
  out.AddInPieces(std::move(d));
  if (tells && !multicast) TellBarrier(out, barrier, *bytes);
  return {};
}

// "st.async.mbarrier::complete_tx::bytes.shared::cluster{.v2|.v4}.type [to], value, [mbarrier]" and red.async: the
// ordinary instruction, then the mbarrier is told.
GpuResult<void> DecodeAsyncAccess(DraftBuilder& out, const ptx::Instruction& i) {
  constexpr std::string_view kTells = "mbarrier::complete_tx::bytes";
  if (i.operands.size() != 3 || !HasModifier(i, kTells)) return out.Unknown();
  ptx::Instruction plain = i;
  plain.operands.pop_back();
  std::erase_if(plain.modifiers,
                [&](auto m) { return m == "async" || m == kTells || m == "weak" || m == "shared::cluster"; });
  plain.modifiers.insert(plain.modifiers.begin(), "shared::cluster");
  auto barrier = GenericAddress(out, i.operands[2], ptx::Space::kSharedCluster);
  if (!barrier) return tl::unexpected(barrier.error());
  const uint32_t elements = HasModifier(i, "v4") ? 4 : HasModifier(i, "v2") ? 2 : 1;
  const Place bytes = out.Constant(uint64_t{ptx::SizeOf(LastType(i))} * elements, 4);
  if (auto r = i.opcode == "st" ? DecodeMemory(out, plain) : DecodeAtomic(out, plain); !r) return r;
  TellBarrier(out, *barrier, bytes);
  return {};
}

}  // namespace vgpud::soft
