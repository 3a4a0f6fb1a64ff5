// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine and with every compiler (the distributions of <random> are not).
#pragma once

#include <cstdint>

namespace vgpud::tools {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  // Streams of the same seed are independent of each other.
  Random(uint64_t seed, uint64_t stream) : state_(seed * 0x9e3779b97f4a7c15u + stream * 0xd1342543de82ef95u) { Next(); }
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In (0, 1): never 0, so that its logarithm exists.
  double Unit() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace vgpud::tools
