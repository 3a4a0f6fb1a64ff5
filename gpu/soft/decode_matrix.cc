// wmma: instructions whose operands are fragments of matrices, many registers each.
#include <algorithm>
#include <iterator>

#include "gpu/soft/function_decoder.h"

namespace vgpud::soft {
namespace {

constexpr std::string_view kShapes[] = {"m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8", "m8n8k4"};

bool IsShape(std::string_view m) { return std::find(std::begin(kShapes), std::end(kShapes), m) != std::end(kShapes); }

}  // namespace

// Rows: "@wmma.load.a.<shape>.<type>", "@wmma.store.d.<shape>.<type>", "@wmma.mma.<shape>.<d>.<a>.<b>.<c>" with f16 for
// what old forms leave out. Extra operands: the fragments in the order of the instruction.
GpuResult<void> FunctionDecoder::DecodeMatrix(const ptx::Instruction& i) {
  if (i.modifiers.empty()) return Unknown();
  const std::string_view what = i.modifiers.front();
  const bool load = what == "load";
  const bool store = what == "store";
  if (!load && !store && what != "mma") return Unknown();
  std::string_view shape;
  std::string_view matrix;
  std::vector<std::string_view> types;
  uint8_t aux = 0;
  for (const std::string_view m : i.modifiers) {
    if (ptx::TypeFromName(m) != ptx::Type::kNone) {
      types.push_back(m);
    } else if (IsShape(m)) {
      shape = m;
    } else if (m == "a" || m == "b" || m == "c" || m == "d") {
      matrix = m;
    } else if (m == "col" && (load || store)) {
      aux |= 1;
    } else if (m == "satfinite" && what == "mma") {
      aux |= 1;
    } else if (m != what && m != "sync" && m != "aligned" && m != "row" && m != "col" && m != "rn" &&
               !IsSpaceModifier(m)) {
      return Unknown();
    }
  }
  std::string key = fmt::format("@wmma.{}", what);
  if (load || store) {
    if (types.size() != 1) return Unknown();
    key += fmt::format(".{}.{}.{}", matrix, shape, types[0]);
  } else {
    if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
    if (types.size() != 4) return Unknown();
    key += fmt::format(".{}.{}.{}.{}.{}", shape, types[0], types[1], types[2], types[3]);
  }
  const OpRow* row = context_.table.Find(key);
  if (row == nullptr) return Unknown();

  // The row's operands are the numbers of registers: "8", or "8888" for d, a, b, c. Wide: 64-bit registers.
  const std::string_view counts = row->operands;
  const SlotClass c = types[0] == "f64" ? SlotClass::k64 : SlotClass::k32;
  const ptx::Type type = c == SlotClass::k64 ? ptx::Type::kB64 : ptx::Type::kB32;
  const size_t fragments_at = store ? 1 : 0;
  const size_t addresses = load || store ? 1 : 0;
  const size_t least = addresses + counts.size();
  if (i.operands.size() < least || i.operands.size() > least + addresses)
    return Fail("operands are missing or too many");
  DraftInst draft;
  std::vector<Target> targets;
  for (size_t f = 0; f < counts.size(); ++f) {
    const Operand& o = i.operands[fragments_at + f];
    const std::span<const Operand> elements =
        o.kind == Kind::kVector ? std::span<const Operand>(o.elements) : std::span<const Operand>(&o, 1);
    if (elements.size() != static_cast<size_t>(counts[f] - '0'))
      return Fail(fmt::format("the fragment has {} registers instead of {}", elements.size(), counts[f]));
    const bool write = f == 0 && !store;
    for (const Operand& e : elements) {
      if (write) {
        auto t = Destination(e, c);
        if (!t) return tl::unexpected(t.error());
        targets.push_back(*t);
        UseExtra(draft, InRegister(t->reg), true);
      } else {
        auto p = Source(e, c, type);
        if (!p) return tl::unexpected(p.error());
        UseExtra(draft, *p);
      }
    }
  }
  draft.inst.fn = row->fn;
  draft.diverts = true;
  draft.line = i.line;
  if (load || store) {
    const ptx::Space space = SpaceOf(i);
    bool address32 = false;
    auto place = MemoryAddress(i.operands[load ? 1 : 0], space, draft, address32);
    if (!place) return tl::unexpected(place.error());
    if (address32 && space != ptx::Space::kShared) return Fail("the address is a 32-bit register");
    Use(draft, 0, *place);
    draft.inst.flags = address32 ? kAddress32 : 0;
    // Operand 1: elements from one row (column) to the next, 0 = they follow each other.
    auto stride = i.operands.size() > least ? Source(i.operands.back(), SlotClass::k32, ptx::Type::kB32)
                                            : GpuResult<Place>(Constant(0, 4));
    if (!stride) return tl::unexpected(stride.error());
    Use(draft, 1, *stride);
    const MemSpace where = space == ptx::Space::kShared   ? MemSpace::kShared
                           : space == ptx::Space::kGlobal ? MemSpace::kGlobal
                                                          : MemSpace::kGeneric;
    aux |= static_cast<uint8_t>(static_cast<uint8_t>(where) << 1);
  }
  draft.inst.aux = aux;
  draft_.push_back(std::move(draft));
  for (const Target& t : targets)
    if (auto r = Finish(t, false); !r) return r;
  return {};
}

}  // namespace vgpud::soft
