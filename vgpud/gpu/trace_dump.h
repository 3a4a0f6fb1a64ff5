// SPDX-License-Identifier: Apache-2.0
// The last turns of a GPU as a Chrome trace, made piece by piece while the scheduler thread goes on appending. Main
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/chrome_trace.h"
#include "sched/trace.h"
#include "vgpud/model/vf_domain.h"

namespace vgpud::daemon {

// Whose VF number it was, and when: numbers are used again.
struct Tenure {
  VfId vf{};
  std::string name;
  TimePoint from{};
  TimePoint until = TimePoint::max();
  VfDomain domain = {};
};

class TraceDump {
 public:
  // All turns that end after `zero`, up to those that are over now. `first`: sequence of the first of them, or an
  // earlier one; if the trace no longer holds it, those between are reported as lost. `trace` outlives this.
  TraceDump(const SliceTrace& trace, const std::string& gpu, std::vector<Tenure> tenures, TimePoint zero,
            uint64_t first);
  // Appends the next part of the JSON, some 100 KB; false: that was the last.
  bool Next(std::string* piece);

 private:
  VfId RowOf(const SliceRecord& record) const;
  void CountLost(const SliceRecord& next);

  const std::vector<Tenure> tenures_;
  const uint64_t end_;
  uint64_t next_;
  SliceTrace::Reader reader_;
  std::string* piece_ = nullptr;
  std::string head_;
  ChromeTrace chrome_;
};

}  // namespace vgpud::daemon
