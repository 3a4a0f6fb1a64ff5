// SPDX-License-Identifier: Apache-2.0
// Random lengths of time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "tools/sim/random.h"

namespace vgpud::tools {

class Distribution {
 public:
  static constexpr Ns kLongest = std::chrono::hours{24 * 3650};  // no sample is longer

  // Always `length`.
  static Distribution Fixed(Ns length) { return {Kind::kFixed, static_cast<double>(length.count()), 0}; }
  // Evenly between `low` and `high`.
  static Distribution Uniform(Ns low, Ns high);
  static Distribution Exponential(Ns mean);
  // Log-normal, by its median and the length that one sample in a hundred exceeds (p99 >= median > 0).
  static Distribution LogNormal(Ns median, Ns p99);
  // As measured: one of `lengths`, of which there is one at least, each as likely as the others.
  static Distribution Samples(std::span<const Ns> lengths);

  Ns Sample(Random& random) const;
  Ns Mean() const;
  bool fixed() const { return kind_ == Kind::kFixed; }

 private:
  enum class Kind : uint8_t { kFixed, kUniform, kExponential, kLogNormal, kSamples };
  Distribution(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  Kind kind_;
  double a_;                                            // length | low | mean | logarithm of the median
  double b_;                                            // - | high | - | standard deviation of the logarithm
  std::shared_ptr<const std::vector<double>> lengths_;  // of kSamples
};

}  // namespace vgpud::tools
