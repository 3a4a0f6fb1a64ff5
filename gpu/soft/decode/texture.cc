// SPDX-License-Identifier: Apache-2.0
// tex, tld4, txq, suld, sust, sured and suq: many operands, so their sources stand in carriers (texture_form.h).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/checked.h"
#include "gpu/soft/code/texture_form.h"
#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;
namespace {

struct GeometryRow {
  std::string_view name;
  uint8_t axes;
  bool layered;
};
constexpr GeometryRow kGeometries[] = {
    {"1d", 1, false}, {"2d", 2, false},   {"3d", 3, false},   {"a1d", 1, true},
    {"a2d", 2, true}, {"cube", 3, false}, {"acube", 3, true},
};

struct QueryRow {
  std::string_view name;
  TextureQuery query;
};
constexpr QueryRow kQueries[] = {
    {"width", TextureQuery::kWidth},         {"height", TextureQuery::kHeight},
    {"depth", TextureQuery::kDepth},         {"channel_data_type", TextureQuery::kType},
    {"channel_order", TextureQuery::kOrder}, {"normalized_coords", TextureQuery::kNormalized},
    {"array_size", TextureQuery::kLayers},   {"num_mipmap_levels", TextureQuery::kLevels},
    {"num_samples", TextureQuery::kSamples},
};

constexpr std::string_view kOutside[] = {"trap", "clamp", "zero"};

template <class Table>
auto FindNamed(const Table& table, std::string_view name) {
  return std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.name == name; });
}

// What the modifiers said, each of them looked at.
struct Said {
  const GeometryRow* geometry = nullptr;
  const QueryRow* query = nullptr;
  std::string_view detail;     // base, level, grad
  std::string_view component;  // r, g, b, a
  std::string_view style;      // b, p
  std::string_view reduce;     // add, min, ...
  std::vector<std::string_view> types;
  Outside outside = Outside::kTrap;
  uint8_t count = 1;
};

// nullopt for a modifier that no such instruction has.
std::optional<Said> Read(const ptx::Instruction& i) {
  constexpr std::string_view kDetails[] = {"base", "level", "grad"};
  constexpr std::string_view kComponents[] = {"r", "g", "b", "a"};
  constexpr std::string_view kReductions[] = {"add", "min", "max", "and", "or"};
  constexpr std::string_view kCaching[] = {"ca", "cg", "cs", "cv", "wb", "wt"};
  const auto in = [](const auto& list, std::string_view m) {
    return std::find(std::begin(list), std::end(list), m) != std::end(list);
  };
  const bool surface = i.opcode[1] == 'u';
  Said said;
  for (const std::string_view m : i.modifiers) {
    const auto* geometry = FindNamed(kGeometries, m);
    const auto* query = FindNamed(kQueries, m);
    const auto* outside = std::find(std::begin(kOutside), std::end(kOutside), m);
    if (geometry != std::end(kGeometries)) {
      said.geometry = geometry;
    } else if (query != std::end(kQueries)) {
      said.query = query;
    } else if (outside != std::end(kOutside)) {
      said.outside = static_cast<Outside>(outside - std::begin(kOutside));
    } else if (m == "v2" || m == "v4") {
      said.count = m == "v2" ? 2 : 4;
    } else if (ptx::TypeFromName(m) != ptx::Type::kNone) {
      said.types.push_back(m);
    } else if (surface && (m == "b" || m == "p")) {
      said.style = m;
    } else if (!surface && in(kComponents, m)) {
      said.component = m;
    } else if (in(kDetails, m)) {
      said.detail = m;
    } else if (i.opcode == "sured" && in(kReductions, m)) {
      said.reduce = m;
    } else if (!in(kCaching, m)) {
      return std::nullopt;
    }
  }
  return said;
}

struct SourceOperand {
  const Operand* operand;
  SlotClass slot;
  ptx::Type type;
};

