// SPDX-License-Identifier: Apache-2.0
// The figures that the scheduler thread keeps of a VF, as one table: what is counted is counted, shown, measured and
// kept by it.
#pragma once

#include <span>

#include "sched/statistic.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

struct VfStatistic {
  Statistic about;
  uint64_t (*get)(const VfStats&);
  void (*set)(VfStats&, uint64_t);
};
// Those of the account (sched/account.h) first.
std::span<const VfStatistic> VfStatistics();

// `total` becomes the figures of both times together, all that only grow.
void AddFigures(VfStats& total, const VfStats& more);

struct VfHistogram {
  const char* name;    // in statistics, before "_p50_us" and so on
  const char* metric;  // after "vgpud_vf_"
  const char* help;
  const char* column;  // of the usage history
  const LatencyHistogram& (*get)(const VfStats&);
  LatencyHistogram& (*edit)(VfStats&);
};
std::span<const VfHistogram> VfHistograms();

}  // namespace vgpud::daemon
