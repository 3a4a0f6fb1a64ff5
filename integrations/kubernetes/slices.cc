// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "integrations/kubernetes/claim.h"
#include "integrations/kubernetes/profiles.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr const char* kVersion = "resource.k8s.io/v1";
constexpr const char* kPath = "/apis/resource.k8s.io/v1/resourceslices";
constexpr size_t kMostDevices = 128;    // of a slice
constexpr size_t kMostValueBytes = 64;  // of an attribute

const Json& Member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(key);
  return it == object.end() ? kNothing : *it;
}

std::string Text(const Json& object, const char* key) {
  const Json& text = Member(object, key);
  return text.is_string() ? text.get<std::string>() : "";
}

// As the API server writes it, so that what it has can be compared.
std::string Quantity(uint64_t bytes) {
  size_t unit = 0;
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

Json Describe(const SliceDevice& device) {
  Json attributes = Json::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) attributes[name] = {{"string", value.substr(0, kMostValueBytes)}};
  };
  add("resource", device.resource);
  add("profile", device.profile);
  add("gpu", device.gpu);
  add("product", device.product);
  add("gpuAddress", device.address);
  if (!device.compute_capability.empty())
    attributes["computeCapability"] = {{"version", device.compute_capability + ".0"}};
  if (device.numa_node && *device.numa_node >= 0) attributes["numaNode"] = {{"int", *device.numa_node}};
  return {{"name", device.name},
          {"attributes", attributes},
          {"capacity", {{"memory", {{"value", Quantity(device.memory)}}}}}};
}

// Of our slices on the node.
struct There {
  std::map<std::string, Json> slices;  // by name
  int64_t generation = 0;              // the highest
};

There Find(const Json& items, const std::string& node) {
  There there;
  for (const Json& item : items) {
    const Json& spec = Member(item, "spec");
    const std::string name = Text(Member(item, "metadata"), "name");
    if (Text(spec, "driver") != kDriver || Text(spec, "nodeName") != node || name.empty()) continue;
    const Json& generation = Member(Member(spec, "pool"), "generation");
    if (generation.is_number_integer()) there.generation = std::max(there.generation, generation.get<int64_t>());
    there.slices[name] = item;
  }
  return there;
}

Json SpecOf(const std::string& node, Json devices, int64_t generation, size_t slices) {
  return {{"driver", kDriver},
          {"nodeName", node},
          {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", slices}}},
          {"devices", std::move(devices)}};
}

bool IsSo(const There& there, const std::map<std::string, Json>& wanted) {
  if (there.slices.size() != wanted.size()) return false;
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    const auto found = there.slices.find(each.first);
    if (found == there.slices.end()) return false;
    const Json& spec = Member(found->second, "spec");
    const Json& pool = Member(spec, "pool");
    return Member(spec, "devices") == each.second && Member(pool, "generation") == there.generation &&
           Member(pool, "resourceSliceCount") == wanted.size();
  });
}

}  // namespace

std::vector<SliceDevice> DevicesOf(const Config& config, const Offer& offer, const std::string& gpus,
                                   const std::string& profiles) {
  const Json json = Json::parse(gpus, nullptr, false);
  const Json& list = Member(json, "gpus");
  std::vector<SliceDevice> devices;
  for (const Resource& resource : config.resources) {
    const auto offered = offer.find(resource.name);
    const auto memory = VramOfProfile(profiles, resource.profile);
    if (!resource.dra || offered == offer.end() || !memory) continue;
    for (const OfferedVf& vf : offered->second) {
      if (!vf.problem.empty()) continue;
      SliceDevice device{.name = vf.name,
                         .resource = resource.label,
                         .profile = resource.profile,
                         .gpu = vf.gpu,
                         .product = {},
                         .address = {},
                         .compute_capability = {},
                         .numa_node = vf.numa_node,
                         .memory = *memory};
      for (const Json& gpu : list.is_array() ? list : Json::array()) {
        if (Text(gpu, "name") != vf.gpu && !vf.gpu.empty()) continue;
        const std::string product = Text(Member(gpu, "device"), "name");
        device.product = product.empty() ? Text(gpu, "kind") : product;
        device.address = Text(Member(gpu, "device"), "address");
        device.compute_capability = Text(gpu, "compute_capability");
      }
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

std::string SlicesPath(const std::string& node) {
  return fmt::format("{}?fieldSelector=spec.nodeName%3D{},spec.driver%3D{}", kPath, node, kDriver);
}

Result<std::vector<SliceChange>> SliceChanges(const std::string& list, const SliceNode& node,
                                              const std::vector<SliceDevice>& devices) {
  const Json json = Json::parse(list, nullptr, false);
  const Json& items = Member(json, "items");
  if (!items.is_array()) return Fail(std::errc::protocol_error, "the API server answered without resource slices");
  const There there = Find(items, node.name);
  std::map<std::string, Json> wanted;  // the devices of each slice, by its name
  for (size_t first = 0; first < devices.size(); first += kMostDevices) {
    Json& described = wanted[fmt::format("{}-{}-{}", node.name, kDriver, first / kMostDevices)] = Json::array();
    for (size_t i = first; i < std::min(first + kMostDevices, devices.size()); ++i)
      described.push_back(Describe(devices[i]));
  }
  std::vector<SliceChange> changes;
  if (IsSo(there, wanted)) return changes;
  for (auto& [name, described] : wanted) {
    const auto found = there.slices.find(name);
    const bool is_new = found == there.slices.end();
    Json metadata{{"name", name}};
    if (is_new)
      metadata["ownerReferences"] = {
          {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}, {"controller", true}}};
    else
      metadata = Member(found->second, "metadata");  // with the version that it must still have
    const Json slice{{"apiVersion", kVersion},
                     {"kind", "ResourceSlice"},
                     {"metadata", metadata},
                     {"spec", SpecOf(node.name, described, there.generation + 1, wanted.size())}};
    changes.push_back({is_new ? "POST" : "PUT", is_new ? kPath : fmt::format("{}/{}", kPath, name), slice.dump()});
  }
  for (const auto& [name, slice] : there.slices)
    if (!wanted.contains(name)) changes.push_back({"DELETE", fmt::format("{}/{}", kPath, name), ""});
  return changes;
}

}  // namespace vgpud::kubernetes
