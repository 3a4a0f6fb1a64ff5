// What the daemon was told at start. After Resolve every value has a unit and a range.
#pragma once

#include <string>

#include "base/event_budget.h"
#include "base/result.h"
#include "vgpud/gpu_thread.h"
#include "vgpud/settings.h"

namespace vgpud {

struct Config {
  std::string runtime_dir;
  std::string state_dir;       // of what outlives the daemon
  std::string metrics_listen;  // ADDRESS:PORT, empty: nowhere
  Ns history_interval = std::chrono::seconds{5};
  std::string gpu = "soft";
  std::string vf_program;    // vgpud-vf
  std::string exec_program;  // vgpud-exec
  int ready_fd = -1;
  EventBudgets event_budgets = kDefaultEventBudgets;
  GpuSettings settings;  // at start; the control API changes them
  GpuThread::Options scheduler;
};

// Fills in what was not given: the runtime directory (control_api.h), the state directory ($VGPUD_STATE_DIR, else
// /var/lib/vgpud for the system's daemon, else within the runtime directory) and the helper programs: $VGPUD_LIBEXEC,
// else next to this executable as built, else ../libexec/vgpud. An error names all places looked at.
[[nodiscard]] Result<void> ResolveConfig(Config& config);

}  // namespace vgpud
