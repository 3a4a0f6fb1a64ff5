// SPDX-License-Identifier: Apache-2.0
// Keeps the settings of a daemon as its calendar says: looks at the clock once a minute, so that a clock that jumps is
// followed within that. Main thread.
#pragma once

#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/calendar/calendar.h"
#include "vgpud/calendar/overlay.h"
#include "vgpud/model/settings.h"

namespace vgpud::daemon {

class CalendarKeeper {
 public:
  struct World {
    Overlay::Current current;
    // All of it or nothing; `done` once, with why nothing was changed, or with nothing.
    std::function<void(const SettingsPatch&, std::function<void(const std::string& refusal)> done)> change;
    // For the next vgpud; `done` when it is on the disk, or with why not.
    std::function<void(std::string text, std::function<void(const std::string& problem)> done)> keep;
    std::function<std::tm()> local_time;
  };
  CalendarKeeper(EventLoop& loop, World world);

  // Once: `kept` is what the last vgpud kept.
  void Begin(Calendar calendar, std::string_view kept);
  // The files say something else now.
  void SetCalendar(Calendar calendar);
  // What holds now and is not in force is put in force, or tried again if it was refused.
  void Look();

  struct PeriodReport {
    std::string name;
    std::string when;
    bool holds = false;
    std::vector<std::string> settings;  // "vf training weight = 300"
  };
  std::vector<PeriodReport> Report() const;
  // Why not all is as the calendar says; empty: it is.
  const std::string& problem() const { return problem_; }

 private:
  void Arm();
  SettingValues WantedNow() const;
  // Keeps and makes a step; where it is refused, what it has of each VF and GPU alone.
  void Make(Overlay::Step step, bool alone);
  void MakeNext();
  void Finish();

  const World world_;
  Calendar calendar_;
  Overlay overlay_;
  std::string problem_;
  std::string refused_;              // of the look that is being made
  std::vector<SettingKey> targets_;  // that are still to be tried alone
  bool changing_ = false;
  bool again_ = false;
  EventLoop::WatchPtr timer_;
};

// As a change. An error names the setting that can't be that.
[[nodiscard]] Result<SettingsPatch> PatchOf(const SettingValues& values);

}  // namespace vgpud::daemon
