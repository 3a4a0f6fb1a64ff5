// SPDX-License-Identifier: Apache-2.0
// How fairly a stretch of time was shared, judged from accounts alone. Pure: time is an argument.
//
// Judged are the VFs that wanted the GPU all the time, because only for them does the account say what they should have
// had. Of those, `received` and `entitled` are parts of the sum over them, so that time spent on switches or on others
// is nobody's gain or loss. Share error: received - entitled. Jain's index of x = received / entitled:
// (sum x)^2 / (n sum x^2); 1 = all have exactly what they are entitled to, 1/n = one has everything.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sched/account/account.h"
#include "sched/types.h"

namespace vgpud {

struct SharePart {
  uint64_t key = 0;     // whose
  double received = 0;  // ns of the window; as a result: part of the sum, 0..1
  double entitled = 0;
  double error() const { return received - entitled; }
};
// nullopt: fewer than two, or nothing to share: no such thing as fairness.
std::optional<std::vector<SharePart>> PartsOfSum(std::vector<SharePart> parts);
// nullopt: no value above 0.
std::optional<double> JainIndex(std::span<const double> values);

// The latest `length` of time, seen through snapshots of all accounts.
class FairnessWindow {
 public:
  struct Sample {
    uint64_t key = 0;  // one life of one VF: differs from all others that had its number or its name
    VfAccount account;
  };
  // `step`: how far apart snapshots are at least; the window moves in such steps.
  FairnessWindow(Ns length, Ns step) : length_(length), step_(step) {}

  // To be called at least every step with all VFs; what comes earlier is left out.
  void Add(TimePoint now, std::span<const Sample> vfs);

  // A VF with work for at least this part of the window wanted the GPU "all the time": programs that wait for each
  // kernel have gaps of microseconds between them.
  static constexpr double kBusy = 0.99;
  struct Figures {
    Ns length{0};                  // what the window really covers, length..length + step; 0: too short a time so far
    std::optional<double> jain;    // nullopt: fewer than two busy VFs
    std::vector<SharePart> parts;  // of the busy VFs, empty if fewer than two
    const SharePart* Of(uint64_t key) const;
  };
  Figures Judge() const;

 private:
  struct Snapshot {
    TimePoint at{};
    std::vector<Sample> vfs;
  };
  const Ns length_;
  const Ns step_;
  std::deque<Snapshot> snapshots_;  // the first is the start of the window, if it is old enough
};

}  // namespace vgpud
