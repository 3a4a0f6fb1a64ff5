// SPDX-License-Identifier: Apache-2.0
// The start of a vgpud: makes the VFs again that were there when the last one ended, or goes on with their processes.
// One that cannot be made is lost (vf_store.h). Main thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "vgpud/registry/vf_lives.h"

namespace vgpud::daemon {

class Restoration : public std::enable_shared_from_this<Restoration> {
 public:
  // What it works with; all of it outlives this. `keeper`: null, if VFs end with vgpud.
  struct Parts {
    EventLoop& loop;
    Keeper* keeper;
    const ServedGpus& gpus;
    const VfRegistry& vfs;
    VfStore& store;
    const VfLimits& limits;
    const Admission& admission;
    VfLives& lives;
    const Chronicle& chronicle;
  };
  // Once, before anything else; calls `done` when each VF is there or lost. `kept`: the processes that are there.
  static void Begin(const Parts& parts, KeptVfs kept, std::function<void()> done);

 private:
  Restoration(const Parts& parts, KeptVfs kept, std::function<void()> done);
  void Begin();
  void MakeNext();
  void Make(const VfDefinition& definition);
  void Make(const VfDefinition& definition, std::function<void()> done);

  const Parts parts_;
  std::function<void()> done_;
  Adoption adoption_;
  std::vector<VfDefinition> anew_;  // whose processes are not there; the next one last
  size_t starting_ = 0;
  size_t all_ = 0;
};

}  // namespace vgpud::daemon
