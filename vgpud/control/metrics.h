// SPDX-License-Identifier: Apache-2.0
// All figures in the Prometheus text format. Names, units and meanings: docs/observability.md.
#pragma once

#include <string>
#include <vector>

#include "vgpud/model/stats_report.h"

namespace vgpud::daemon {

std::string MetricsText(const StatsReport& stats);
// Of all GPUs. With several each sample has a label gpu.
std::string MetricsText(const std::vector<StatsReport>& gpus);

}  // namespace vgpud::daemon
