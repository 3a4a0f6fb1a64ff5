// SPDX-License-Identifier: Apache-2.0
// What a calendar has changed and what was there before, so that it can be put back: also by the next vgpud. Pure: the
// settings are read and changed by others.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vgpud/calendar/calendar.h"

namespace vgpud::daemon {

class Overlay {
 public:
  struct Held {
    std::string before;
    std::string set;
    std::string of = {};  // the uuid of the VF; empty: of a GPU
    bool operator==(const Held&) const = default;
  };
  struct Value {
    std::string text;
    std::string of = {};  // as above
  };
  // What a setting has; nothing: it is of a VF or GPU that is not there now, or can't be changed.
  using Current = std::function<std::optional<Value>(const SettingKey&)>;

  struct Step {
    SettingValues changes;             // to be made, all or none
    std::map<SettingKey, Held> after;  // what is held when they are made
  };
  // From what is held to `wanted`. A setting that somebody else has changed meanwhile is left as it is: it is not held
  // any more when its period ends, and not set again before.
  Step To(const SettingValues& wanted, const Current& current) const;
  // At a start: what was never in force, as the last vgpud was killed before, and settings of GPUs that begin anew.
  void ForgetUnlessInForce(const Current& current);
  // Of a step what is about one VF or GPU, like that of `key`.
  Step Only(const Step& step, const SettingKey& key) const;
  // A step has been made.
  void Take(Step step) { held_ = std::move(step.after); }
  const std::map<SettingKey, Held>& held() const { return held_; }

  // For the next vgpud: a line each. Lines that are none are left out.
  static std::string Write(const std::map<SettingKey, Held>& held);
  static Overlay Read(std::string_view text);

 private:
  std::map<SettingKey, Held> held_;
};

}  // namespace vgpud::daemon
