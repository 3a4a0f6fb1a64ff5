// SPDX-License-Identifier: Apache-2.0
// gpu_probe [--seconds S] [--only E1,E2...]: can a process take another one's work off the GPU by controls of the stock
// driver, and what does it cost? One line of JSON for each experiment; docs/gpu-check.md explains them. Status: 0 all
// were tried, 3 a CUDA error (a line "ERROR ...") or a worker died.
#include "tools/gpucheck/probe.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

namespace gpucheck {
namespace {

constexpr double kStartSeconds = 60;

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<vgpud::rm::OwnRmFile> TakeFile(const Worker& worker, std::string& why) {
  const vgpud::rm::ClientChannels channels = worker.Channels();
  if (channels.compute_group == 0) {
    why = "no channels were seen: this driver is not NVIDIA's, or makes its channels without calling ioctl";
    return nullptr;
  }
  auto taken = vgpud::rm::TakeFileOf(worker.pidfd(), channels.fd);
  if (!taken) {
    why = taken.error().context;
    return nullptr;
  }
  return std::make_unique<vgpud::rm::OwnRmFile>(std::move(*taken));
}

bool Start(Pair& pair) {
  if (!pair.a.Await(State::kReady, kStartSeconds) || !pair.b.Await(State::kReady, kStartSeconds)) return false;
  pair.driver_major = vgpud::rm::MajorVersion(ReadAll("/proc/driver/nvidia/version")).value_or(0);
  pair.file_a = TakeFile(pair.a, pair.why_no_controls);
  if (pair.why_no_controls.empty()) pair.file_b = TakeFile(pair.b, pair.why_no_controls);
  return true;
}

std::string Json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

void Say(const Experiment& experiment, const Seen& seen) {
  constexpr const char* kVerdicts[] = {"pass", "fail", "recorded", "not measured"};
  std::string line =
      fmt::format("{{\"id\": {}, \"title\": {}, \"verdict\": {}, \"said\": {}, \"figures\": {{", Json(experiment.id),
                  Json(experiment.title), Json(kVerdicts[static_cast<int>(seen.verdict)]), Json(seen.said));
  const char* separator = "";
  for (const auto& [name, value] : seen.figures) {
    line += fmt::format("{}{}: {:.6g}", separator, Json(name), value);
    separator = ", ";
  }
  std::printf("%s}}\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

const std::vector<Experiment>& Experiments() {
  static const std::vector<Experiment> experiments = {
      {"E1", "the channels of another process, by its own control file", true, &Handles},
      {"E2", "what must be refused", true, &Negatives},
      {"E16", "no control: a short kernel beside an endless one", false, &WithoutControl},
      {"E3", "preempting alone, and how the GPU saved its state", true, &PreemptAlone},
      {"E4", "disabling the channels that compute", true, &DisableGroup},
      {"E5", "disabling all channels, copies too", true, &DisableAll},
      {"E6", "unscheduling and preempting, and unscheduling alone", true, &Unschedule},
      {"E7", "timeslices", true, &Timeslices},
      {"E10", "a kernel that is stopped often computes the same", true, &Digests},
      {"E8", "strict turns of two processes", true, &RoundRobin},
      {"E11", "the same with shorter and longer slices", true, &RoundRobinOther},
      {"E14", "copies while all channels go off and on", true, &CopyWhileOff},
      {"E13", "pages of managed memory on the move while a neighbour is stopped", false, &ManagedMemory},
      {"E15", "saves and restores as NVIDIA's profiler sees them", false, &ContextSwitchTrace},
      {"E9", "killing a process with an endless kernel", false, &KillOne},
  };
  return experiments;
}

}  // namespace gpucheck

int main(int argc, char** argv) {
  using namespace gpucheck;
  Settings settings;
  std::string only;
  for (int n = 1; n + 1 < argc; n += 2) {
    if (std::string_view(argv[n]) == "--seconds") settings.seconds = std::strtod(argv[n + 1], nullptr);
    if (std::string_view(argv[n]) == "--only") only = fmt::format(",{},", argv[n + 1]);
  }
  Pair pair;
  if (!Start(pair)) {
    std::printf("ERROR call=start name=a_worker_died code=0\n");
    return 3;
  }
  for (const Experiment& experiment : Experiments()) {
    if (!only.empty() && only.find(fmt::format(",{},", experiment.id)) == std::string::npos) continue;
    if (experiment.needs_controls && !pair.why_no_controls.empty()) {
      Say(experiment, NotMeasured(pair.why_no_controls));
    } else {
      Say(experiment, experiment.run(pair, settings));
    }
  }
  return 0;
}