// `destinations` become the operands of the instruction itself, handle and `sources` its carriers'.
GpuResult<void> EmitTexture(DraftBuilder& out, std::string_view key, TextureForm form, const Operand& object,
                            const std::vector<SourceOperand>& sources, const std::vector<const Operand*>& destinations,
                            SlotClass wide) {
  const OpRow* row = out.Row(key);
  if (row == nullptr || destinations.size() > 4) return out.Unknown();
  if (object.kind != Operand::Kind::kAddress || object.base != Operand::Base::kRegister || object.offset != 0)
    return out.Fail("texture and surface references of old modules are not supported, only objects (cuTexObjectCreate)",
                    CuStatus::kNotSupported);
  if (out.ClassOf(object.index) != SlotClass::k64) return out.Fail("a texture or surface object has 64 bits");
  std::vector<Place> places = {InRegister(object.index)};
  for (const SourceOperand& s : sources) {
    auto p = out.Source(*s.operand, s.slot, s.type);
    if (!p) return tl::unexpected(p.error());
    places.push_back(*p);
  }
  std::vector<Target> targets;
  for (const Operand* o : destinations) {
    auto t = out.Destination(*o, wide);
    if (!t) return tl::unexpected(t.error());
    targets.push_back(*t);
  }
  form.carriers = MustFit<uint8_t>((places.size() + kPerCarrier - 1) / kPerCarrier);
  DraftInst& d = out.Emit(row->fn);
  std::memcpy(&d.inst.imm, &form, sizeof form);
  for (size_t t = 0; t < targets.size(); ++t) out.UseRegister(d, MustFit<uint8_t>(t), targets[t].reg, true);
  const Handler carrier = out.Row("@texture.sources")->fn;
  for (size_t p = 0; p < places.size(); ++p) {
    if (p % kPerCarrier == 0) out.Emit(carrier);
    out.Use(out.draft().back(), MustFit<uint8_t>(p % kPerCarrier), places[p]);
  }
  for (const Target& t : targets) out.Finish(t, false);
  return {};
}

// The first `count` elements of a vector, or the operand itself where one is asked for.
bool TakeElements(const Operand& o, size_t count, std::vector<const Operand*>& to) {
  if (o.kind != Operand::Kind::kVector) {
    to.push_back(&o);
    return count == 1;
  }
  if (o.elements.size() < count) return false;
  for (size_t e = 0; e < count; ++e) to.push_back(&o.elements[e]);
  return true;
}

// txq and suq: [object], or [object], level.
GpuResult<void> DecodeQuery(DraftBuilder& out, const ptx::Instruction& i, const Said& said, TextureForm form) {
  const bool level = form.detail == Detail::kLevel;
  if (said.query == nullptr || i.operands.size() != (level ? 3u : 2u) || (level && i.opcode == "suq"))
    return out.Unknown();
  form.count = static_cast<uint8_t>(said.query->query);
  std::vector<SourceOperand> sources;
  if (level) sources.push_back({&i.operands[2], SlotClass::k32, ptx::Type::kU32});
  return EmitTexture(out, i.opcode, form, i.operands[1], sources, {&i.operands[0]}, SlotClass::k32);
}

// tex and tld4; `sources` has the coordinates.
GpuResult<void> DecodeFetch(DraftBuilder& out, const ptx::Instruction& i, const Said& said, TextureForm form,
                            std::vector<SourceOperand> sources) {
  constexpr std::string_view kResults[] = {"u32", "s32", "f32"};
  const ptx::Type last = ptx::TypeFromName(said.types.back());
  if (said.types.size() != 2 ||
      std::find(std::begin(kResults), std::end(kResults), said.types[0]) == std::end(kResults) || said.count != 4 ||
      (last != ptx::Type::kF32 && last != ptx::Type::kS32))
    return out.Unknown();
  form.integer = last == ptx::Type::kS32;
  const bool gather = i.opcode == "tld4";
  if ((gather || form.detail == Detail::kGradient) && form.integer) return out.Unknown();
  if (gather != !said.component.empty()) return out.Unknown();
  if (gather) form.count = static_cast<uint8_t>(std::string_view("rgba").find(said.component[0]));
  const size_t extra = form.detail == Detail::kLevel ? 1 : form.detail == Detail::kGradient ? 2 : 0;
  if (i.operands.size() != 2 + extra) return out.Unknown();
  std::vector<const Operand*> more;
  for (size_t e = 0; e < extra; ++e)
    if (!TakeElements(i.operands[2 + e], extra == 1 ? 1 : form.axes, more)) return out.Fail("a gradient is too short");
  for (const Operand* o : more) sources.push_back({o, SlotClass::k32, last});
  std::vector<const Operand*> destinations;
  if (!TakeElements(i.operands[0], 4, destinations)) return out.Fail("the result must be a vector of four");
  std::vector<std::string_view> names = {said.geometry->name};
  if (!said.detail.empty()) names.push_back(said.detail);
  const Operand& object = i.operands[1];
  return EmitTexture(out, OpTable::Key(i.opcode, names), form, object, sources, destinations, SlotClass::k32);
}

