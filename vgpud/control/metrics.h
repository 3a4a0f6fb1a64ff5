// SPDX-License-Identifier: Apache-2.0
// All figures in the Prometheus text format. Names, units and meanings: docs/observability.md.
#pragma once

#include <string>

#include "vgpud/stats_report.h"

namespace vgpud::daemon {

std::string MetricsText(const StatsReport& stats);

}  // namespace vgpud::daemon
