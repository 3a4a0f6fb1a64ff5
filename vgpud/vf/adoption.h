// SPDX-License-Identifier: Apache-2.0
// What an earlier vgpud has left of its VFs, at the start of this one: which of it can be gone on with, and an end for
// the rest. Main thread, before anything is served.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/slice_memory.h"
#include "vgpud/gpu/vf_ledger.h"
#include "vgpud/model/definition.h"
#include "vgpud/vf/kept_vf.h"

namespace vgpud::daemon {

class Adoption {
 public:
  struct Ready {
    KeptVf kept;
    SliceMemory slices;
    std::shared_ptr<VfLedger> ledger;
    VfStats past;  // all that was counted
  };
  // Why it cannot be gone on with, and what to do; empty: it can.
  static std::string WhyNot(const KeptVf& kept);
  // `keeper` outlives this; null: nothing was kept.
  Adoption(Keeper* keeper, KeptVfs kept);

  // Waits until nobody is on the GPU, which was taken back from all: then a new scheduler may give it away. Those that
  // are still on it after `limit` are killed, as by a scheduler.
  void AwaitIdle(Ns limit);
  // Why Take would not return anything; empty: it will.
  std::string WhyNot(const VfDefinition& definition) const;
  // The processes of the VF of this definition, if they can be gone on with. If there are some and they cannot, they
  // are ended, which is waited for, with the reason in the log.
  std::optional<Ready> Take(const VfDefinition& definition);
  // Ends what has not been taken: VFs that were transient, or about to be destroyed or made.
  void EndRest();

 private:
  struct Found {
    KeptVf kept;
    std::optional<SliceMemory> slices;
    std::shared_ptr<VfLedger> ledger;
    std::string why_not;     // it can't be gone on with
    std::set<uint64_t> off;  // generations of executors whose channels are switched off
  };
  void End(const std::string& name, const Found& found, const std::string& why);
  static bool OnGpu(const Found& found, bool kill);
  // The channels of those that are on the GPU, where that can be done.
  static void SwitchOff(const std::string& name, Found& found);

  Keeper* const keeper_;
  std::map<std::string, Found> found_;
};

}  // namespace vgpud::daemon
