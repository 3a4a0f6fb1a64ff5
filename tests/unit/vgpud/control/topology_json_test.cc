// SPDX-License-Identifier: Apache-2.0
// Of the hardware what programs read.
#include "vgpud/control/topology_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vgpud/control/json.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::json;

TEST(TopologyJson, ACardAndWhereItIs) {
  GpuReport gpu;
  gpu.facts.emplace().mig_instance = "MIG-1";
  EXPECT_EQ(nullptr, Json::parse(ToJson(gpu))["device"]["on_bus"]);
  gpu.facts->on_bus = PciGpu{.address = "0000:65:00.0",
                             .vendor = 0x10de,
                             .device = 0x2330,
                             .device_class = 0x302,
                             .name = "H100",
                             .node = 1,
                             .kernel_driver = "nvidia",
                             .bar_bytes = {16 << 20, 0, uint64_t{1} << 37}};
  const Json device = Json::parse(ToJson(gpu))["device"];
  EXPECT_EQ("MIG-1", device["mig_instance"]);
  const Json on_bus = Json::parse(R"({"address": "0000:65:00.0", "class": "0302", "vendor": "10de", "device": "2330",
      "name": "H100", "numa_node": 1, "kernel_driver": "nvidia",
      "bars": [{"bar": 0, "bytes": 16777216}, {"bar": 2, "bytes": 137438953472}]})");
  EXPECT_EQ(on_bus, device["on_bus"]);
  Topology topology;
  topology.gpus = {*gpu.facts->on_bus, PciGpu{}};
  const Json listed = Json::parse(ToJson(topology, {}))["pci_gpus"];
  EXPECT_EQ(on_bus, listed[0]);
  for (const char* unknown : {"numa_node", "kernel_driver"}) EXPECT_EQ(nullptr, listed[1][unknown]) << unknown;
  EXPECT_EQ(Json::array(), listed[1]["bars"]);
}

}  // namespace
}  // namespace vgpud::daemon
