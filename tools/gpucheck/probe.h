// SPDX-License-Identifier: Apache-2.0
// The experiments of gpu_probe: each says in one line of JSON what it saw.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/channels/channel_switch.h"
#include "tools/gpucheck/probe_worker.h"

namespace gpucheck {

// Two processes with a kernel each, and their control files where the driver has any.
struct Pair {
  Worker a, b;
  std::unique_ptr<vgpud::rm::OwnRmFile> file_a, file_b;
  std::string why_no_controls;  // empty: there are
  uint32_t driver_major = 0;
};

struct Seen {
  enum class Verdict { kPass, kFail, kRecorded, kNotMeasured } verdict = Verdict::kNotMeasured;
  std::string said;
  std::vector<std::pair<std::string, double>> figures;
};
Seen NotMeasured(std::string why);

struct Settings {
  double seconds = 2;  // of each measured stretch
  std::vector<unsigned> slices_us = {5000, 1000, 20000};
};

struct Experiment {
  const char* id;
  const char* title;
  bool needs_controls;
  Seen (*run)(Pair& pair, const Settings& settings);
};
// In the order in which they are run: the one that kills comes last.
const std::vector<Experiment>& Experiments();

// Of probe_controls.cc: E1 to E8, E10, E14; of probe_plain.cc: E9, E13, E16.
Seen Handles(Pair& pair, const Settings& settings);
Seen Negatives(Pair& pair, const Settings& settings);
Seen PreemptAlone(Pair& pair, const Settings& settings);
Seen DisableGroup(Pair& pair, const Settings& settings);
Seen DisableAll(Pair& pair, const Settings& settings);
Seen Unschedule(Pair& pair, const Settings& settings);
Seen Timeslices(Pair& pair, const Settings& settings);
Seen RoundRobin(Pair& pair, const Settings& settings);
Seen RoundRobinOther(Pair& pair, const Settings& settings);
Seen Digests(Pair& pair, const Settings& settings);
Seen CopyWhileOff(Pair& pair, const Settings& settings);
Seen KillOne(Pair& pair, const Settings& settings);
Seen ManagedMemory(Pair& pair, const Settings& settings);
Seen ContextSwitchTrace(Pair& pair, const Settings& settings);
Seen WithoutControl(Pair& pair, const Settings& settings);

// Both beat, for ever.
bool StartBoth(Pair& pair, std::string& why);
void StopBoth(Pair& pair);

}  // namespace gpucheck
