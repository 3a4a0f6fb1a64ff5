// SPDX-License-Identifier: Apache-2.0
// What a simulation is judged by: lag against its bound, share errors over windows, Jain's index, worst wait.
#pragma once

#include <functional>
#include <vector>

#include "sched/account/account.h"
#include "sched/policy.h"
#include "sched/trace.h"
#include "tools/sim/sim_world.h"

namespace vgpud::tools {

class Meter {
 public:
  // Judged only over times in which they make sense: shares of VFs that had work without a break.
  struct VfFigures {
    double share_error_1s = 0;   // worst |share received - share entitled| of a window
    double share_error_60s = 0;  // shares among the VFs that had work all through the window
    double worst_lag = 0;        // |service - entitled service| in parts of its bound; -1: never judged
  };

  // `judge_lag`: is the policy one whose shares are its slices, so that the bound is known?
  Meter(const SimWorld& world, const Policy& policy, bool judge_lag);

  void DemandChanged() { stale_ = true; }
  void TurnBegins(VfId vf);
  void TurnEnds(const SliceRecord& turn, Ns overrun);
  // A second is over, `index` of them since the start.
  void Second(const Account& account, TimePoint now, uint64_t index);

  const VfFigures& Of(VfId vf) const { return figures_[Raw(vf)]; }
  // Of shares received over shares entitled, windows of 1 s; -1 when no window had two VFs that always had work.
  double Jain() const;

 private:
  struct Window {
    Ns length;
    double VfFigures::*error;
    std::vector<VfAccount> before;  // accounts at its start, by VF number
  };
  struct Service {
    Ns total{0};  // all turns so far
    Ns base{0};   // of it, before this span
    uint64_t span = 0;
    double share = 0;
    double bound = 0;  // without overruns
    double others = 0;
  };
  void NewSpan();
  void Judge(VfId vf);
  void Close(Window& window, const Account& account, TimePoint now, bool for_jain);

  const SimWorld& world_;
  const Policy& policy_;
  const bool judge_lag_;
  std::vector<VfFigures> figures_;
  std::vector<Service> service_;
  std::vector<uint64_t> shares_;
  std::vector<double> received_, entitled_;  // sums of shares over the windows of 1 s
  Window second_, minute_;
  bool stale_ = true;
  uint64_t span_ = 0;  // time in which the same VFs have work and nothing is changed
  Ns all_{0};          // service of all VFs, and of it before this span
  Ns all_base_{0};
  double worst_overrun_ = 0;
};

}  // namespace vgpud::tools
