// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/awake_cpu.h"

#include <pthread.h>
#include <sched.h>

#include "base/futex.h"
#include "vgpud/gpu/waiter.h"

namespace vgpud::daemon {

AwakeCpu::AwakeCpu(int cpu) : thread_([this, cpu] { Main(cpu); }) {}

AwakeCpu::~AwakeCpu() {
  wanted_.store(kEnd);
  FutexWakeAll(&wanted_);
  thread_.join();
}

void AwakeCpu::Keep(bool awake) {
  const uint32_t wanted = awake ? kAwake : kAsleep;
  if (wanted_.exchange(wanted) != wanted && awake) FutexWakeAll(&wanted_);
}

void AwakeCpu::Main(int cpu) {
  pthread_setname_np(pthread_self(), "awake-cpu");
  const sched_param none{};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  // With any other priority it would take the CPU from those who need it.
  if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0 || ::sched_setaffinity(0, sizeof one, &one) != 0) return;
  for (;;) {
    const uint32_t wanted = wanted_.load(std::memory_order_relaxed);
    if (wanted == kEnd) return;
    if (wanted == kAwake)
      Relax();
    else
      FutexWait(&wanted_, wanted);
  }
}

}  // namespace vgpud::daemon
