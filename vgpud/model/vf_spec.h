// SPDX-License-Identifier: Apache-2.0
// What a VF is made with, as far as a client says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sched/types.h"
#include "vgpud/model/placement.h"
#include "vgpud/model/socket_access.h"
#include "vgpud/model/vf_domain.h"
#include "vgpud/model/vf_memory.h"

namespace vgpud::daemon {

// The name of a GPU that was given none: the one that is there when no configuration names any.
inline constexpr const char* kUnnamedGpu = "soft0";

struct VfSpec {
  std::string name;
  std::string profile;  // that it was made with, if any
  VfView view;          // its knobs
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
  VfMemory memory() const { return {vram_bytes, host_memory_bytes}; }
  bool transient = false;              // ends with this vgpud; others are back after a restart
  std::string gpu;                     // where it is, or is to be; empty: where `placement` says
  std::optional<Placement> placement;  // none: as the daemon is configured
  std::optional<int> numa_node;        // of the virtual machine that it is for, where that is known
  VfDomain domain;
  std::string tenant;         // whose it is; empty: nobody's
  std::optional<uid_t> user;  // of this host, who made it and answers for it; none: root did, or it is a tenant's
  SocketAccess owner;         // who may use its channel socket, besides root and vgpud's own user
};

}  // namespace vgpud::daemon
