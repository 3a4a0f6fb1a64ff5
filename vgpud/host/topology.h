// SPDX-License-Identifier: Apache-2.0
// What this host's hardware is, as far as placing matters: NUMA nodes with their processors, and GPUs on the PCI bus
// (libpci).
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/model/gpu_facts.h"

namespace vgpud::daemon {

struct NumaNode {
  int number = 0;
  std::vector<int> processors;
};
struct Topology {
  std::vector<NumaNode> nodes;  // by number, at least one
  std::vector<PciGpu> gpus;     // by address
  std::string pci_problem;      // why they are not known, if so

  const NumaNode* Find(int node) const;
  // `address` as PCI libraries and drivers write it: any case, with or without a domain. nullptr: no GPU has it.
  const PciGpu* FindGpu(const std::string& address) const;
};

// `sys`: where sysfs is. What cannot be read is left out; a host without nodes is one node with all processors that
// this process may use.
Topology ReadTopology(const std::string& sys = "/sys");
// "0-2,8" as numbers; the error names what is no such list.
[[nodiscard]] Result<std::vector<int>> ParseCpuList(std::string_view text);
std::string CpuListText(const std::vector<int>& processors);

// The processors of `node` that are among `allowed`. None where nothing has to be chosen: there is one node only, it is
// not known, or none of its processors is allowed.
std::optional<cpu_set_t> ProcessorsNear(const Topology& topology, std::optional<int> node, const cpu_set_t& allowed);

}  // namespace vgpud::daemon
