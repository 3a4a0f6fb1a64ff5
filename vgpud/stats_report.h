// SPDX-License-Identifier: Apache-2.0
// One look at everything that is counted: what the statistics and the metrics are made from.
#pragma once

#include <cstdint>
#include <vector>

#include "vgpud/report.h"
#include "vgpud/telemetry.h"

namespace vgpud::daemon {

// Of one GPU.
struct StatsReport {
  GpuThread::Stats gpu;  // of earlier runs, too
  std::vector<VfStatsReport> vfs;
  std::vector<uint64_t> keys;  // of `vfs`, in the windows
  std::vector<Telemetry::Window> windows;
  HistoryKeeper::State history;
  uint64_t traced_turns = 0;
  uint64_t trace_capacity = 0;
  Protections protections;
  std::string gpu_name = {};
  std::vector<GpuRung> rungs = {};
};

}  // namespace vgpud::daemon
