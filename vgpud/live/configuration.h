// SPDX-License-Identifier: Apache-2.0
// The configuration of a daemon that runs: what holds and where it is from, what the files say now, and reading them
// again. Main thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vgpud/calendar/calendar_keeper.h"
#include "vgpud/config/kept_settings.h"
#include "vgpud/config/read_config.h"
#include "vgpud/model/api_error.h"
#include "vgpud/registry/changes.h"
#include "vgpud/registry/reply.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_limits.h"

namespace vgpud::daemon {

class Configuration {
 public:
  using ReadAgain = std::function<Result<Told>()>;
  // `told`: what it has started with. The others outlive this. No calendar: it is for others to keep.
  Configuration(const ServedGpus& gpus, Changes& changes, VfLimits& limits, const Told& told, ReadAgain read_again,
                CalendarKeeper* calendar = nullptr);
  const VfLimits& limits() const { return limits_; }
  const CalendarKeeper* calendar() const { return calendar_; }
  // Who may do what.
  const Access& access() const { return told_.config.access; }

  struct Value {
    std::string key;   // "gpu.base_slice_us"
    std::string text;  // that holds
    std::string from;  // FILE:LINE, kFromFlag, kFromDefault or kFromLive
    std::string told;  // kFromLive: what files and flags say
  };
  static constexpr const char* kFromLive = "changed live";
  std::vector<Value> Show() const;
  // What was changed live of a GPU, for the next vgpud.
  std::vector<LiveSetting> LiveSettings(const ServedGpu& gpu) const;
  // Calls `changed` when that may be something else now.
  void OnChange(std::function<void()> changed) { changed_ = std::move(changed); }

  // What files and flags say now, where it is not what holds.
  struct Difference {
    std::string key;
    std::string running;
    std::string told;
    const char* effect;  // when it takes effect: "reload", "restart"; "never": it was changed live, which stays
  };
  ApiResult<std::vector<Difference>> Diff() const;

  struct Reloaded {
    std::vector<ConfigChange> now;
    std::vector<ConfigChange> at_restart;
    std::optional<uint64_t> round;  // in which it took effect; nothing: it was only asked
  };
  // All that is different and can take effect does so at one turn boundary, or nothing. `dry_run`: it is only checked
  // that it could.
  void Reload(bool dry_run, Reply<Reloaded> done);

 private:
  // What files and flags say of a GPU.
  const GpuSettings& ToldOf(const ServedGpu& gpu) const;
  // Those that the control API changes: their texts.
  std::map<std::string, std::string> Live() const;

  const ServedGpus& gpus_;
  Changes& changes_;
  VfLimits& limits_;
  std::function<void()> changed_ = [] {};
  Told told_;  // last
  const ReadAgain read_again_;
  CalendarKeeper* const calendar_;
  std::map<std::string, std::string> values_;  // that hold, but for what was changed live
  std::map<std::string, std::string> origins_;
};

}  // namespace vgpud::daemon
