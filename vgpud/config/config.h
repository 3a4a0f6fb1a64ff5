// SPDX-License-Identifier: Apache-2.0
// What the daemon was told at start. After Resolve every value has a unit and a range.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/compute_capability.h"
#include "base/event_budget.h"
#include "base/result.h"
#include "vgpud/calendar/calendar.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/device/gpu_facts.h"
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/model/profiles.h"
#include "vgpud/model/settings.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/placement/placement.h"
#include "vgpud/service/passed_sockets.h"
#include "vgpud/tenants/tenants.h"
#include "vgpud/tenants/users.h"

namespace vgpud::daemon {

// One GPU.
struct GpuConfig {
  std::string name = kUnnamedGpu;
  GpuChoice gpu;
  std::optional<GpuFacts> facts;  // of a real one, as found at start
  uint64_t gpu_vram_bytes = 0;    // that all its VFs have together; 0: no limit
  Profiles profiles = BuiltInProfiles(kUsualGpuVramBytes);
  uint32_t soft_gpu_threads = 0;  // that run a kernel together; 0 until Resolve: as many as suit the host
  std::string soft_gpu_capability{kDefaultCapability.name};
  GpuSettings settings;  // at start; the control API changes them
  GpuThread::Options scheduler;
  std::optional<int> numa_node;  // where it is, if that is known
};

// What it says of a GPU itself counts for all GPUs that say nothing else.
struct Config : GpuConfig {
  std::vector<GpuConfig> gpus;  // all that are served, by name; after Resolve at least one
  Placement placement = kDefaultPlacement;
  std::string runtime_dir;
  std::string state_dir;       // of what outlives the daemon
  std::string metrics_listen;  // ADDRESS:PORT, empty: nowhere
  std::string socket_group;    // whose members may open the control socket; empty: the usual one
  std::string cdi_file;        // that describes all VFs as devices of containers; empty: none
  Ns history_interval = std::chrono::seconds{5};
  std::string vf_program;               // vgpud-vf
  std::string exec_program;             // vgpud-exec
  std::string keep_program;             // vgpud-keep
  bool keep_vfs = false;                // VFs outlive a vgpud that is killed or replaced
  bool client_memory = false;           // clients of channel sockets bring memory of their own
  uid_t first_vf_user = 1'879'080'000;  // of root's VFs; above what systemd and its containers take for themselves
  double outside_turns_percent = 2;     // of the host's processors, of all VFs together
  int ready_fd = -1;
  PassedSockets passed;  // which a service manager has made
  EventBudgets event_budgets = kDefaultEventBudgets;
  Tenants tenants;
  Tenant site;                  // of all VFs
  uint64_t host_ram_bytes = 0;  // what this host has; 0 until Resolve
  Access access;
  Calendar calendar;

  bool metrics_on_low_port() const;
};

// How many threads of an executor run a kernel together on a host with `cpus` CPUs: one on a small host, else half of
// them, so that the scheduler thread and the virtual machines have theirs, and at most 16.
uint32_t SoftGpuThreadsFor(uint32_t cpus);

// Fills in what was not given: the threads of the soft GPU (from the CPUs that this process may use), the memory of
// this host, the runtime directory (control_api.h), the state directory ($VGPUD_STATE_DIR, else /var/lib/vgpud for the
// system's daemon, else within the runtime directory) and the helper programs: $VGPUD_LIBEXEC, else next to this
// executable as built, else
// ../libexec/vgpud. An error names all places looked at.
[[nodiscard]] Result<void> ResolveConfig(Config& config);

}  // namespace vgpud::daemon
