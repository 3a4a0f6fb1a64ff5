// SPDX-License-Identifier: Apache-2.0
// A private vgpud with its own directory for tests, and the command line client run against it. The programs come
// from the environment: VGPUD, VGPUCTL, VGPUD_VF, SPIN_EXECUTOR.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {

struct Finished {
  int status = -1;  // exit status, 128 + signal
  std::string out;
  std::string err;
};
// Runs a program to its end.
Finished RunProgram(const std::vector<std::string>& argv);

class VgpudBed {
 public:
  // Starts the daemon (with executors that burn time) and waits until it serves.
  explicit VgpudBed(const std::vector<std::string>& more_args = {});
  // Ends it and removes its directory; prints its log if the test has failed.
  ~VgpudBed();
  VgpudBed(const VgpudBed&) = delete;
  VgpudBed& operator=(const VgpudBed&) = delete;

  const std::string& runtime_dir() const { return runtime_dir_; }
  pid_t pid() const { return pid_; }
  Finished Ctl(std::vector<std::string> args) const;
  // Sends SIGTERM, or `signal`; the exit status.
  int Stop(int signal = SIGTERM);
  // Starts it again after Stop.
  void Start(const std::vector<std::string>& more_args = {});
  // What it and its children have logged.
  std::string Log() const;
  // Opens a channel of the VF as a program without a VM does, and keeps it: one executor.
  UniqueFd OpenChannel(const std::string& vf) const;
  // Process ids of children of the daemon whose command line has all of `words`.
  std::vector<pid_t> Children(const std::vector<std::string>& words) const;
  std::string DaemonProgramDir() const { return libexec_; }

 private:
  const ScratchDir scratch_;
  const std::string& root_ = scratch_.path();
  const std::string runtime_dir_ = root_ + "/run";
  const std::string libexec_ = root_ + "/libexec";
  pid_t pid_ = -1;
};

// Waits until `condition` holds, at most 10 s; false if it never did.
bool Eventually(const std::function<bool()>& condition);

}  // namespace vgpud::daemon
