// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

namespace {

uint64_t WindowOf(ptx::Space space) {
  switch (space) {
    case ptx::Space::kShared:
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

GpuResult<void> FunctionDecoder::DecodeCvta(const ptx::Instruction& i) {
  if (LastType(i) != ptx::Type::kU64 || i.operands.size() != 2) return Unknown();
  const uint64_t window = WindowOf(SpaceOf(i));
  auto target = Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  auto source = Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  DraftInst& d = Emit(context_.table.Find(window == 0 ? "mov.b64" : "add.u64")->fn);
  UseRegister(d, 0, target->reg, true);
  Use(d, 1, *source);
  if (window != 0) UseConstant(d, 2, HasModifier(i, "to") ? 0 - window : window, 8);
  return Finish(*target, false);
}

// There is no cache to have a policy for: any value will do.
GpuResult<void> FunctionDecoder::DecodeCachePolicy(const ptx::Instruction& i) {
  const bool range = HasModifier(i, "range");
  const size_t least = range ? 4 : HasModifier(i, "cvt") ? 2 : 1;
  const size_t most = HasModifier(i, "fractional") ? 2 : least;
  if (LastType(i) != ptx::Type::kB64 || i.operands.size() < least || i.operands.size() > most) return Unknown();
  auto target = Destination(i.operands[0], SlotClass::k64);
  if (!target) return tl::unexpected(target.error());
  DraftInst& d = Emit(context_.table.Find("mov.b64")->fn);
  UseRegister(d, 0, target->reg, true);
  UseConstant(d, 1, 0, 8);
  return Finish(*target, false);
}

GpuResult<void> FunctionDecoder::DecodeIsSpaceP(const ptx::Instruction& i) {
  if (i.operands.size() != 2) return Unknown();
  const ptx::Space space = SpaceOf(i);
  const bool arena = space == ptx::Space::kGlobal || space == ptx::Space::kConst;
  const uint64_t base = arena ? kArenaVa : WindowOf(space);
  auto target = Destination(i.operands[0], SlotClass::kPredicate);
  if (!target) return tl::unexpected(target.error());
  auto source = Source(i.operands[1], SlotClass::k64, ptx::Type::kU64);
  if (!source) return tl::unexpected(source.error());
  const Reg offset = NewRegister(SlotClass::k64);
  DraftInst& sub = Emit(context_.table.Find("sub.u64")->fn);
  UseRegister(sub, 0, offset, true);
  Use(sub, 1, *source);
  UseConstant(sub, 2, base, 8);
  DraftInst& d = Emit(context_.table.Find("setp.lt.u64")->fn);
  UseRegister(d, 0, target->reg, true);
  UseRegister(d, 1, NewRegister(SlotClass::kPredicate), true);
  UseRegister(d, 2, offset, false);
  UseConstant(d, 3, arena ? uint64_t{1} << 46 : kWindowBytes, 8);
  return {};
}

// mov with a vector on one side packs or unpacks.
GpuResult<void> FunctionDecoder::DecodeMove(const ptx::Instruction& i) {
  const bool unpack = i.operands[0].kind == Kind::kVector;
  const Operand& vector = i.operands[unpack ? 0 : 1];
  const Operand& whole = i.operands[unpack ? 1 : 0];
  const uint32_t bits = ptx::SizeOf(LastType(i)) * 8;
  const auto parts = static_cast<uint8_t>(std::min<size_t>(vector.elements.size(), 5));
  const OpRow* row = context_.table.Find(fmt::format("@{}.b{}.{}", unpack ? "unpack" : "pack", bits, parts));
  if (row == nullptr) return Unknown();
  for (const Operand& e : vector.elements) {
    const bool fits = e.kind != Kind::kRegister || ptx::SizeOf(source_.registers[e.index].type) * 8 == bits / parts;
    if (!fits) return Fail("the elements do not have the size of the whole");
  }
  const SlotClass whole_class = bits == 64 ? SlotClass::k64 : SlotClass::k32;
  std::vector<Place> sources;
  std::vector<Target> targets;
  if (unpack) {
    for (const Operand& e : vector.elements) {
      auto t = Destination(e, SlotClass::k32);
      if (!t) return tl::unexpected(t.error());
      targets.push_back(*t);
    }
    auto p = Source(whole, whole_class, LastType(i));
    if (!p) return tl::unexpected(p.error());
    sources.push_back(*p);
  } else {
    auto t = Destination(whole, whole_class);
    if (!t) return tl::unexpected(t.error());
    targets.push_back(*t);
    for (const Operand& e : vector.elements) {
      auto p = Source(e, SlotClass::k32, bits / parts == 32 ? ptx::Type::kB32 : ptx::Type::kB16);
      if (!p) return tl::unexpected(p.error());
      sources.push_back(*p);
    }
  }
  DraftInst& d = Emit(row->fn);
  uint8_t at = 0;
  for (const Target& t : targets) UseRegister(d, at++, t.reg, true);
  for (const Place& p : sources) Use(d, at++, p);
  for (const Target& t : targets)
    if (auto r = Finish(t, false); !r) return r;
  return {};
}

}  // namespace vgpud::soft
