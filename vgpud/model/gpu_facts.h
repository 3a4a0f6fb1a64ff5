// SPDX-License-Identifier: Apache-2.0
// What is known of a GPU that is not vgpud's own: from its driver, and from the PCI bus.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpud::daemon {

// As the bus has it, of class 03 (display) or 12 (processing accelerator).
struct PciGpu {
  std::string address;  // "0000:65:00.0"
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint16_t device_class = 0;
  std::string name;                     // of vendor and device, or their numbers
  std::optional<int> node;              // none: the firmware does not say, or there is one only
  std::string kernel_driver;            // that has it; empty: none
  std::array<uint64_t, 6> bar_bytes{};  // of BAR 0 to 5; 0: there is none
};

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
  // gate, blocks or safepoints, the best that works; +channels: and those, if it does not leave
  std::string taken_away_by;
  std::vector<GpuRung> rungs;  // weakest first
  // Memory of an executor that nobody gave the GPU: "apart", kernels can't reach it; "open", they can (HMM, GH200).
  std::string host_memory;
  std::string mig_instance;  // which it is, like MIG-0a1b2c3d-...; empty: a whole GPU
  // None where the bus has no GPU with that address, as when this one is a VF of another vgpud.
  std::optional<PciGpu> on_bus;
};

}  // namespace vgpud::daemon
