// SPDX-License-Identifier: Apache-2.0
// The VFs of all GPUs: builds what makes, changes, ends and describes them, and wires it. Whoever uses it takes the
// part that he needs. Main thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "vgpud/registry/changes.h"
#include "vgpud/registry/new_vfs.h"
#include "vgpud/registry/reports.h"
#include "vgpud/registry/restoration.h"

namespace vgpud::daemon {

class VfService {
 public:
  // The GPUs with no VF. `around`: its configuration is resolved. Error: a policy can't be made of its settings.
  [[nodiscard]] static Result<std::unique_ptr<VfService>> Make(const DaemonParts& around);
  ~VfService();
  VfService(const VfService&) = delete;
  VfService& operator=(const VfService&) = delete;

  // Makes the VFs again that were there when the last vgpud ended. Once, before anything else.
  void Restore(KeptVfs kept, std::function<void()> done);
  // From now on there are no new VFs; ends all, writes the history, then calls `done`.
  void Close(std::function<void()> done);
  // Before this process ends and leaves its VFs to the next: when all that was answered is on the disk, or after a
  // while.
  void Settle(std::function<void()> done);
  // Calls `changed` when VFs have come, gone or changed their state, from now on.
  void OnTurnout(std::function<void()> changed) { on_turnout_ = std::move(changed); }

  ServedGpus& gpus() { return *gpus_; }
  VfLimits& limits() { return limits_; }
  const Admission& admission() const { return admission_; }
  VfLives& lives() { return lives_; }
  NewVfs& new_vfs() { return new_vfs_; }
  Changes& changes() { return changes_; }
  const Reports& reports() const { return reports_; }
  const Chronicle& chronicle() const { return *around_.chronicle; }

 private:
  VfService(const DaemonParts& around, std::unique_ptr<ServedGpus> gpus);

  const DaemonParts around_;
  const std::unique_ptr<ServedGpus> gpus_;
  VfRegistry vfs_;
  VfStore store_;
  VfLimits limits_;
  Admission admission_;
  OutsideTurns outside_turns_;
  VfLives lives_;
  NewVfs new_vfs_;
  Reports reports_;
  Changes changes_;
  const EventLoop::WatchPtr added_;  // something, to the chronicle
  EventLoop::WatchPtr settle_timer_;
  std::function<void()> on_turnout_ = [] {};
};

}  // namespace vgpud::daemon
