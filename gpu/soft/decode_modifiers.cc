#include <algorithm>
#include <iterator>

#include "gpu/soft/function_decoder.h"

namespace vgpud::soft {
namespace {

struct SpaceName {
  std::string_view name;
  ptx::Space space;
};
constexpr SpaceName kSpaces[] = {
    {"global", ptx::Space::kGlobal},      {"const", ptx::Space::kConst},       {"shared", ptx::Space::kShared},
    {"shared::cta", ptx::Space::kShared}, {"local", ptx::Space::kLocal},       {"param", ptx::Space::kParam},
    {"param::entry", ptx::Space::kParam}, {"param::func", ptx::Space::kParam},
};

}  // namespace

bool HasModifier(const ptx::Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

ptx::Type LastType(const ptx::Instruction& i) {
  for (auto m = i.modifiers.rbegin(); m != i.modifiers.rend(); ++m) {
    const ptx::Type t = ptx::TypeFromName(*m);
    if (t != ptx::Type::kNone) return t;
  }
  return ptx::Type::kNone;
}

ptx::Type FirstType(const ptx::Instruction& i) {
  for (const std::string_view m : i.modifiers) {
    const ptx::Type t = ptx::TypeFromName(m);
    if (t != ptx::Type::kNone) return t;
  }
  return ptx::Type::kNone;
}

SlotClass ClassOf(ptx::Type type) {
  if (type == ptx::Type::kPred) return SlotClass::kPredicate;
  return ptx::SizeOf(type) > 4 ? SlotClass::k64 : SlotClass::k32;
}

ptx::Space SpaceOf(const ptx::Instruction& i) {
  for (const std::string_view m : i.modifiers)
    for (const SpaceName& s : kSpaces)
      if (s.name == m) return s.space;
  return ptx::Space::kGeneric;
}

bool IsSpaceModifier(std::string_view modifier) {
  return std::any_of(std::begin(kSpaces), std::end(kSpaces), [&](const SpaceName& s) { return s.name == modifier; });
}

bool IsSigned(ptx::Type type) { return type == ptx::Type::kS8 || type == ptx::Type::kS16 || type == ptx::Type::kS32; }

}  // namespace vgpud::soft
