// SPDX-License-Identifier: Apache-2.0
// The definitions of VFs on the disk. A definition is written before an answer says so, and made a VF again at the next
// start (restoration.h); a VF that could not be made of it is lost (lost_vfs.h). Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vgpud/model/definition.h"
#include "vgpud/model/report.h"
#include "vgpud/registry/lost_vfs.h"
#include "vgpud/registry/reply.h"
#include "vgpud/state/state_keeper.h"

namespace vgpud::daemon {

class VfStore {
 public:
  using Done = std::function<void(const Result<void>&)>;
  // `outlived`: processes of VFs outlive this vgpud. `lost` and `replies` outlive this.
  VfStore(const std::string& state_dir, bool outlived, LostVfs& lost, TaskQueue& replies);

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
  // What the disk has of a lost VF now; of one that was never kept, what is known of it. `done` on this thread.
  void Reread(const std::string& name, Reply<VfDefinition> done);
  // The VF is gone for good, or was lost. Answers with what is known of it when the disk has it.
  void Forget(const std::string& name, Reply<VfReport> done);
  // Whatever there may be of a definition that could not be written, or of a VF that is not kept any more.
  void RemoveRest(const std::string& name);
  // When all that was answered is on the disk.
  void WhenIdle(std::function<void()> done) { files_.WhenIdle(std::move(done)); }
  // Gives up what the disk has not taken within `limit`.
  void Leave(Ns limit) { files_.Leave(limit); }

  // It could not be made of its definition: it is lost, and the definition stays.
  void Lose(const VfDefinition& definition, const std::string& why);

 private:
  std::string Path(const std::string& name) const;
  // The definition that a file of that name should have.
  static ApiResult<VfDefinition> Parse(const std::string& name, const Result<std::string>& text);

  const std::string directory_;
  const bool outlived_;
  LostVfs& lost_;
  StateKeeper files_;
};

}  // namespace vgpud::daemon
