// SPDX-License-Identifier: Apache-2.0
// What vgpud knows of a GPU that is not its own: from the driver, by a process of its own that ends again, and from the
// PCI bus.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "vgpud/device/gpu_choice.h"

namespace vgpud::daemon {

// A way to take kernels off the GPU.
struct GpuRung {
  std::string name;
  bool works = false;
  std::string what;  // that was seen, or why it does not
};

struct GpuFacts {
  std::string name;
  std::string address;     // PCI
  std::string capability;  // like 9.0
  std::string driver;      // the CUDA version that it brings, like 13.0
  uint64_t memory_bytes = 0;
  uint64_t context_bytes = 0;  // of that memory, that each program's context takes; 0: not known
  std::string taken_away_by;   // the best rung that is in use: gate, blocks, safepoints
  std::vector<GpuRung> rungs;  // weakest first
  // Of the PCI device; empty and -1 where the bus has none with that address, as when the GPU is a VF of another vgpud.
  std::string pci_name;
  std::string kernel_driver;
  int numa_node = -1;
};

// Asks the driver, through `exec_program` (vgpud-exec), and waits for that: up to a minute, while the driver starts the
// GPU. An error is what the driver, or who speaks to it, has to say.
[[nodiscard]] Result<GpuFacts> AskGpu(const GpuChoice& choice, const std::string& exec_program);

// "key=value" lines of vgpud-exec --describe-gpu. An error names the one that is missing or wrong.
[[nodiscard]] Result<GpuFacts> ParseGpuFacts(const std::string& lines);

}  // namespace vgpud::daemon
