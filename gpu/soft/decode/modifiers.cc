// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/modifiers.h"

#include <algorithm>
#include <iterator>

namespace vgpud::soft {
namespace {

struct SpaceName {
  std::string_view name;
  ptx::Space space;
};
constexpr SpaceName kSpaces[] = {
    {"global", ptx::Space::kGlobal},
    {"const", ptx::Space::kConst},
    {"shared", ptx::Space::kShared},
    {"shared::cta", ptx::Space::kShared},
    {"shared::cluster", ptx::Space::kSharedCluster},
    {"local", ptx::Space::kLocal},
    {"param", ptx::Space::kParam},
    {"param::entry", ptx::Space::kParam},
    {"param::func", ptx::Space::kParam},
};

// Instructions whose rows do not name all their modifiers: what there may be beside types and state spaces. A word
// stands for itself and for what begins with it and "::".
struct AllowedModifiers {
  std::string_view opcode;
  std::string_view words;
};
constexpr AllowedModifiers kAllowed[] = {
    {"applypriority", "L2"},
    {"atom",
     "add min max inc dec and or xor exch cas v2 v4 v8 noftz relaxed acquire release acq_rel cta cluster gpu sys L2"},
    {"bra", "uni"},
    {"brx", "idx uni"},
    {"call", "uni"},
    {"createpolicy", "range fractional cvt L2"},
    {"cvta", "to"},
    {"discard", "L2"},
    {"fence", "sc acq_rel acquire release cta cluster gpu sys proxy mbarrier_init sync_restrict async alias tensormap"},
    {"isspacep", ""},
    {"multimem",
     "ld_reduce st red weak relaxed acquire release cta cluster gpu sys add min max and or xor v2 v4 v8 acc"},
    {"prefetch", "L1 L2 tensormap"},
    {"prefetchu", "L1"},
    {"red", "add min max inc dec and or xor v2 v4 v8 noftz relaxed release cta cluster gpu sys L2 async mbarrier"},
    {"ret", "uni"},
};

bool IsWordOf(std::string_view words, std::string_view word) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

bool ModifiersAreKnown(const ptx::Instruction& i) {
  const auto* allowed = std::find_if(std::begin(kAllowed), std::end(kAllowed),
                                     [&](const AllowedModifiers& a) { return a.opcode == i.opcode; });
  if (allowed == std::end(kAllowed)) return true;
  return std::all_of(i.modifiers.begin(), i.modifiers.end(), [&](std::string_view m) {
    return IsWordOf(allowed->words, m.substr(0, m.find("::"))) || ptx::TypeFromName(m) != ptx::Type::kNone ||
           IsSpaceModifier(m);
  });
}

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
