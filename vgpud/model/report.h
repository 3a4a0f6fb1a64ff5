// SPDX-License-Identifier: Apache-2.0
// What clients are answered about VFs, GPUs and changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/vf_link.h"
#include "vgpud/model/gpu_facts.h"
#include "vgpud/model/kernel_faults.h"
#include "vgpud/model/protection.h"
#include "vgpud/model/server_report.h"
#include "vgpud/model/settings.h"
#include "vgpud/model/socket_access.h"
#include "vgpud/model/vf_domain.h"

namespace vgpud::daemon {

struct VfReport {
  std::string name;
  std::string gpu;
  std::string placed;     // of one that has just been made: why there
  uint64_t revision = 0;  // model/settings.h
  std::string uuid;
  std::string state;
  std::string reason;          // of the states failed, parked, paused and lost
  bool settings_known = true;  // false: it is lost, and its definition could not be read
  std::string profile;         // that it was made with, empty if none
  bool transient = false;
  VfDomain domain;
  std::string tenant;  // empty: nobody's
  SocketAccess owner;
  VfView view;                 // its knobs, and whether it is paused
  uint64_t slice_us = 0;       // in force
  double share = 0;            // of the GPU, while all VFs that are not paused have work
  uint64_t wake_bound_ns = 0;  // what the policy promises of its waits after sleep; 0: nothing
  double utilization = 0;      // the part of the last second in which it had the GPU
  uint64_t vram_bytes = 0;
  uint64_t vram_used_bytes = 0;
  uint64_t host_memory_bytes = 0;
  uint64_t host_memory_used_bytes = 0;
  uint32_t executors = 0;
  bool client_connected = false;
  vf_link::Events events;
  std::optional<KernelFaults> kernel_faults;  // nothing: the scheduler thread was not asked
  ServerReport server;
  uint64_t cpu_ns = 0;    // that its processes have used since it was created
  uint64_t gave_way = 0;  // times that it had computed too much outside of its turns
  uint64_t gave_way_ns = 0;
  uint32_t gpu_threads = 1;
  std::string vfio_user_socket;
  std::string channel_socket;
};
struct GpuReport {
  std::string name;
  std::string kind;
  std::string capability;
  std::optional<GpuFacts> facts;  // of a real one
  GpuSettings settings;
  uint64_t preempt_timeout_us = 0;
  Ns switch_cost{0};
  uint32_t vfs = 0;
  bool fifo = false;
  uint64_t vram_bytes = 0;  // 0: VFs may have what they want
  uint64_t vram_promised_bytes = 0;
  std::optional<int> numa_node;
  uint64_t revision = 0;
  Protections protections;
};
// What a change did, or would do.
struct ChangeReport {
  std::optional<VfReport> vf;  // of a change to a VF, as it is now
  std::optional<GpuReport> gpu;
  Difference difference;
  std::optional<uint64_t> round;  // in which it took effect; nothing: it was only asked what would change
  std::vector<std::pair<std::string, uint64_t>> rounds = {};  // of each GPU, where several were changed
  std::string placed = {};                                    // of a VF that would be made: where, and why there
  std::vector<std::string> warnings = {};                     // of what changes without having been named
};

}  // namespace vgpud::daemon
