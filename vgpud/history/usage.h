// SPDX-License-Identifier: Apache-2.0
// What a VF has used in all, over restarts of the daemon: the figures that the history keeps. Which of them there are
// is one table, from which the database's columns, the daily report and its JSON are made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vgpud/gpu/gpu_thread.h"

namespace vgpud {

struct UsageCounter {
  const char* name;  // column and JSON field
  uint64_t (*get)(const GpuThread::VfStats&);
  void (*set)(GpuThread::VfStats&, uint64_t);
  bool worst;     // the largest so far; the others are sums
  bool reported;  // per day, too
};
std::span<const UsageCounter> UsageCounters();

struct UsageHistogram {
  const char* name;
  const LatencyHistogram& (*get)(const GpuThread::VfStats&);
  LatencyHistogram& (*edit)(GpuThread::VfStats&);
};
std::span<const UsageHistogram> UsageHistograms();

// `total` becomes the figures of both times together. What is not counted in them (debt) stays.
void AddUsage(GpuThread::VfStats& total, const GpuThread::VfStats& more);

// "SUM MAX BUCKET:COUNT ...", only buckets that are not empty.
std::string ToText(const LatencyHistogram& histogram);
// nullopt: not what ToText writes.
std::optional<LatencyHistogram> HistogramFromText(std::string_view text);

}  // namespace vgpud
