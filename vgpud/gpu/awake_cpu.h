// SPDX-License-Identifier: Apache-2.0
// Keeps a CPU from sleeping while somebody needs it to be quick: a thread that computes nothing with the lowest
// priority there is (SCHED_IDLE). Whatever else wants that CPU has it at once; what it costs is the CPU's idle time.
//
// A CPU that sleeps takes time to wake up, and one of a virtual machine that halts has to be given back by the host:
// milliseconds where the host is busy.
#pragma once

#include <atomic>
#include <thread>

namespace vgpud::daemon {

class AwakeCpu {
 public:
  explicit AwakeCpu(int cpu);
  ~AwakeCpu();
  AwakeCpu(const AwakeCpu&) = delete;
  AwakeCpu& operator=(const AwakeCpu&) = delete;

  // One thread calls this. Costs a system call when it changes.
  void Keep(bool awake);

 private:
  enum : uint32_t { kAsleep, kAwake, kEnd };
  void Main(int cpu);

  std::atomic<uint32_t> wanted_{kAsleep};
  std::thread thread_;
};

}  // namespace vgpud::daemon
