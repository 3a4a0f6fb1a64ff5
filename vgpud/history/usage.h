// SPDX-License-Identifier: Apache-2.0
// What a VF has used in all, over restarts of the daemon: the figures that the history keeps. The database's columns,
// the daily report and its JSON are made from the table of all figures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vgpud/model/vf_statistics.h"

namespace vgpud::daemon {

// The rows of VfStatistics that have a column.
std::span<const VfStatistic* const> UsageStatistics();

// `format` for each of these columns, one after the other, and, if so wished, for those of the histograms.
std::string UsageColumns(const char* format, bool histograms);

// What ON CONFLICT does with each of these columns: adds what is new, or takes the worst.
std::string AddedColumns();

// `total` becomes the figures of both times together. What is not counted in them (debt) stays.
void AddUsage(VfStats& total, const VfStats& more);

// "SUM MAX BUCKET:COUNT ...", only buckets that are not empty.
std::string ToText(const LatencyHistogram& histogram);
// nullopt: not what ToText writes.
std::optional<LatencyHistogram> HistogramFromText(std::string_view text);

}  // namespace vgpud::daemon
