// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace vgpud {
namespace {

using Stats = GpuThread::VfStats;

#define VGPUD_USAGE(name, field, worst, reported)                                                               \
  {                                                                                                             \
    name, [](const Stats& s) -> uint64_t { return s.field; }, [](Stats& s, uint64_t v) { s.field = v; }, worst, \
        reported                                                                                                \
  }

constexpr UsageCounter kCounters[] = {
    VGPUD_USAGE("entitled_ns", account.entitled_ns, false, true),
    VGPUD_USAGE("received_ns", account.received_ns, false, true),
    VGPUD_USAGE("borrowed_ns", account.borrowed_ns, false, true),
    VGPUD_USAGE("unclaimed_ns", account.unclaimed_ns, false, true),
    VGPUD_USAGE("runnable_ns", account.runnable_ns, false, true),
    VGPUD_USAGE("waited_ns", account.waited_ns, false, true),
    VGPUD_USAGE("turns", account.slices, false, true),
    VGPUD_USAGE("forced_preemptions", account.forced_preemptions, false, true),
    VGPUD_USAGE("hangs", account.hangs, false, true),
    VGPUD_USAGE("host_stalls", account.host_stalls, false, true),
    VGPUD_USAGE("overrun_ns", account.overrun_ns, false, true),
    VGPUD_USAGE("worst_overrun_ns", account.worst_overrun_ns, true, false),
    VGPUD_USAGE("kernels", work.kernels, false, true),
    VGPUD_USAGE("warp_instructions", work.warp_instructions, false, true),
    VGPUD_USAGE("executor_preempts", work.executor_preempts, false, false),
};

#define VGPUD_HISTOGRAM(name, field)                                         \
  {                                                                          \
    name, [](const Stats& s) -> const LatencyHistogram& { return s.field; }, \
        [](Stats& s) -> LatencyHistogram& { return s.field; }                \
  }

constexpr UsageHistogram kHistograms[] = {
    VGPUD_HISTOGRAM("overrun_histogram", times.overrun),
    VGPUD_HISTOGRAM("turn_wait_histogram", times.turn_wait),
    VGPUD_HISTOGRAM("wake_wait_histogram", times.wake_wait),
    VGPUD_HISTOGRAM("drain_histogram", latency.drain),
};

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

std::span<const UsageCounter> UsageCounters() { return kCounters; }
std::span<const UsageHistogram> UsageHistograms() { return kHistograms; }

void AddUsage(Stats& total, const Stats& more) {
  for (const UsageCounter& counter : kCounters) {
    const uint64_t a = counter.get(total), b = counter.get(more);
    counter.set(total, counter.worst ? std::max(a, b) : a + b);
  }
  for (const UsageHistogram& histogram : kHistograms) histogram.edit(total).Merge(histogram.get(more));
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

}  // namespace vgpud
