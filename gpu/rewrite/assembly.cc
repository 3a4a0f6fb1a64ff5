// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/assembly.h"

namespace vgpud::rewrite {

std::optional<std::string> FreshPrefix(std::string_view text) {
  constexpr int kMostTries = 64;
  std::string prefix = "vgpud_";
  for (int i = 1; i < kMostTries; ++i) {
    if (text.find(prefix) == text.npos) return prefix;
    prefix = fmt::format("vgpud{}_", i);
  }
  return std::nullopt;
}

std::string Assembly::Named(std::string_view pattern) const {
  std::string out;
  for (const char c : pattern) c == '$' ? out.append(prefix_) : out.append(1, c);
  return out;
}

}  // namespace vgpud::rewrite
