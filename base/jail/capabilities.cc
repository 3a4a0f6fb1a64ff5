// SPDX-License-Identifier: Apache-2.0
#include "base/jail/capabilities.h"

#include <fmt/core.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <type_traits>

namespace vgpud {
namespace {

using Caps = std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)>;

bool Has(const Caps& caps, cap_value_t cap, cap_flag_t flag) {
  cap_flag_value_t value = CAP_CLEAR;
  return cap_get_flag(caps.get(), cap, flag, &value) == 0 && value == CAP_SET;
}

}  // namespace

Result<void> KeepCapabilities(std::initializer_list<int> keep) {
  const Caps now{cap_get_proc(), &cap_free};
  const Caps kept{cap_init(), &cap_free};
  if (!now || !kept) return FailErrno("capabilities of this process");
  const bool may_drop_bound = Has(now, CAP_SETPCAP, CAP_EFFECTIVE);
  for (cap_value_t cap = 0; cap <= cap_max_bits() - 1; ++cap) {
    if (std::find(keep.begin(), keep.end(), cap) == keep.end()) {
      if (may_drop_bound && cap_get_bound(cap) == 1 && cap_drop_bound(cap) != 0)
        return FailErrno(fmt::format("capability {} of the bounding set", cap));
    } else if (Has(now, cap, CAP_PERMITTED)) {
      cap_set_flag(kept.get(), CAP_PERMITTED, 1, &cap, CAP_SET);
      cap_set_flag(kept.get(), CAP_EFFECTIVE, 1, &cap, CAP_SET);
    }
  }
  if (cap_reset_ambient() != 0 && errno != EINVAL) return FailErrno("ambient capabilities");
  if (cap_set_proc(kept.get()) != 0) return FailErrno("giving up capabilities");
  return {};
}

std::string EffectiveCapabilities() {
  const Caps now{cap_get_proc(), &cap_free};
  std::string names;
  for (cap_value_t cap = 0; now && cap <= cap_max_bits() - 1; ++cap) {
    if (!Has(now, cap, CAP_EFFECTIVE)) continue;
    const std::unique_ptr<char, int (*)(void*)> name{cap_to_name(cap), &cap_free};
    if (!names.empty()) names += ',';
    names += name ? name.get() : "?";
  }
  return names.empty() ? "none" : names;
}

}  // namespace vgpud
