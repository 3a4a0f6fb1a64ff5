// SPDX-License-Identifier: Apache-2.0
// What a calendar of a daemon changes: the settings of its VFs and GPUs, and the file in which it keeps what was there
// before.
#pragma once

#include <string>

#include "vgpud/calendar/calendar_keeper.h"
#include "vgpud/host/task_queue.h"
#include "vgpud/registry/changes.h"
#include "vgpud/registry/reports.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/state/state_keeper.h"

namespace vgpud::daemon {

// Main thread.
class CalendarWorld {
 public:
  // All outlive it.
  CalendarWorld(const ServedGpus& gpus, const Reports& reports, Changes& changes, const std::string& state_dir,
                TaskQueue& replies);
  // What the last vgpud kept, if any did; waits for the disk, for a while. When the disk can't be used nothing is kept.
  std::string Open();
  CalendarKeeper::World Parts();
  // Calls `done` when all is on the disk.
  void WhenIdle(std::function<void()> done) { files_.WhenIdle(std::move(done)); }
  // Gives up what the disk has not taken within `limit`.
  void Leave(Ns limit) { files_.Leave(limit); }

 private:
  std::optional<Overlay::Value> Current(const SettingKey& key) const;

  // Once, and makes the directory if it is not there.
  std::string OpenNow();

  const ServedGpus& gpus_;
  const Reports& reports_;
  Changes& changes_;
  const std::string directory_;
  bool opened_ = false;
  StateKeeper files_;
};

}  // namespace vgpud::daemon
