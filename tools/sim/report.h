// SPDX-License-Identifier: Apache-2.0
// What a simulation prints.
#pragma once

#include <span>
#include <string>

#include "tools/sim/simulation.h"

namespace vgpud::tools {

// The columns of `vgpuctl stats --total` and those that only a simulation knows; then one line per policy.
std::string OutcomeTables(std::span<const Outcome> outcomes);
// The same figures, for programs. Names as in the control API's statistics where they are the same figure.
std::string OutcomeJson(std::span<const Outcome> outcomes, uint64_t seed);

}  // namespace vgpud::tools
