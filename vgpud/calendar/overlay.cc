// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/overlay.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace vgpud::daemon {

Overlay::Step Overlay::To(const SettingValues& wanted, const Current& current) const {
  Step step;
  for (const auto& [key, held] : held_) {
    if (wanted.contains(key)) continue;
    const auto is = current(key);
    if (!is)
      step.after[key] = held;  // it may come back
    else if (*is == held.set && *is != held.before)
      step.changes[key] = held.before;
  }
  for (const auto& [key, value] : wanted) {
    const auto is = current(key);
    const auto held = held_.find(key);
    if (held != held_.end() && (!is || held->second.set == value)) {
      step.after.insert(*held);
      continue;
    }
    if (!is) continue;
    const bool still_ours = held != held_.end() && *is == held->second.set;
    step.after[key] = {still_ours ? held->second.before : *is, value};
    if (*is != value) step.changes[key] = value;
  }
  return step;
}

void Overlay::ForgetUnlessInForce(const Current& current) {
  std::erase_if(held_, [&](const auto& each) {
    const auto is = current(each.first);
    return is && *is != each.second.set;
  });
}

std::string Overlay::Write(const std::map<SettingKey, Held>& held) {
  std::string text;
  for (const auto& [key, values] : held)
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", key.vf, key.gpu, key.field, values.before, values.set);
  return text;
}

Overlay Overlay::Read(std::string_view text) {
  Overlay overlay;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // cut off
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    std::array<std::string, 5> parts;
    size_t count = 0;
    for (; count < parts.size(); ++count) {
      const size_t tab = line.find('\t');
      parts[count] = line.substr(0, tab);
      if (tab == std::string_view::npos) break;
      line.remove_prefix(tab + 1);
    }
    if (count != parts.size() - 1 || parts[2].empty()) continue;
    overlay.held_[{parts[0], parts[1], parts[2]}] = {parts[3], parts[4]};
  }
  return overlay;
}

}  // namespace vgpud::daemon
