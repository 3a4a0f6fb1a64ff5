// SPDX-License-Identifier: Apache-2.0
// The definitions of VFs on the disk, and the VFs that are lost: those that could not be made of theirs. A definition
// is written before an answer says so, and made a VF again at the next start (restoration.h). Main thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vgpud/model/definition.h"
#include "vgpud/model/report.h"
#include "vgpud/registry/reply.h"
#include "vgpud/state/state_keeper.h"

namespace vgpud::daemon {

class VfStore {
 public:
  using Done = std::function<void(const Result<void>&)>;
  // `outlived`: processes of VFs outlive this vgpud. `replies` outlives this.
  VfStore(const std::string& state_dir, bool outlived, TaskQueue& replies);

  // Reads what earlier vgpuds left, once, before anything else here. Waits for the disk, for a while. Those that can't
  // be read are lost.
  std::vector<VfDefinition> Open();
  // Why nothing can be kept; empty: it can.
  const std::string& problem() const { return files_.problem(); }
  // Is such a VF written down? One that ends with its domain only where its processes outlive vgpud.
  bool Keeps(const VfSpec& spec) const;
  // `done`, once, when the disk has it, or why not.
  void Keep(const VfDefinition& definition, Done done);
  // All of them; an error is that of one of them.
  void Keep(const std::vector<VfDefinition>& definitions, Done done);
  // The VF is gone for good, or was lost. Answers with what is known of it when the disk has it.
  void Forget(const std::string& name, Reply<VfReport> done);
  // Whatever there may be of a definition that could not be written, or of a VF that is not kept any more.
  void RemoveRest(const std::string& name);
  // When all that was answered is on the disk.
  void WhenIdle(std::function<void()> done) { files_.WhenIdle(std::move(done)); }
  // Gives up what the disk has not taken within `limit`.
  void Leave(Ns limit) { files_.Leave(limit); }

  // --- lost VFs: listed with the reason, their definitions kept, until somebody destroys them ---
  void Lose(const std::string& name, const std::string& uuid, const std::string& why, const VfSpec& spec = {});
  bool IsLost(const std::string& name) const { return lost_.contains(name); }
  size_t lost() const { return lost_.size(); }
  // One that is lost.
  VfReport ReportLost(const std::string& name) const;
  std::vector<VfReport> ReportLost() const;
  // What they had, as far as it is known.
  std::vector<VfSpec> LostSpecs() const;

 private:
  std::string Path(const std::string& name) const;

  struct Lost {
    std::string uuid;  // as far as it is known
    std::string why;
    VfSpec spec = {};  // as far as it is known
  };
  const std::string directory_;
  const bool outlived_;
  StateKeeper files_;
  std::map<std::string, Lost> lost_;  // by name
};

}  // namespace vgpud::daemon
