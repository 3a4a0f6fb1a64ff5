// SPDX-License-Identifier: Apache-2.0
// The JSON of the statistics and of the usage report. Fields and their meaning: docs/observability.md.
#pragma once

#include <string>
#include <vector>

#include "vgpud/history/history.h"
#include "vgpud/model/stats_report.h"

namespace vgpud::daemon {

std::string ToJson(const StatsReport& stats);
// Of all GPUs: of one as above, of several {"gpus": [figures of each], "vfs": [of all]}.
std::string ToJson(const std::vector<StatsReport>& gpus);
// A usage report in three parts: what comes before its rows, rows (to be joined with commas; of GPU `gpu`, if there are
// several), what comes after them. Any thread.
std::string ReportHead(const std::string& from, const std::string& to);
std::string ReportRows(const std::vector<History::Day>& days, const std::string& gpu);
std::string ReportTail(const std::string& from, const std::string& to);

}  // namespace vgpud::daemon