// suld, sust and sured; `sources` has the coordinates.
GpuResult<void> DecodeSurface(DraftBuilder& out, const ptx::Instruction& i, const Said& said, TextureForm form,
                              std::vector<SourceOperand> sources) {
  const bool loads = i.opcode == "suld";
  const ptx::Type last = ptx::TypeFromName(said.types.back());
  const uint32_t bytes = ptx::SizeOf(last);
  if (said.types.size() != 1 || bytes == 0 || bytes > 8 || said.style.empty() || bytes * said.count > 16)
    return out.Unknown();
  form.bytes = MustFit<uint8_t>(bytes);
  form.count = said.count;
  const SlotClass slot = bytes == 8 ? SlotClass::k64 : SlotClass::k32;
  std::vector<const Operand*> values;
  if (i.operands.size() != 2 || !TakeElements(i.operands[loads ? 0 : 1], said.count, values))
    return out.Fail("the vector has the wrong number of elements");
  const Operand& object = i.operands[loads ? 1 : 0];
  const std::string key = OpTable::Key(i.opcode, {said.style, said.geometry->name});
  if (loads) return EmitTexture(out, key, form, object, sources, values, slot);
  for (const Operand* v : values) sources.push_back({v, slot, last});
  if (i.opcode == "sust") {
    if (said.style == "p" && bytes != 4) return out.Unknown();
    return EmitTexture(out, key, form, object, sources, {}, slot);
  }
  if (said.count != 1 || form.layered || said.geometry->name == "cube") return out.Unknown();
  return EmitTexture(out, fmt::format("@sured.{}.{}.{}", said.style, said.reduce, said.types[0]), form, object, sources,
                     {}, slot);
}

}  // namespace

GpuResult<void> DecodeTexture(DraftBuilder& out, const ptx::Instruction& i) {
  const auto said = Read(i);
  if (!said) return out.Unknown();
  TextureForm form;
  form.outside = said->outside;
  form.detail = said->detail == "level" ? Detail::kLevel : said->detail == "grad" ? Detail::kGradient : Detail::kBase;
  if (i.opcode == "txq" || i.opcode == "suq") return DecodeQuery(out, i, *said, form);
  const bool fetches = i.opcode == "tex" || i.opcode == "tld4";
  const size_t object_at = fetches || i.opcode == "suld" ? 1 : 0;
  if (said->geometry == nullptr || said->types.empty() || i.operands.size() < object_at + 1) return out.Unknown();
  form.axes = said->geometry->axes;
  form.layered = said->geometry->layered;
  const Operand& object = i.operands[object_at];
  // [object, {coordinates}]: what precedes the vector would be a separate sampler.
  if (object.kind != Operand::Kind::kAddress || object.elements.size() != 1) return out.Unknown();
  std::vector<const Operand*> coordinates;
  if (!TakeElements(object.elements[0], form.axes + (form.layered ? 1u : 0u), coordinates))
    return out.Fail("coordinates are missing");
  const ptx::Type last = ptx::TypeFromName(said->types.back());
  std::vector<SourceOperand> sources;
  for (const Operand* c : coordinates)
    sources.push_back({c, SlotClass::k32, fetches && last == ptx::Type::kF32 ? last : ptx::Type::kB32});
  // A layer is an integer whatever the coordinates are.
  if (form.layered) sources[0].type = ptx::Type::kU32;
  return fetches ? DecodeFetch(out, i, *said, form, std::move(sources))
                 : DecodeSurface(out, i, *said, form, std::move(sources));
}

}  // namespace vgpud::soft
