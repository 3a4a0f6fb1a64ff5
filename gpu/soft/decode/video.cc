// SPDX-License-Identifier: Apache-2.0
// Video instructions: operands with selectors (%r1.b2, %r1.h10), a second operation with c or a merge into it.
#include "gpu/soft/ops/video.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "gpu/soft/decode/families.h"

namespace vgpud::soft {

using ptx::Operand;
namespace {

constexpr std::string_view kCompares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
constexpr std::string_view kShiftModes[] = {"clamp", "wrap"};

// "" word, ".b0" to ".b3", ".h0", ".h1", as VideoForm has them.
std::optional<uint32_t> ScalarSelector(std::string_view name) {
  constexpr std::string_view kNames[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<uint32_t>(at - kNames);
}

// ".h10": a part of a and b (numbered through) for each part of the result, the highest first.
std::optional<uint32_t> SimdSelector(std::string_view name, uint32_t parts, uint32_t otherwise) {
  if (name.empty()) return otherwise;
  if (name.size() != 2 + parts || name[1] != (parts == 2 ? 'h' : 'b')) return std::nullopt;
  uint32_t selector = 0;
  for (const char c : name.substr(2)) {
    if (c < '0' || c >= static_cast<char>('0' + 2 * parts)) return std::nullopt;
    selector = selector << 4 | static_cast<uint32_t>(c - '0');
  }
  return selector;
}

// ".h1", ".h10", ".b320": the parts that are written.
std::optional<uint32_t> SimdMask(std::string_view name, uint32_t parts) {
  if (name.empty()) return (1u << parts) - 1;
  if (name.size() < 3 || name[1] != (parts == 2 ? 'h' : 'b')) return std::nullopt;
  uint32_t mask = 0;
  for (const char c : name.substr(2)) {
    if (c < '0' || c >= static_cast<char>('0' + parts)) return std::nullopt;
    mask |= 1u << (c - '0');
  }
  return mask;
}

uint32_t PartsOf(std::string_view opcode) { return opcode.back() == '2' ? 2 : opcode.back() == '4' ? 4 : 1; }

// Types, .sat, what names the row.
struct VideoModifiers {
  std::string key;
  VideoForm form;
  uint8_t aux = 0;
};
std::optional<VideoModifiers> ModifiersOf(const ptx::Instruction& i) {
  VideoModifiers v;
  v.key = fmt::format("@{}", i.opcode);
  std::vector<bool> types;
  for (const std::string_view m : i.modifiers) {
    if (m == "u32" || m == "s32") {
      types.push_back(m == "s32");
    } else if (m == "sat") {
      v.form.saturate = true;
    } else if (i.opcode == "vmad" && (m == "shr7" || m == "shr15")) {
      v.aux |= static_cast<uint8_t>((m == "shr7" ? 7 : 15) << 1);
    } else if (i.opcode == "vmad" && m == "po") {
      v.aux |= 1;
    } else if (m == "add") {
      v.form.second = VideoSecond::kAdd;
    } else if ((m == "min" || m == "max") && PartsOf(i.opcode) == 1) {
      v.form.second = m == "min" ? VideoSecond::kMin : VideoSecond::kMax;
    } else if (std::find(std::begin(kCompares), std::end(kCompares), m) != std::end(kCompares) ||
               std::find(std::begin(kShiftModes), std::end(kShiftModes), m) != std::end(kShiftModes)) {
      v.key += fmt::format(".{}", m);
    } else {
      return std::nullopt;
    }
  }
  // vset has no type of the result: it is unsigned.
  const bool set = i.opcode.substr(0, 4) == "vset";
  if (set) types.insert(types.begin(), false);
  if (types.size() != 3) return std::nullopt;
  v.form.signed_d = types[0];
  v.form.signed_a = types[1];
  v.form.signed_b = types[2];
  return v;
}

}  // namespace

bool IsVideo(std::string_view opcode) {
  constexpr std::string_view kNames[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset"};
  if (opcode == "vshl" || opcode == "vshr" || opcode == "vmad") return true;
  if (PartsOf(opcode) != 1) {
    opcode.remove_suffix(1);
  } else if (opcode == "vavrg") {
    return false;
  }
  return std::find(std::begin(kNames), std::end(kNames), opcode) != std::end(kNames);
}

GpuResult<void> DecodeVideo(DraftBuilder& out, const ptx::Instruction& i) {
  // What kernels are full of has rows of its own: without selectors, c does not matter to a SIMD instruction.
  const bool selects = std::any_of(i.operands.begin(), i.operands.end(), [](const Operand& o) {
    return o.kind == Operand::Kind::kRegister && !o.name.empty();
  });
  const PlainRow common = selects ? PlainRow() : FindPlainRow(out.table(), i.opcode, i.modifiers);
  if (common.row != nullptr) return DecodeRow(out, i, common);
  const auto modifiers = ModifiersOf(i);
  const OpRow* row = modifiers ? out.Row(modifiers->key) : nullptr;
  if (row == nullptr) return out.Unknown();
  VideoForm form = modifiers->form;
  const uint32_t parts = PartsOf(i.opcode);
  const size_t count = i.operands.size();
  if (count < 3 || count > 4) return out.Fail("operands are missing or too many");
  const std::string_view names[] = {i.operands[0].name, i.operands[1].name, i.operands[2].name};
  const auto d = parts == 1 ? ScalarSelector(names[0]) : SimdMask(names[0], parts);
  const auto a = parts == 1 ? ScalarSelector(names[1]) : SimdSelector(names[1], parts, parts == 2 ? 0x10 : 0x3210);
  const auto b = parts == 1 ? ScalarSelector(names[2]) : SimdSelector(names[2], parts, parts == 2 ? 0x32 : 0x7654);
  if (!d || !a || !b) return out.Fail("no such selector of parts");
  form.select_d = static_cast<uint8_t>(*d);
  form.select_a = *a;
  form.select_b = *b;
  if (parts == 1 && *d != 0) {
    if (form.second != VideoSecond::kNone) return out.Fail("a result is merged or combined, not both");
    form.second = VideoSecond::kMerge;
  }
  const bool needs_c = i.opcode == "vmad" || parts != 1 || form.second != VideoSecond::kNone;
  if (needs_c != (count == 4)) return out.Fail("operands are missing or too many");

  // The selectors are in the form; what is left are registers.
  const auto plain = [](const Operand& o) {
    Operand copy = o;
    if (copy.kind == Operand::Kind::kRegister) copy.name = {};
    return copy;
  };
  auto target = out.Destination(plain(i.operands[0]), SlotClass::k32);
  if (!target) return tl::unexpected(target.error());
  Place sources[3] = {out.Constant(0, 4), out.Constant(0, 4), out.Constant(0, 4)};
  for (size_t n = 1; n < count; ++n) {
    auto p = out.Source(plain(i.operands[n]), SlotClass::k32, ptx::Type::kB32);
    if (!p) return tl::unexpected(p.error());
    sources[n - 1] = *p;
  }
  DraftInst& draft = out.Emit(row->fn);
  draft.inst.imm = Pack(form);
  draft.inst.aux = modifiers->aux;
  out.UseRegister(draft, 0, target->reg, true);
  for (uint8_t n = 0; n < 3; ++n) out.Use(draft, static_cast<uint8_t>(n + 1), sources[n]);
  out.Finish(*target, false);
  return {};
}

}  // namespace vgpud::soft
