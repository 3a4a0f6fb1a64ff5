// SPDX-License-Identifier: Apache-2.0
// The GPUs that the daemon serves, in the order of the configuration: at least one. Main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vgpud/model/api_error.h"
#include "vgpud/registry/served_gpu.h"

namespace vgpud::daemon {

class ServedGpus {
 public:
  // With no VFs. `around`: its configuration is resolved. Error: a policy can't be made of its settings.
  [[nodiscard]] static Result<std::unique_ptr<ServedGpus>> Make(const DaemonParts& around,
                                                                const ServedGpu::Events& events);

  const std::vector<std::unique_ptr<ServedGpu>>& all() const { return gpus_; }
  ServedGpu& first() const { return *gpus_.front(); }
  bool several() const { return gpus_.size() > 1; }
  std::vector<std::string> names() const;
  // "gpu0, gpu1"
  std::string names_text() const;
  // By name. No name: the only one; where there are several the error names them.
  ApiResult<ServedGpu*> Find(const std::string& name) const;
  // The GPU that this VF is on.
  ServedGpu& Of(const Vf& vf) const;
  // The UUID of a new VF of this name on `gpu`: that of the VF that was there, or on another GPU, when the last daemon
  // ended, else a random one.
  Uuid UuidFor(const std::string& vf, const ServedGpu& gpu) const;

  // Calls `done` when every scheduler thread has done something after this call.
  void AskSchedulers(std::function<void()> done);
  // Brings the histories of all GPUs up to date.
  void RefreshHistories(std::function<void()> done);
  // The daemon is about to end: calls `done` when all histories are written, or after a while.
  void FinishHistories(std::function<void()> done);
  // When the last VF is gone: no more turns.
  void EndThreads();
  // Closes the histories; waits at most so long for each.
  void LeaveHistories(Ns limit);

 private:
  ServedGpus() = default;
  std::vector<std::unique_ptr<ServedGpu>> gpus_;
};

}  // namespace vgpud::daemon
