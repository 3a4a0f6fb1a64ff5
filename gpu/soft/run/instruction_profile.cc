// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/instruction_profile.h"

#include <x86intrin.h>

#include <algorithm>

#include "base/log.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {
namespace {

constexpr int kTries = 1000;

uint64_t LeastTicks() {
  uint64_t least = UINT64_MAX;
  for (int n = 0; n < kTries; ++n) {
    const uint64_t before = Ticks();
    least = std::min(least, Ticks() - before);
  }
  return least;
}

double Percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

uint64_t Ticks() { return __rdtsc(); }

InstructionProfile::InstructionProfile() : clock_ticks_(LeastTicks()) {}

void InstructionProfile::Add(const ProgramCode& code, std::span<const InstructionCount> counts) {
  MutexLock lock(mutex_);
  const size_t known = std::min(counts.size(), code.form_of.size());
  for (size_t n = 0; n < known; ++n) {
    if (counts[n].executed == 0) continue;
    InstructionCount& form = forms_[code.forms[code.form_of[n]]];
    form.executed += counts[n].executed;
    form.ticks += counts[n].ticks;
  }
}

std::vector<InstructionProfile::Row> InstructionProfile::Hottest() const {
  std::vector<Row> rows;
  {
    MutexLock lock(mutex_);
    for (const auto& [form, count] : forms_)
      rows.push_back({form, {count.executed, count.ticks - std::min(count.ticks, count.executed * clock_ticks_)}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.count.ticks > b.count.ticks; });
  return rows;
}

void InstructionProfile::Log(size_t most) const {
  const std::vector<Row> rows = Hottest();
  InstructionCount all;
  for (const Row& row : rows) {
    all.executed += row.count.executed;
    all.ticks += row.count.ticks;
  }
  if (rows.empty()) return;
  LOG(kInfo, "profile: {} warp instructions of {} forms in {} ticks", all.executed, rows.size(), all.ticks);
  for (size_t n = 0; n < std::min(rows.size(), most); ++n) {
    const auto& [form, count] = rows[n];
    LOG(kInfo, "profile: form={} ticks={} executed={} ({:.2f} % of the time, {:.2f} % of the instructions)", form,
        count.ticks, count.executed, Percent(count.ticks, all.ticks), Percent(count.executed, all.executed));
  }
}

}  // namespace vgpud::soft
