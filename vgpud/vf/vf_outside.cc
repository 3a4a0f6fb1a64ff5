// SPDX-License-Identifier: Apache-2.0
// What a VF does outside of its turns: it gives way to the others once it has used up its budget for that.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {
namespace {

// While a VF is over its budget: threads come, and each look at them costs files.
constexpr Ns kSetPrioritiesEvery = std::chrono::seconds{1};
// One in so many of a processor's time: what a VF at rest takes.
constexpr int kNothing = 200;

}  // namespace

void Vf::ChargeOutsideTurns(const VfAccount& account, double granted_cpus, TimePoint now) {
  const Ns cpu = CpuTime();
  const Ns cpu_before = std::exchange(charged_cpu_, cpu);
  const uint64_t received_before = std::exchange(charged_received_ns_, account.received_ns);
  const TimePoint before = std::exchange(charged_at_, now);
  if (before == TimePoint{} || now <= before || account.received_ns < received_before) return;
  // In its turns all its GPU threads may compute.
  const Ns in_turns{static_cast<int64_t>((account.received_ns - received_before) * around_.soft_gpu_threads)};
  const Ns outside = std::max(Ns{0}, cpu - cpu_before - in_turns);
  const Ns elapsed = now - before;
  computes_ = cpu - cpu_before > elapsed / kNothing;
  const Ns granted{static_cast<int64_t>(granted_cpus * static_cast<double>(elapsed.count()))};
  EndThreadStorms();
  at_rest_ = !computes_ && account.received_ns == received_before && !outside_.over() && gpu_percent_ == 0;
  const bool changed = outside_.Charge(outside, granted, elapsed);
  if (changed || (outside_.over() && now - priorities_.at >= kSetPrioritiesEvery)) SetPriorities(account, now);
  if (!changed) return;
  cgroup_.SetGivesWay(outside_.over());
  if (outside_.over())
    LOG_LIMITED(limiter_, kInfo, "vf={}: computes too much outside of its turns: it gives way to the others",
                spec_.name);
}

// Where no control group limits them.
void Vf::EndThreadStorms() {
  const uint64_t most = VfCgroup::ThreadsOf(around_.soft_gpu_threads);
  for (const auto& [generation, executor] : executors_) {
    const uint64_t threads = executor->pulse.Read().threads;
    if (threads <= most) continue;
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={} has {} threads, none needs more than {}: killed", spec_.name,
                executor->child.pid(), threads, most);
    executor->child.Kill(SIGKILL);
  }
}

// Nothing of a VF that gives way computes beside the kernels of others: the processor of the scheduler thread, which is
// awake for moments only and goes before, is enough for it. (Its priority or control group alone does not see to that:
// Linux gives a whole tick, 4 ms where there are 250 a second, to whoever was alone on a processor a moment before.)
OtherThreads Vf::WhatOthersGet() const {
  OtherThreads what;
  if (!cgroup_.limits_cpu()) what.nice = outside_.over() ? kLowestNice : kOrdinaryNice;
  if (const auto cpu = around_.gpu.own_cpu())
    what.processors = outside_.over() ? OneProcessor(*cpu) : around_.processors.value_or(AllProcessors());
  return what;
}

// While the VF is over its budget, its threads run when and where nobody else wants to, but for those that compute in
// its turns. Under an ordinary user there is no way back from a lower priority.
void Vf::SetPriorities(const VfAccount& account, TimePoint now) {
  const Priorities before = std::exchange(priorities_, {now, account.received_ns});
  const Ns in_turns{static_cast<int64_t>((account.received_ns - before.received_ns) * around_.soft_gpu_threads)};
  const Ns allowed = in_turns + (now - before.at) / 2;
  const OtherThreads what = WhatOthersGet();
  if (process_ != nullptr) SetOtherThreads(process_->pid(), 0, what);
  for (const auto& [generation, executor] : executors_) {
    const pid_t pid = executor->child.pid();
    const Ns time = GpuThreadsTime(pid, around_.soft_gpu_threads);
    const Ns computed = time - std::exchange(executor->gpu_threads_time, time);
    // One that was taken over computes with these as well. The first look knows nothing.
    if (computed < time && computed > allowed) executor->spares_threads = false;
    if (!outside_.over()) executor->gpu_threads_time = Ns{0};
    if (what.nice) SetOtherThreads(pid, executor->spares_threads ? around_.soft_gpu_threads : 0, {.nice = what.nice});
    // Its own turns would end late on the processor of the scheduler thread.
    if (what.processors) SetOtherThreads(pid, around_.soft_gpu_threads, {.processors = what.processors});
  }
}

}  // namespace vgpud::daemon
