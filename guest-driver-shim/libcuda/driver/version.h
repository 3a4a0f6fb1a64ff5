// SPDX-License-Identifier: Apache-2.0
// The CUDA version that programs are told.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"

namespace vgpud::cuda {

// Ours, the one that this library has the calls of.
inline constexpr int kDriverVersion = 13000;

// Ours, or that of the driver behind a virtual function of this process if one is older: a runtime that needs a newer
// one says so, instead of sending machine code that the driver does not know. Asks the hosts as HostVersions does, and
// needs no cuInit. Any thread.
int DriverVersion();

struct HostAnswer {
  int version = kDriverVersion;  // the lowest
  bool of_all = true;            // each host has answered
};
// Asks the VFs with these sockets. Hosts that say nothing keep the caller for 5 seconds in all, and a moment each.
HostAnswer AskHosts(const std::vector<std::string>& sockets);

// What the hosts have answered: that of all of them for good, else for a while, so that a host that hangs does not keep
// each call waiting. Threads that ask at the same time wait for one answer. Any thread.
class HostVersions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kWhile = std::chrono::seconds(30);

  HostVersions(std::function<HostAnswer()> ask, std::function<Clock::time_point()> now)
      : ask_(std::move(ask)), now_(std::move(now)) {}
  int Get();

 private:
  const std::function<HostAnswer()> ask_;
  const std::function<Clock::time_point()> now_;
  Mutex mutex_{lock_rank::kVersion};
  bool asked_ GUARDED_BY(mutex_) = false;
  HostAnswer answer_ GUARDED_BY(mutex_);
  Clock::time_point ask_again_ GUARDED_BY(mutex_);
};

}  // namespace vgpud::cuda
