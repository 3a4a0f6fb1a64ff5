// SPDX-License-Identifier: Apache-2.0
#include "sched/fairness.h"

#include <algorithm>

namespace vgpud {
namespace {

// What passed between two readings of a counter; 0 if it began anew.
double Between(uint64_t before, uint64_t after) { return static_cast<double>(std::max(before, after) - before); }

}  // namespace

std::optional<std::vector<SharePart>> PartsOfSum(std::vector<SharePart> parts) {
  double received = 0;
  double entitled = 0;
  for (const SharePart& part : parts) {
    received += part.received;
    entitled += part.entitled;
  }
  if (parts.size() < 2 || received <= 0 || entitled <= 0) return std::nullopt;
  for (SharePart& part : parts) {
    part.received /= received;
    part.entitled /= entitled;
  }
  return parts;
}

std::optional<double> JainIndex(std::span<const double> values) {
  double sum = 0;
  double squares = 0;
  for (const double x : values) {
    sum += x;
    squares += x * x;
  }
  if (squares <= 0) return std::nullopt;
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

void FairnessWindow::Add(TimePoint now, std::span<const Sample> vfs) {
  if (!snapshots_.empty() && now - snapshots_.back().at < step_) return;
  snapshots_.push_back({now, {vfs.begin(), vfs.end()}});
  while (snapshots_.size() > 1 && now - snapshots_[1].at >= length_) snapshots_.pop_front();
}

FairnessWindow::Figures FairnessWindow::Judge() const {
  Figures figures;
  if (snapshots_.empty() || snapshots_.back().at - snapshots_.front().at < length_) return figures;
  const Snapshot& from = snapshots_.front();
  const Snapshot& to = snapshots_.back();
  figures.length = to.at - from.at;
  const double busy = kBusy * static_cast<double>(figures.length.count());
  std::vector<SharePart> parts;
  for (const Sample& after : to.vfs) {
    const auto before =
        std::find_if(from.vfs.begin(), from.vfs.end(), [&](const auto& s) { return s.key == after.key; });
    if (before == from.vfs.end() || Between(before->account.runnable_ns, after.account.runnable_ns) < busy) continue;
    parts.push_back({after.key, Between(before->account.received_ns, after.account.received_ns),
                     Between(before->account.entitled_ns, after.account.entitled_ns)});
  }
  const auto of_sum = PartsOfSum(std::move(parts));
  if (!of_sum) return figures;
  figures.parts = *of_sum;
  std::vector<double> ratios;
  for (const SharePart& part : figures.parts)
    if (part.entitled > 0) ratios.push_back(part.received / part.entitled);
  figures.jain = JainIndex(ratios);
  return figures;
}

const SharePart* FairnessWindow::Figures::Of(uint64_t key) const {
  for (const SharePart& part : parts)
    if (part.key == key) return &part;
  return nullptr;
}

}  // namespace vgpud
