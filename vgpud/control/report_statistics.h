// SPDX-License-Identifier: Apache-2.0
// All figures of a VF that clients see: in statistics, in metrics, or in both.
#pragma once

#include <functional>
#include <vector>

#include "vgpud/model/stats_report.h"
#include "vgpud/model/vf_statistics.h"

namespace vgpud::daemon {

struct ReportStatistic {
  Statistic about;
  std::function<uint64_t(const VfStatsReport&)> get;
};
// The scheduler thread's (VfStatistics) first.
const std::vector<ReportStatistic>& ReportStatistics();

}  // namespace vgpud::daemon
