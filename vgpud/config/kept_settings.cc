// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/kept_settings.h"

#include <fmt/core.h>

#include <utility>

#include "vgpud/model/setting_text.h"
#include "vgpud/model/tab_lines.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kGpu = "gpu.";

Result<void> SetOne(std::string_view key, std::string_view value, GpuSettings* gpu) {
  if (!key.starts_with(kGpu)) return Fail(std::errc::invalid_argument, "this vgpud does not know it");
  GpuPatch patch;
  TRY(PutSetting(key.substr(kGpu.size()), value, &patch));
  Apply(patch, *gpu);
  return {};
}

}  // namespace

std::map<std::string, std::string> ValuesOfGpu(std::map<std::string, std::string> values, std::string_view name) {
  const std::string own = fmt::format("{}{}.", kGpu, name);
  std::vector<std::pair<std::string, std::string>> said;
  for (auto it = values.lower_bound(own); it != values.end() && it->first.starts_with(own); ++it)
    said.emplace_back(fmt::format("{}{}", kGpu, it->first.substr(own.size())), it->second);
  for (auto& [key, value] : said) values[key] = std::move(value);
  return values;
}

std::string WriteLive(const std::vector<LiveSetting>& live) {
  std::string text;
  for (const LiveSetting& each : live) text += WriteTabLine<3>({each.key, each.value, each.told});
  return text;
}

std::vector<LiveSetting> ReadLive(const std::string& text) {
  std::vector<LiveSetting> live;
  for (const auto& [key, value, told] : ReadTabLines<3>(text))
    if (!key.empty() && !value.empty()) live.push_back({key, value, told});
  return live;
}

WithLive ApplyLive(const GpuSettings& told, const std::map<std::string, std::string>& values,
                   const std::vector<LiveSetting>& live) {
  WithLive with{told, {}};
  for (const LiveSetting& each : live) {
    const auto it = values.find(each.key);
    const std::string now = it != values.end() ? it->second : std::string();
    const auto leave_out = [&](std::string_view why) {
      with.left_out.push_back(
          fmt::format("{} {}, changed live, does not hold any more: {}", each.key, each.value, why));
    };
    if (now != each.told) {
      leave_out(fmt::format("files and flags say {} now", now.empty() ? "nothing" : now));
      continue;
    }
    if (const auto set = SetOne(each.key, each.value, &with.settings); !set) leave_out(set.error().context);
  }
  if (const auto ok = CheckChange({}, {with.settings, {}}, Ns{0}); !ok) {
    with.settings = told;
    with.left_out.push_back(fmt::format("nothing that was changed live holds any more: {}", ok.error().context));
  }
  return with;
}

}  // namespace vgpud::daemon
