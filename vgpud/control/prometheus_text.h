// SPDX-License-Identifier: Apache-2.0
// Writes the Prometheus text format (version 0.0.4, "exposition formats"): families in order, each with its HELP and
// TYPE line, label values escaped.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sched/latency_histogram.h"

namespace vgpud::daemon {

class PrometheusText {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // Begins a family; what follows belongs to it. `type`: counter, gauge or histogram.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  void Sample(const Labels& labels, uint64_t value);
  void Sample(const Labels& labels, double value);
  // Nanoseconds as seconds, exactly.
  void Seconds(const Labels& labels, uint64_t ns);
  // In seconds; a bucket for each power of two from about a microsecond to about a second.
  void Histogram(const Labels& labels, const LatencyHistogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace vgpud::daemon
