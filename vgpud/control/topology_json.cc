// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/topology_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "vgpud/control/json_parts.h"

namespace vgpud::daemon {
namespace {

OrderedJson Node(std::optional<int> node) { return node ? OrderedJson(*node) : OrderedJson(nullptr); }

}  // namespace

OrderedJson Describe(const PciGpu& gpu) {
  auto bars = OrderedJson::array();
  for (size_t bar = 0; bar < gpu.bar_bytes.size(); ++bar)
    if (gpu.bar_bytes[bar] != 0) bars.push_back({{"bar", bar}, {"bytes", gpu.bar_bytes[bar]}});
  return {{"address", gpu.address},
          {"class", fmt::format("{:04x}", gpu.device_class)},
          {"vendor", fmt::format("{:04x}", gpu.vendor)},
          {"device", fmt::format("{:04x}", gpu.device)},
          {"name", gpu.name},
          {"numa_node", Node(gpu.node)},
          {"kernel_driver", gpu.kernel_driver.empty() ? OrderedJson(nullptr) : OrderedJson(gpu.kernel_driver)},
          {"bars", std::move(bars)}};
}

std::string ToJson(const Topology& topology, const std::vector<GpuReport>& gpus) {
  OrderedJson json{{"nodes", OrderedJson::array()}, {"gpus", OrderedJson::array()}, {"pci_gpus", OrderedJson::array()}};
  for (const NumaNode& node : topology.nodes)
    json["nodes"].push_back({{"node", node.number}, {"processors", CpuListText(node.processors)}});
  for (const GpuReport& gpu : gpus) {
    const NumaNode* const node = gpu.numa_node ? topology.Find(*gpu.numa_node) : nullptr;
    json["gpus"].push_back({{"name", gpu.name},
                            {"kind", gpu.kind},
                            {"numa_node", Node(gpu.numa_node)},
                            {"processors", node != nullptr ? CpuListText(node->processors) : std::string("all")}});
  }
  for (const PciGpu& gpu : topology.gpus) json["pci_gpus"].push_back(Describe(gpu));
  if (!topology.pci_problem.empty()) json["pci_problem"] = topology.pci_problem;
  return Finish(std::move(json));
}

}  // namespace vgpud::daemon
