// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/overlay.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "vgpud/model/tab_lines.h"

namespace vgpud::daemon {

Overlay::Step Overlay::To(const SettingValues& wanted, const Current& current) const {
  Step step;
  for (const auto& [key, held] : held_) {
    if (wanted.contains(key)) continue;
    const auto is = current(key);
    if (!is)
      step.after[key] = held;  // it may come back
    else if (is->of == held.of && is->text == held.set && is->text != held.before)
      step.changes[key] = held.before;
  }
  for (const auto& [key, value] : wanted) {
    const auto is = current(key);
    const auto found = held_.find(key);
    // Another VF of the same name is another one.
    const Held* held = found != held_.end() && (!is || is->of == found->second.of) ? &found->second : nullptr;
    if (held != nullptr && (!is || held->set == value)) {
      step.after[key] = *held;
      continue;
    }
    if (!is) continue;
    const bool still_ours = held != nullptr && is->text == held->set;
    step.after[key] = {still_ours ? held->before : is->text, value, is->of};
    if (is->text != value) step.changes[key] = value;
  }
  return step;
}

void Overlay::ForgetUnlessInForce(const Current& current) {
  std::erase_if(held_, [&](const auto& each) {
    const auto is = current(each.first);
    if (!is) return false;
    return each.first.vf.empty() ? is->text != each.second.set : is->text == each.second.before;
  });
}

Overlay::Step Overlay::Only(const Step& step, const SettingKey& key) const {
  const auto is_of_it = [&](const auto& each) { return each.first.vf == key.vf && each.first.gpu == key.gpu; };
  Step only;
  std::copy_if(step.changes.begin(), step.changes.end(), std::inserter(only.changes, only.changes.end()), is_of_it);
  std::copy_if(step.after.begin(), step.after.end(), std::inserter(only.after, only.after.end()), is_of_it);
  for (const auto& each : held_)
    if (!is_of_it(each)) only.after.insert(each);
  return only;
}

std::string Overlay::Write(const std::map<SettingKey, Held>& held) {
  std::string text;
  for (const auto& [key, values] : held)
    text += WriteTabLine<6>({key.vf, key.gpu, key.field, values.before, values.set, values.of});
  return text;
}

Overlay Overlay::Read(std::string_view text) {
  Overlay overlay;
  for (const auto& [vf, gpu, field, before, set, of] : ReadTabLines<6>(text))
    if (!field.empty()) overlay.held_[{vf, gpu, field}] = {before, set, of};
  return overlay;
}

}  // namespace vgpud::daemon
