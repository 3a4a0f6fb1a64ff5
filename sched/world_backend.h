// SPDX-License-Identifier: Apache-2.0
// The verbs that a world switch needs from a GPU. A verb starts something and returns at once; Complete() says when it
// is done. The Switcher is the only caller.
#pragma once

#include <span>

#include "sched/account/felt.h"
#include "sched/types.h"
#include "sched/world_switch.h"

namespace vgpud {

class WorldBackend {
 public:
  virtual ~WorldBackend() = default;

  // No world is on the GPU: the moment at which changes (weights, slices, VFs added and removed) take effect. Returns
  // all VFs in VF order as they are now; valid until the next call.
  virtual std::span<const VfView> TurnBoundary(TimePoint now) = 0;
  // What the programs of `vf` were doing at the last TurnBoundary.
  virtual Activity ActivityOf(VfId) { return {}; }
  // Has `vf`, which is running, anything left to do?
  virtual bool HasWork(VfId vf) = 0;

  virtual void Load(VfId vf) = 0;
  // Lets `vf` run. It stops by itself at `deadline` if it can; TimePoint::max(): a turn that ends without force.
  virtual void Run(VfId vf, TimePoint deadline) = 0;
  // `vf` is on the GPU. May it stay there when its slice is over: nobody else has work, and nothing waits for a turn
  // boundary?
  virtual bool MayStay(VfId) { return false; }
  // The slice of `vf`, which is on the GPU, ends at `end`. `stops`: as with Run; else nobody waits for it, and it need
  // not stop by itself.
  virtual void SetDeadline(VfId, TimePoint /*end*/, bool /*stops*/) {}
  // Starts no further kernel of `vf`; the running one may finish. A backend that cannot do this leaves it out and has
  // Complete(kFinish) answer true at once: the turn then ends by force.
  virtual void Finish(VfId) {}
  virtual void Drain(VfId vf) = 0;
  virtual void Save(VfId vf) = 0;
  // Ends by force whatever of `vf` is still on the GPU.
  virtual void Flr(VfId vf) = 0;
  // Takes `vf` out of the rotation until an operator resets it: TurnBoundary shows it not runnable from now on.
  virtual void Park(VfId vf) = 0;
  // Is the verb of `state` (kLoad, kFinish, kDrain, kSave, kFlr) done for `vf`?
  virtual bool Complete(WsState state, VfId vf) = 0;
  // `vf` was taken off the GPU after its slice had ended: for how long of that time it could not leave because the host
  // gave it no CPU, or had left and was seen late. Asked once, when the turn is over.
  virtual Ns HostDelay(VfId) { return Ns{0}; }
  // The deadline of kDrain passed. Could `vf` not answer for a reason that is not its own: the host gave it no core?
  virtual bool Excused(VfId vf) = 0;
  // The same. Is all of `vf` that has not left without a core, and so does nothing? Then its turn ends without it: as
  // if Complete(kDrain) had answered true.
  virtual bool LeaveBehind(VfId) { return false; }
};

}  // namespace vgpud
