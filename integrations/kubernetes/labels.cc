// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostValueBytes = 63;
constexpr uint64_t kMiB = 1 << 20;

// As a label's value must be: letters, digits and -_. between letters or digits.
std::string AsValue(std::string text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  std::replace_if(
      text.begin(), text.end(), [&](unsigned char c) { return !is_plain(c) && c != '-' && c != '_' && c != '.'; }, '-');
  text.resize(std::min(text.size(), kMostValueBytes));
  while (!text.empty() && !is_plain(static_cast<unsigned char>(text.back()))) text.pop_back();
  while (!text.empty() && !is_plain(static_cast<unsigned char>(text.front()))) text.erase(0, 1);
  return text;
}

std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string MiB(const Json& object) {
  const auto it = object.find("vram_bytes");
  return it != object.end() && it->is_number_unsigned() ? std::to_string(it->get<uint64_t>() / kMiB) : "";
}

Result<Json> ListIn(const std::string& answer, const char* key) {
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object() || !json.contains(key) || !json[key].is_array())
    return Fail(std::errc::protocol_error, fmt::format("vgpud answered without {}", key));
  return json[key];
}

// One value for all GPUs, or all that there are: "strict", or "reserve_strict".
std::string Joined(const Json& gpus, const char* key) {
  std::set<std::string> values;
  for (const Json& gpu : gpus)
    if (gpu.is_object()) values.insert(Text(gpu, key));
  std::string joined;
  for (const std::string& value : values) joined += (joined.empty() ? "" : "_") + value;
  return joined;
}

}  // namespace

Result<Labels> LabelsOf(const Config& config, const std::string& gpus, const std::string& profiles) {
  const Json gpu_list = TRY(ListIn(gpus, "gpus")), profile_list = TRY(ListIn(profiles, "profiles"));
  const auto named = [](std::string_view name) { return fmt::format("{}{}", kLabelPrefix, name); };
  Labels labels{{named("gpu.count"), std::to_string(gpu_list.size())},
                {named("gpu.product"), Joined(gpu_list, "kind")},
                {named("gpu.compute-capability"), Joined(gpu_list, "compute_capability")},
                {named("policy"), Joined(gpu_list, "policy")}};
  for (const Json& gpu : gpu_list)
    if (gpu.is_object() && !MiB(gpu).empty()) labels[named("gpu.memory")] = MiB(gpu);
  for (const Resource& resource : config.resources) {
    const auto of = [&](std::string_view what) { return named(fmt::format("{}.{}", resource.label, what)); };
    labels[of("count")] = std::to_string(resource.count);
    labels[of("replicas")] = std::to_string(resource.replicas);
    labels[of("profile")] = resource.profile;
    for (const Json& profile : profile_list)
      if (profile.is_object() && Text(profile, "name") == resource.profile) labels[of("memory")] = MiB(profile);
  }
  for (auto& [name, value] : labels) value = AsValue(std::move(value));
  return labels;
}

Result<std::string> LabelsPatch(const Labels& wanted, const std::string& node) {
  const Json json = Json::parse(node, nullptr, false);
  const Json metadata = json.is_object() ? json.value("metadata", Json::object()) : Json();
  const Json now = metadata.is_object() ? metadata.value("labels", Json::object()) : Json();
  if (!now.is_object()) return Fail(std::errc::protocol_error, "the API server answered without a node");
  Json change = Json::object();
  for (const auto& [name, value] : now.items())
    if (name.rfind(kLabelPrefix, 0) == 0 && name != kNodeLabel && !wanted.contains(name)) change[name] = nullptr;
  for (const auto& [name, value] : wanted)
    if (const auto it = now.find(name); it == now.end() || *it != value) change[name] = value;
  if (change.empty()) return std::string();
  return Json{{"metadata", {{"labels", change}}}}.dump();
}

}  // namespace vgpud::kubernetes
