// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/prometheus_text.h"

#include <fmt/core.h>

namespace vgpud::daemon {
namespace {

constexpr size_t kFirstEdge = 1'024;         // ns, below it is one bucket
constexpr size_t kLastEdge = 1'073'741'824;  // ns, above it is +Inf

std::string Escaped(std::string_view text, bool label) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || (label && c == '"')) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string InSeconds(uint64_t ns) { return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000); }

}  // namespace

void PrometheusText::Family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escaped(help, false), name, type);
}

void PrometheusText::Line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_ += name_;
  text_ += suffix;
  for (size_t i = 0; i < labels.size(); ++i)
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, Escaped(labels[i].second, true));
  text_ += labels.empty() ? " " : "} ";
  text_ += value;
  text_ += '\n';
}

void PrometheusText::Sample(const Labels& labels, uint64_t value) { Line("", labels, fmt::format("{}", value)); }
void PrometheusText::Sample(const Labels& labels, double value) { Line("", labels, fmt::format("{}", value)); }
void PrometheusText::Seconds(const Labels& labels, uint64_t ns) { Line("", labels, InSeconds(ns)); }

void PrometheusText::Histogram(const Labels& labels, const LatencyHistogram& histogram) {
  Labels with_edge = labels;
  with_edge.emplace_back("le", "");
  uint64_t below = 0;
  for (size_t i = 0; i + 1 < LatencyHistogram::kBuckets; ++i) {
    below += histogram.buckets()[i];
    const uint64_t edge = LatencyHistogram::UpperNs(i);
    if ((edge & (edge - 1)) != 0 || edge < kFirstEdge || edge > kLastEdge) continue;
    const std::string text = fmt::format("{}", static_cast<double>(edge) / 1e9);
    with_edge.back().second = text;
    Line("_bucket", with_edge, fmt::format("{}", below));
  }
  with_edge.back().second = "+Inf";
  Line("_bucket", with_edge, fmt::format("{}", histogram.count()));
  Line("_sum", labels, InSeconds(histogram.sum_ns()));
  Line("_count", labels, fmt::format("{}", histogram.count()));
}

}  // namespace vgpud::daemon
