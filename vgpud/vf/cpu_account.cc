// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/cpu_account.h"

#include <algorithm>
#include <utility>

#include "vgpud/host/process_pulse.h"

namespace vgpud::daemon {
namespace {

// While a VF is over its budget: threads come, and each look at them costs files.
constexpr Ns kSetPrioritiesEvery = std::chrono::seconds{1};
// One in so many of a processor's time: what a VF at rest takes.
constexpr int kNothing = 200;

}  // namespace

CpuAccount::CpuAccount(const VfSurroundings& around, std::string vf, VfCgroup& cgroup, Executors& executors,
                       const VfServer& server)
    : around_(around), vf_(std::move(vf)), cgroup_(cgroup), executors_(executors), server_(server) {}

Ns CpuAccount::used() const {
  if (const auto counted = cgroup_.CpuTime()) return *counted;
  const Ns server = server_.has_process() ? ProcessPulse(server_.pid()).Read().computed : Ns{0};
  return executors_.cpu_time() + server;
}

Ns CpuAccount::InTurns(const VfAccount& account, uint64_t before) const {
  return Ns{static_cast<int64_t>((account.received_ns - before) * around_.soft_gpu_threads)};
}

void CpuAccount::Charge(const VfAccount& account, double granted_cpus, bool had_gpu, TimePoint now) {
  const Look before = std::exchange(last_, {now, account.received_ns, used()});
  if (before.at == TimePoint{} || now <= before.at || account.received_ns < before.received_ns) return;
  const Ns computed = last_.cpu - before.cpu;
  const Ns outside = std::max(Ns{0}, computed - InTurns(account, before.received_ns));
  const Ns elapsed = now - before.at;
  computes_ = computed > elapsed / kNothing;
  const Ns granted{static_cast<int64_t>(granted_cpus * static_cast<double>(elapsed.count()))};
  executors_.EndThreadStorms();
  at_rest_ = !computes_ && account.received_ns == before.received_ns && !outside_.over() && !had_gpu;
  const bool changed = outside_.Charge(outside, granted, elapsed);
  if (changed || (outside_.over() && now - priorities_.at >= kSetPrioritiesEvery)) SetPriorities(account, now);
  if (!changed) return;
  cgroup_.SetGivesWay(outside_.over());
  if (outside_.over())
    LOG_LIMITED(limiter_, kInfo, "vf={}: computes too much outside of its turns: it gives way to the others", vf_);
}

// Nothing of a VF that gives way computes beside the kernels of others: the processor of the scheduler thread, which is
// awake for moments only and goes before, is enough for it. (Its priority or control group alone does not see to that:
// Linux gives a whole tick, 4 ms where there are 250 a second, to whoever was alone on a processor a moment before.)
OtherThreads CpuAccount::WhatOthersGet() const {
  OtherThreads what;
  if (!cgroup_.limits_cpu()) what.nice = outside_.over() ? kLowestNice : kOrdinaryNice;
  if (const auto cpu = around_.gpu.own_cpu())
    what.processors = outside_.over() ? OneProcessor(*cpu) : around_.processors.value_or(AllProcessors());
  return what;
}

// While the VF is over its budget, its threads run when and where nobody else wants to, but for those that compute in
// its turns. Under an ordinary user there is no way back from a lower priority.
void CpuAccount::SetPriorities(const VfAccount& account, TimePoint now) {
  const Look before = std::exchange(priorities_, {now, account.received_ns, {}});
  const Ns allowed = InTurns(account, before.received_ns) + (now - before.at) / 2;
  const OtherThreads what = WhatOthersGet();
  if (server_.has_process()) SetOtherThreads(server_.pid(), 0, what);
  executors_.SetPriorities(what, allowed, outside_.over());
}

}  // namespace vgpud::daemon
