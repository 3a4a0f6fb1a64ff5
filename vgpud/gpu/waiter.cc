// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/waiter.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace vgpud::daemon {
namespace {

constexpr int kNice = -20;
// A shorter last sleep costs more than it leaves to others.
constexpr Ns kLeastLastSleep{20'000};
// Of the waits on such a CPU so many end in time. A microsecond of looking takes one from a program on this CPU for
// sure, a late wait one from the GPU: worth ten.
constexpr uint32_t kPercentOnAnAwakeCpu = 90;

// struct sched_attr of the kernel (sched_setattr(2)), for which there is no header that agrees with <sched.h>.
struct SchedAttr {
  uint32_t size = sizeof(SchedAttr);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(SchedAttr) == 48);

// An ordinary thread with short slices goes before those that compute for long, since Linux 6.12; earlier ones take no
// notice. What is refused here is refused harmlessly.
void TakeOrdinaryPrecedence() {
  constexpr uint64_t kShortestSliceNs = 100'000;
  (void)::setpriority(PRIO_PROCESS, 0, kNice);  // of the calling thread
  SchedAttr attr;
  attr.nice = ::getpriority(PRIO_PROCESS, 0);
  attr.runtime_ns = kShortestSliceNs;
  ::syscall(SYS_sched_setattr, 0, &attr, 0);
}

}  // namespace

void Waiter::Prepare() {
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  sched_param param{};
  param.sched_priority = options_.fifo_priority;
  fifo_ = options_.fifo_priority > 0 && ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0;
  if (!fifo_) TakeOrdinaryPrecedence();
  BindToOneCpu();
  if ((options_.keep_cpu_awake || !options_.spin) && fifo_ && cpu_ >= 0) awake_ = std::make_unique<AwakeCpu>(cpu_);
}

// The thread wakes up on the CPU where it slept, whoever computes there. So that this is never the executor to be taken
// off the GPU, the thread has a CPU of its own choice and the executors keep off it; with one CPU there is no choice.
void Waiter::BindToOneCpu() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  auto skipped = options_.nth_cpu % static_cast<uint32_t>(CPU_COUNT(&allowed) / 2);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed) || skipped-- > 0) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one) == 0) cpu_ = cpu;
}

Ns Waiter::Spin(Ns turn) const {
  return options_.spin.value_or(wake_ups_.Lead(turn * options_.max_spin_percent / 100));
}

// What makes a wake-up late is mostly a CPU that sleeps. Shortly before a deadline one is kept awake by a thread to
// which everybody else is preferred; so a program that computes on that CPU keeps it, but for the last microseconds.
std::optional<size_t> Waiter::UntilDeadline(TimePoint deadline, Ns turn, std::span<const FutexWord> bells) {
  const Ns spin = Spin(turn), left = deadline - Now();
  const Ns most = turn * options_.max_spin_percent / 100;
  const Ns last = awake_ == nullptr ? spin : std::min(spin, awake_wake_ups_.Lead(most, kPercentOnAnAwakeCpu));
  if (left <= last || (left <= spin && left - last < kLeastLastSleep)) {
    while (Now() < deadline) Relax();
    return std::nullopt;
  }
  const bool keep = options_.keep_cpu_awake || left <= spin;
  if (awake_ != nullptr) {
    awake_->Keep(keep);
    return keep ? Sleep(deadline - last, bells, awake_wake_ups_) : Sleep(deadline - spin, bells, wake_ups_);
  }
  if (!keep) return Sleep(deadline - spin, bells, wake_ups_);
  Relax();
  return std::nullopt;
}

std::optional<size_t> Waiter::UntilEvent(TimePoint wake, std::span<const FutexWord> bells) {
  if (awake_ != nullptr && !options_.keep_cpu_awake) awake_->Keep(false);
  if (wake == TimePoint::max()) return FutexWaitAny(bells).woken;
  return Sleep(wake, bells, wake_ups_);
}

std::optional<size_t> Waiter::Sleep(TimePoint wake, std::span<const FutexWord> bells, WakeUps& late) {
  const bool sleeps = Now() < wake;
  const FutexWaited waited = FutexWaitAny(bells, ToNs(wake));
  if (waited.timed_out && sleeps) late.Add(Now() - wake);
  return waited.woken;
}

void Waiter::Rest() {
  if (awake_ != nullptr) awake_->Keep(false);
}

}  // namespace vgpud::daemon
