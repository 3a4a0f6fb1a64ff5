// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vgpud/host/topology.h"
#include "vgpud/model/report.h"

namespace vgpud::daemon {

// {"nodes": [{"node", "processors": "0-3"}], "gpus": [{"name", "numa_node", "processors"}], "pci_gpus": [{"address",
// "class", "vendor", "device", "name", "numa_node", "kernel_driver", "bars": [{"bar", "bytes"}]}], "pci_problem"?}.
// `gpus`: that are served.
std::string ToJson(const Topology& topology, const std::vector<GpuReport>& gpus);

}  // namespace vgpud::daemon
