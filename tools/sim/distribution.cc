// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/distribution.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"

namespace vgpud::tools {
namespace {

constexpr double kP99OfStandardNormal = 2.3263478740408408;

Ns Clamped(double ns) {
  return Ns{static_cast<int64_t>(std::clamp(ns, 0.0, static_cast<double>(Distribution::kLongest.count())))};
}
double AsDouble(Ns t) { return static_cast<double>(t.count()); }

}  // namespace

Distribution Distribution::Uniform(Ns low, Ns high) { return {Kind::kUniform, AsDouble(low), AsDouble(high)}; }
Distribution Distribution::Exponential(Ns mean) { return {Kind::kExponential, AsDouble(mean), 0}; }
Distribution Distribution::LogNormal(Ns median, Ns p99) {
  const double mu = std::log(AsDouble(median));
  return {Kind::kLogNormal, mu, (std::log(AsDouble(p99)) - mu) / kP99OfStandardNormal};
}

Distribution Distribution::Samples(std::span<const Ns> lengths) {
  CHECK(!lengths.empty());
  Distribution measured{Kind::kSamples, 0, 0};
  auto list = std::make_shared<std::vector<double>>();
  for (const Ns length : lengths) list->push_back(AsDouble(length));
  measured.lengths_ = std::move(list);
  return measured;
}

Ns Distribution::Sample(Random& random) const {
  switch (kind_) {
    case Kind::kFixed:
      return Clamped(a_);
    case Kind::kUniform:
      return Clamped(a_ + (b_ - a_) * random.Unit());
    case Kind::kExponential:
      return Clamped(-a_ * std::log(random.Unit()));
    case Kind::kSamples:
      return Clamped((*lengths_)[static_cast<size_t>(random.Unit() * static_cast<double>(lengths_->size()))]);
    case Kind::kLogNormal:
      break;
  }
  const double radius = std::sqrt(-2 * std::log(random.Unit()));  // Box-Muller
  return Clamped(std::exp(a_ + b_ * radius * std::cos(2 * std::numbers::pi * random.Unit())));
}

Ns Distribution::Mean() const {
  if (kind_ == Kind::kUniform) return Clamped((a_ + b_) / 2);
  if (kind_ == Kind::kLogNormal) return Clamped(std::exp(a_ + b_ * b_ / 2));
  if (kind_ == Kind::kSamples)
    return Clamped(std::accumulate(lengths_->begin(), lengths_->end(), 0.0) / static_cast<double>(lengths_->size()));
  return Clamped(a_);
}

}  // namespace vgpud::tools
