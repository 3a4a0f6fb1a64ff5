// SPDX-License-Identifier: Apache-2.0
// What vgpud knows of a GPU that is not its own: from the driver, by a process of its own that ends again, and from the
// PCI bus.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/host/topology.h"

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
  std::string
      taken_away_by;  // gate, blocks or safepoints, the best that works; +channels: and those, if it does not leave
  std::vector<GpuRung> rungs;  // weakest first
  std::string mig_instance;    // which it is, like MIG-0a1b2c3d-...; empty: a whole GPU
  // None where the bus has no GPU with that address, as when this one is a VF of another vgpud.
  std::optional<PciGpu> on_bus;
};

// Asks the driver, through `exec_program` (vgpud-exec), and waits for that: up to a minute, while the driver starts the
// GPU. An error is what the driver, or who speaks to it, has to say.
[[nodiscard]] Result<GpuFacts> AskGpu(const GpuChoice& choice, const std::string& exec_program);

// "key=value" lines of vgpud-exec --describe-gpu. An error names the one that is missing or wrong.
[[nodiscard]] Result<GpuFacts> ParseGpuFacts(const std::string& lines);

}  // namespace vgpud::daemon
