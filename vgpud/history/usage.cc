// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace vgpud::daemon {
namespace {

// Takes a number and one `after` it, if any, off the front of `text`.
bool TakeNumber(std::string_view& text, char after, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return true;
  if (text.front() != after) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::span<const VfStatistic* const> UsageStatistics() {
  static const std::vector<const VfStatistic*> kept = [] {
    std::vector<const VfStatistic*> rows;
    for (const VfStatistic& row : VfStatistics())
      if (row.about.column != nullptr) rows.push_back(&row);
    return rows;
  }();
  return kept;
}

std::string UsageColumns(const char* format, bool histograms) {
  std::string text;
  for (const VfStatistic* row : UsageStatistics()) text += fmt::format(fmt::runtime(format), row->about.column);
  if (histograms)
    for (const VfHistogram& histogram : VfHistograms()) text += fmt::format(fmt::runtime(format), histogram.column);
  return text;
}

std::string AddedColumns() {
  std::string text;
  for (const VfStatistic* row : UsageStatistics())
    text +=
        fmt::format(fmt::runtime(row->about.worst ? "{0}{1} = max({1}, excluded.{1})" : "{0}{1} = {1} + excluded.{1}"),
                    text.empty() ? "" : ", ", row->about.column);
  return text;
}

void AddUsage(VfStats& total, const VfStats& more) {
  for (const VfStatistic* row : UsageStatistics()) {
    const uint64_t a = row->get(total), b = row->get(more);
    row->set(total, row->about.worst ? std::max(a, b) : a + b);
  }
  for (const VfHistogram& histogram : VfHistograms()) histogram.edit(total).Merge(histogram.get(more));
}

std::string ToText(const LatencyHistogram& histogram) {
  std::string text = fmt::format("{} {}", histogram.sum_ns(), histogram.max_ns());
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
    if (histogram.buckets()[i] != 0) text += fmt::format(" {}:{}", i, histogram.buckets()[i]);
  return text;
}

std::optional<LatencyHistogram> HistogramFromText(std::string_view text) {
  uint64_t sum = 0, max = 0;
  if (!TakeNumber(text, ' ', &sum) || !TakeNumber(text, ' ', &max)) return std::nullopt;
  std::array<uint64_t, LatencyHistogram::kBuckets> buckets{};
  while (!text.empty()) {
    uint64_t bucket = 0, count = 0;
    if (!TakeNumber(text, ':', &bucket) || bucket >= buckets.size() || !TakeNumber(text, ' ', &count))
      return std::nullopt;
    buckets[bucket] = count;
  }
  return LatencyHistogram::From(buckets, sum, max);
}

}  // namespace vgpud::daemon
