// SPDX-License-Identifier: Apache-2.0
// The GPU that a PTX text or an entry of a fat binary was made for.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace vgpud::ptx {

struct Target {
  uint32_t sm = 0;  // sm_90 -> 90
  // Who else can run it (PTX ISA, ".target"): all later capabilities, those of its family, none.
  enum class Reach : uint8_t { kLater, kFamily, kExact } reach = Reach::kLater;

  bool operator==(const Target&) const = default;
};

// Does a device of capability `sm` run it? A family is what has the same first digits: sm_100f runs on 10.0 and 10.3.
inline bool RunsOn(const Target& target, uint32_t sm) {
  if (target.reach == Target::Reach::kExact) return target.sm == sm;
  if (target.reach == Target::Reach::kFamily) return target.sm / 10 == sm / 10 && target.sm <= sm;
  return target.sm <= sm;
}

// As it is written: "sm_90a".
inline std::string NameOf(const Target& target) {
  const char* suffix = target.reach == Target::Reach::kExact ? "a" : target.reach == Target::Reach::kFamily ? "f" : "";
  return fmt::format("sm_{}{}", target.sm, suffix);
}

}  // namespace vgpud::ptx
