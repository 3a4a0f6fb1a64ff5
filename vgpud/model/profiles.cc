// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/profiles.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/model/api.h"
#include "vgpud/model/named_setting.h"
#include "vgpud/model/nearest.h"

namespace vgpud::daemon {
namespace {

struct MemoryRow {
  std::string_view key;
  std::optional<uint64_t> Profile::*bytes;
  uint64_t least;
  uint64_t most;
};
constexpr MemoryRow kMemories[] = {
    {"vram", &Profile::vram_bytes, control::kMinVramBytes, control::kMaxVramBytes},
    {"host_memory", &Profile::host_memory_bytes, control::kMinHostMemoryBytes, control::kMaxHostMemoryBytes}};

Result<void> Set(Profile* profile, std::string_view key, std::string_view text) {
  for (const MemoryRow& row : kMemories) {
    if (row.key != key) continue;
    const auto bytes = ParseBytes(text);
    if (!bytes) return Fail(std::errc::invalid_argument, fmt::format("{} {}", key, bytes.error().context));
    if (*bytes < row.least || *bytes > row.most)
      return Fail(std::errc::invalid_argument, fmt::format("{} {} is out of range: allowed is {} to {}", key, text,
                                                           FormatBytes(row.least), FormatBytes(row.most)));
    profile->*row.bytes = *bytes;
    return {};
  }
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf || row.name != key) continue;
    const uint64_t value = TRY(ParseKnobText(row, text));
    std::erase_if(profile->knobs, [&](const KnobValue& given) { return given.knob == row.knob; });
    profile->knobs.push_back({row.knob, value});
    return {};
  }
  return Fail(std::errc::invalid_argument, fmt::format("profile {} has no key \"{}\": {}", profile->name, key,
                                                       control::DidYouMean(key, ProfileKeys())));
}

}  // namespace

Profiles BuiltInProfiles(uint64_t gpu_vram_bytes) {
  Profiles profiles;
  for (const uint64_t parts : {1, 2, 4, 8})
    profiles.push_back({fmt::format("1/{}", parts),
                        std::max(gpu_vram_bytes / parts, control::kMinVramBytes),
                        {},
                        {{Knob::kWeight, 2 * kDefaultWeight / parts}},
                        true});
  return profiles;
}

std::vector<std::string> ProfileKeys() {
  std::vector<std::string> keys;
  for (const MemoryRow& row : kMemories) keys.emplace_back(row.key);
  for (const KnobRow& row : Knobs())
    if (row.per_vf) keys.emplace_back(row.name);
  return keys;
}

Result<void> SetInProfile(Profiles* profiles, std::string_view setting) {
  const NamedSetting given = TRY(ParseNamedSetting("profile", setting, "small.weight=50"));
  const std::string& name = given.name;
  auto found = std::find_if(profiles->begin(), profiles->end(), [&](const Profile& each) { return each.name == name; });
  Profile changed =
      found != profiles->end() ? *found : Profile{.name = name, .vram_bytes = {}, .host_memory_bytes = {}, .knobs = {}};
  TRY(Set(&changed, given.key, given.value));
  if (found != profiles->end())
    *found = std::move(changed);
  else
    profiles->push_back(std::move(changed));
  return {};
}

Result<const Profile*> FindProfile(const Profiles& profiles, std::string_view name) {
  std::vector<std::string> names;
  for (const Profile& profile : profiles) {
    if (profile.name == name) return &profile;
    names.push_back(profile.name);
  }
  return Fail(std::errc::invalid_argument,
              fmt::format("there is no profile \"{}\": {}", name, control::DidYouMean(name, names)));
}

}  // namespace vgpud::daemon
