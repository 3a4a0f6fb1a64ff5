// The JSON of the statistics and of the usage report. Fields and their meaning: docs/observability.md.
#pragma once

#include <string>
#include <vector>

#include "vgpud/stats_report.h"

namespace vgpud {

std::string ToJson(const StatsReport& stats);
std::string ToJson(const std::string& from, const std::string& to, const std::vector<History::Day>& days);

}  // namespace vgpud
