// SPDX-License-Identifier: Apache-2.0
// The lives of VFs: makes them, resets them, makes those again whose vgpud-vf has died, and ends them. Main thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "vgpud/events/chronicle.h"
#include "vgpud/registry/admission.h"
#include "vgpud/registry/outside_turns.h"
#include "vgpud/registry/reply.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_registry.h"
#include "vgpud/registry/vf_store.h"
#include "vgpud/vf/adoption.h"

namespace vgpud::daemon {

class VfLives {
 public:
  // All outlive this. `outlived`: the processes of VFs outlive this vgpud.
  VfLives(EventLoop& loop, const ServedGpus& gpus, VfRegistry& vfs, VfStore& store, const Admission& admission,
          OutsideTurns& outside_turns, const Chronicle& chronicle, bool outlived)
      : loop_(loop),
        gpus_(gpus),
        vfs_(vfs),
        store_(store),
        admission_(admission),
        outside_turns_(outside_turns),
        chronicle_(chronicle),
        outlived_(outlived) {}

  // `by`: who asks, for the chronicle.
  // Makes a VF where Admission has said. Answers when its definition is on the disk, unless the VF is transient.
  void Create(const Admission::Choice& choice, const std::string& by, Reply<VfReport> done);
  // Makes one, or goes on with the processes in `ready`, without looking at limits and without writing it down.
  void Start(VfId id, const Uuid& uuid, const VfSpec& spec, std::optional<Adoption::Ready> ready, Reply<VfReport> done);
  // `force`: one that failed or is lost is made again, with its settings. If that fails it is lost.
  void Reset(const std::string& name, bool force, const std::string& by, Reply<VfReport> done);
  // Ends it for good; gives one that is lost up. `uuid` not empty: only if it is the VF of that UUID, and not another
  // one of its name.
  void Destroy(const std::string& name, const std::string& uuid, const std::string& by, Reply<VfReport> done);
  // It has failed: makes it again, if it outlives vgpud or had no VM. Not twice in a minute.
  void Remake(const std::string& name);
  // vgpud is stopping: ends all. Calls `done` when no VF is left but those whose processes can't be killed.
  void EndAll(std::function<void()> done);

 private:
  // One that failed.
  void MakeAgain(const Vf& vf, Reply<VfReport> done);
  void MakeLostAgain(const std::string& name, Reply<VfReport> done);
  // Of a VF in remaking_ that is not there: lost if it fails.
  void StartAgain(const VfDefinition& definition, Reply<VfReport> done);
  // `for_good`: an operator wants it gone, so that the next one of its name is another VF.
  void End(const std::string& name, bool for_good, Reply<VfReport> done);
  void End(const std::string& name) {
    End(name, false, [](const ApiResult<VfReport>&) {});
  }
  // An event that `by` has caused, if `vf` is there.
  Reply<VfReport> Told(const char* kind, const std::string& by, Reply<VfReport> done) const;
  void OnEnded(VfId id, bool for_good, const Reply<VfReport>& done);
  void MaybeAllEnded();

  EventLoop& loop_;
  const ServedGpus& gpus_;
  VfRegistry& vfs_;
  VfStore& store_;
  const Admission& admission_;
  OutsideTurns& outside_turns_;
  const Chronicle& chronicle_;
  const bool outlived_;
  std::set<VfId> stuck_;            // being ended, and their processes can't be killed
  std::set<std::string> remaking_;  // have failed or were lost, and are being made again
  std::map<std::string, TimePoint> remade_;
  std::function<void()> all_ended_;
};

}  // namespace vgpud::daemon
