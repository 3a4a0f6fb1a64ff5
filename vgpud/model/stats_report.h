// SPDX-License-Identifier: Apache-2.0
// One look at everything that is counted: what the statistics and the metrics are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/fairness.h"
#include "vgpud/model/report.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

struct VfStatsReport {
  VfReport vf;
  VfStats stats;
  uint64_t cpu_outside_turns_ns = 0;  // since it was created, at least
  VfRecent recent = {};
};
// How the GPU was shared during the last second or minute.
struct FairnessReport {
  const char* name;  // "1s"
  FairnessWindow::Figures figures;
};
// How the usage history is.
struct HistoryState {
  const char* name = "off";  // on; failing: it is tried again; off: until vgpud is restarted
  std::string error;         // empty: none
  std::string path;
  uint64_t lost_vfs = 0;  // given up: what they had used since the last write is in no report
};
// Of one GPU.
struct StatsReport {
  GpuStats gpu;  // of earlier runs, too
  std::vector<VfStatsReport> vfs;
  std::vector<uint64_t> keys;  // of `vfs`, in the windows
  std::vector<FairnessReport> windows;
  GpuRecent recent;
  HistoryState history;
  uint64_t traced_turns = 0;
  uint64_t trace_capacity = 0;
  GpuReport about = {};
};

}  // namespace vgpud::daemon
