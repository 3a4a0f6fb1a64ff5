// SPDX-License-Identifier: Apache-2.0
// A calendar: settings that hold at certain hours of certain days, like more weight for trainings at night. Pure.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

// A setting of a VF or of a GPU.
struct SettingKey {
  std::string vf;     // empty: of a GPU
  std::string gpu;    // of `gpu`; empty: of the only GPU
  std::string field;  // as in the control API
  auto operator<=>(const SettingKey&) const = default;
  // "vf training weight", "gpu policy"
  std::string Text() const;
};
// Names, "true" and "false", and numbers in the units of the knobs.
using SettingValues = std::map<SettingKey, std::string>;

struct Period {
  std::string name;
  uint8_t days = 0x7f;  // bit per day on which it begins, Sunday first
  int from = 0;         // minutes of the day, local time
  int to = 0;           // of the same day, or of the next one if it is not after `from`
  SettingValues settings;
  // "mon-fri 22:00 to 06:00"
  std::string When() const;
};
using Calendar = std::vector<Period>;

// "night.from=22:00", "night.days=mon-fri,sun", "night.vf.training.weight=300", "night.gpu.policy=reserve",
// "night.gpu.GPU.base_slice_us=4000": one key of one period, which `calendar` gets if it has it not.
[[nodiscard]] Result<void> SetInCalendar(Calendar* calendar, std::string_view setting);
// The keys of a period, of its table vf.NAME, and of its table gpu or gpu.NAME.
std::vector<std::string> PeriodKeys();
std::vector<std::string> PeriodVfKeys();
std::vector<std::string> PeriodGpuKeys();

bool Holds(const Period& period, const std::tm& local);
// What all periods that hold say together; of two that say something about the same thing the later one counts.
SettingValues WantedAt(const Calendar& calendar, const std::tm& local);

}  // namespace vgpud::daemon
