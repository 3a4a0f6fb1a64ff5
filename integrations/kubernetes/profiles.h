// SPDX-License-Identifier: Apache-2.0
// What vgpud says of a profile, from its answer to GET /v1/profiles. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpud::kubernetes {

// Nothing when there is no such profile, or vgpud did not say.
[[nodiscard]] std::optional<int> WeightOfProfile(const std::string& profiles, const std::string& name);
[[nodiscard]] std::optional<uint64_t> VramOfProfile(const std::string& profiles, const std::string& name);

}  // namespace vgpud::kubernetes
