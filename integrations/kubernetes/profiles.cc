// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/profiles.h"

#include <nlohmann/json.hpp>

namespace vgpud::kubernetes {
namespace {

template <class T>
std::optional<T> Number(const std::string& profiles, const std::string& name, const char* key) {
  const auto json = nlohmann::json::parse(profiles, nullptr, false);
  if (!json.is_object() || !json.contains("profiles") || !json["profiles"].is_array()) return {};
  for (const auto& profile : json["profiles"])
    if (profile.is_object() && profile.value("name", nlohmann::json()) == name && profile.contains(key) &&
        profile[key].is_number_integer())
      return profile[key].get<T>();
  return {};
}

}  // namespace

std::optional<int> WeightOfProfile(const std::string& profiles, const std::string& name) {
  return Number<int>(profiles, name, "weight");
}

std::optional<uint64_t> VramOfProfile(const std::string& profiles, const std::string& name) {
  return Number<uint64_t>(profiles, name, "vram_bytes");
}

}  // namespace vgpud::kubernetes
