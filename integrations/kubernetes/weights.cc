// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "integrations/kubernetes/profiles.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

std::string Text(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

const Json& Member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(key);
  return it == object.end() ? kNothing : *it;
}

std::optional<int> ParseWeight(const std::string& text) {
  int weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || end != text.data() + text.size() || weight < 1 || weight > kMostWeight) return {};
  return weight;
}

}  // namespace

Result<Annotations> AnnotationsIn(const std::string& pods) {
  const Json json = Json::parse(pods, nullptr, false);
  const Json& items = Member(json, "items");
  if (!items.is_array()) return Fail(std::errc::protocol_error, "the API server answered without pods");
  Annotations annotations;
  for (const Json& pod : items) {
    const Json& metadata = Member(pod, "metadata");
    const std::string weight = Text(Member(metadata, "annotations"), kWeightAnnotation);
    if (!weight.empty())
      annotations[fmt::format("{}/{}", Text(metadata, "namespace"), Text(metadata, "name"))] = weight;
  }
  return annotations;
}

Wishes WishesOf(const Config& config, const PodOfVf& pods, const Annotations& annotations,
                const std::string& profiles) {
  Wishes wishes;
  for (const Resource& resource : config.resources) {
    if (!resource.max_weight || resource.dra) continue;  // a claim has said its own
    const auto usual = resource.weight ? resource.weight : WeightOfProfile(profiles, resource.profile);
    for (int number = 0; number < resource.count; ++number) {
      const std::string vf = resource.VfName(number);
      const auto pod = pods.find(vf);
      const auto annotation = pod == pods.end() ? annotations.end() : annotations.find(pod->second);
      if (annotation != annotations.end()) {
        if (const auto weight = ParseWeight(annotation->second)) {
          wishes.weights[vf] = std::min(*weight, *resource.max_weight);
          continue;
        }
        wishes.refused[pod->second] = fmt::format("{}: not a number of 1 to {}", kWeightAnnotation, kMostWeight);
      }
      if (usual) wishes.weights[vf] = *usual;
    }
  }
  return wishes;
}

}  // namespace vgpud::kubernetes
