// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;

namespace {

uint64_t WindowOf(ptx::Space space) {
  switch (space) {
    case ptx::Space::kShared:
    case ptx::Space::kSharedCluster:
      return kSharedWindow;
    case ptx::Space::kLocal:
      return kLocalWindow;
    case ptx::Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

}  // namespace

GpuResult<void> DecodeCvta(DraftBuilder& out, const ptx::Instruction& i) {
  if (LastType(i) != ptx::Type::kU64 || i.operands.size() != 2) return out.Unknown();
  const uint64_t window = WindowOf(SpaceOf(i));
  auto target = out.Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  auto source = out.Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  DraftInst& d = out.Emit(out.Row(window == 0 ? "mov.b64" : "add.u64")->fn);
  out.UseRegister(d, 0, target->reg, true);
  out.Use(d, 1, *source);
  if (window != 0) out.UseConstant(d, 2, HasModifier(i, "to") ? 0 - window : window, 8);
  out.Finish(*target, false);
  return {};
}

// There is no cache to have a policy for: any value will do.
GpuResult<void> DecodeCachePolicy(DraftBuilder& out, const ptx::Instruction& i) {
  const bool range = HasModifier(i, "range");
  const size_t least = range ? 4 : HasModifier(i, "cvt") ? 2 : 1;
  const size_t most = HasModifier(i, "fractional") ? 2 : least;
  if (LastType(i) != ptx::Type::kB64 || i.operands.size() < least || i.operands.size() > most) return out.Unknown();
  auto target = out.Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  DraftInst& d = out.Emit(out.Row("mov.b64")->fn);
  out.UseRegister(d, 0, target->reg, true);
  out.UseConstant(d, 1, 0, 8);
  out.Finish(*target, false);
  return {};
}

GpuResult<void> DecodeIsSpaceP(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() != 2) return out.Unknown();
  const ptx::Space space = SpaceOf(i);
  const bool arena = space == ptx::Space::kGlobal || space == ptx::Space::kConst;
  const uint64_t base = arena ? kArenaVa : WindowOf(space);
  auto target = out.Destination(i.operands[0], SlotClass::kPredicate);
  if (!target) return tl::unexpected(target.error());
  auto source = out.Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  const Reg offset = out.NewRegister(SlotClass::k64);
  DraftInst& sub = out.Emit(out.Row("sub.u64")->fn);
  out.UseRegister(sub, 0, offset, true);
  out.Use(sub, 1, *source);
  out.UseConstant(sub, 2, base, 8);
  DraftInst& d = out.Emit(out.Row("setp.lt.u64")->fn);
  out.UseRegister(d, 0, target->reg, true);
  out.UseRegister(d, 1, out.NewRegister(SlotClass::kPredicate), true);
  out.UseRegister(d, 2, offset, false);
  out.UseConstant(d, 3,
                  arena                                 ? uint64_t{1} << 46
                  : space == ptx::Space::kSharedCluster ? kClusterWindowBytes
                                                        : kWindowBytes,
                  8);
  return {};
}

namespace {

// The two halves of what a mov of 128 bits names: a register or a vector.
GpuResult<std::array<Operand, 2>> WideOperand(const DraftBuilder& out, const Operand& o) {
  if (o.kind != Operand::Kind::kVector) return out.HalvesOf(o);
  if (o.elements.size() != 2) return out.Fail("128 bits are two elements of 64");
  for (const Operand& e : o.elements)
    if (e.kind == Operand::Kind::kRegister && ptx::SizeOf(out.source().registers[e.index].type) != 8)
      return out.Fail("the elements do not have the size of the whole");
  return std::array<Operand, 2>{o.elements[0], o.elements[1]};
}
GpuResult<void> DecodeWideMove(DraftBuilder& out, const ptx::Instruction& i) {
  const auto to = WideOperand(out, i.operands[0]);
  if (!to) return tl::unexpected(to.error());
  const auto from = WideOperand(out, i.operands[1]);
  if (!from) return tl::unexpected(from.error());
  // Both are read before one is written.
  Place sources[2];
  for (size_t n = 0; n < 2; ++n) {
    const auto p = out.Source((*from)[n], SlotClass::k64, ptx::Type::kB64);
    if (!p) return tl::unexpected(p.error());
    const Reg copy = out.NewRegister(SlotClass::k64);
    DraftInst& d = out.Emit(out.Row("mov.b64")->fn);
    out.UseRegister(d, 0, copy, true);
    out.Use(d, 1, *p);
    sources[n] = InRegister(copy);
  }
  for (size_t n = 0; n < 2; ++n) {
    const auto t = out.Destination((*to)[n], SlotClass::k64);
    if (!t) return tl::unexpected(t.error());
    DraftInst& d = out.Emit(out.Row("mov.b64")->fn);
    out.UseRegister(d, 0, t->reg, true);
    out.Use(d, 1, sources[n]);
    out.Finish(*t, false);
  }
  return {};
}

}  // namespace

// mov with a vector on one side packs or unpacks.
GpuResult<void> DecodeMove(DraftBuilder& out, const ptx::Instruction& i) {
  if (i.operands.size() == 2 && LastType(i) == ptx::Type::kB128) return DecodeWideMove(out, i);
  const auto is_vector = [](const Operand& o) { return o.kind == Operand::Kind::kVector; };
  const auto braces = [&](const Operand& o) { return is_vector(o) && o.elements.size() == 1; };
  if (std::any_of(i.operands.begin(), i.operands.end(), braces)) {
    // ptxas takes a single register in braces, too.
    ptx::Instruction plain = i;
    for (Operand& o : plain.operands)
      if (braces(o)) o = Operand(o.elements[0]);
    return DecodeMove(out, plain);
  }
  if (i.operands.size() != 2 || std::none_of(i.operands.begin(), i.operands.end(), is_vector))
    return DecodePlain(out, i);
  const bool unpack = i.operands[0].kind == Operand::Kind::kVector;
  const Operand& vector = i.operands[unpack ? 0 : 1];
  const Operand& whole = i.operands[unpack ? 1 : 0];
  const uint32_t bits = ptx::SizeOf(LastType(i)) * 8;
  const auto parts = static_cast<uint8_t>(std::min<size_t>(vector.elements.size(), 5));
  const OpRow* row = out.Row(fmt::format("@{}.b{}.{}", unpack ? "unpack" : "pack", bits, parts));
  if (row == nullptr) return out.Unknown();
  for (const Operand& e : vector.elements) {
    const bool fits =
        e.kind != Operand::Kind::kRegister || ptx::SizeOf(out.source().registers[e.index].type) * 8 == bits / parts;
    if (!fits) return out.Fail("the elements do not have the size of the whole");
  }
  const SlotClass whole_class = bits == 64 ? SlotClass::k64 : SlotClass::k32;
  std::vector<Place> sources;
  std::vector<Target> targets;
  if (unpack) {
    for (const Operand& e : vector.elements) {
      auto t = out.Destination(e, SlotClass::k32);
      if (!t) return tl::unexpected(t.error());
      targets.push_back(*t);
    }
    auto p = out.Source(whole, whole_class, LastType(i));
    if (!p) return tl::unexpected(p.error());
    sources.push_back(*p);
  } else {
    auto t = out.Destination(whole, whole_class);
    if (!t) return tl::unexpected(t.error());
    targets.push_back(*t);
    for (const Operand& e : vector.elements) {
      auto p = out.Source(e, SlotClass::k32, bits / parts == 32 ? ptx::Type::kB32 : ptx::Type::kB16);
      if (!p) return tl::unexpected(p.error());
      sources.push_back(*p);
    }
  }
  DraftInst& d = out.Emit(row->fn);
  uint8_t at = 0;
  for (const Target& t : targets) out.UseRegister(d, at++, t.reg, true);
  for (const Place& p : sources) out.Use(d, at++, p);
  for (const Target& t : targets) out.Finish(t, false);
  return {};
}

}  // namespace vgpud::soft
