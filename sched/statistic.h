// SPDX-License-Identifier: Apache-2.0
// What is said of a VF's figure, wherever it is shown: one row for the statistics, the simulator, the metrics, the
// usage history and the daily report.
#pragma once

namespace vgpud {

struct Statistic {
  const char* name = nullptr;    // in statistics and in what the simulator writes; nullptr: in neither
  const char* metric = nullptr;  // after "vgpud_vf_"; nullptr: no metric
  const char* help = nullptr;    // of the metric
  const char* column = nullptr;  // of the usage history and the daily report; nullptr: not kept
  bool ns = false;               // nanoseconds, seconds in metrics; the others are plain numbers
  bool gauge = false;            // may fall
  bool worst = false;            // the largest so far; other columns are sums
  bool reported = true;          // a column: per day, too
};

}  // namespace vgpud
