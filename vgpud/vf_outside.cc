// What a VF does outside of its turns: it gives way to the others once it has used up its budget for that.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "vgpud/vf.h"

namespace vgpud {

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
  const Ns granted{static_cast<int64_t>(granted_cpus * static_cast<double>(elapsed.count()))};
  if (!outside_.Charge(outside, granted, elapsed)) return;
  cgroup_.SetGivesWay(outside_.over());
  if (outside_.over())
    LOG_LIMITED(limiter_, kInfo, "vf={}: computes too much outside of its turns: it gives way to the others",
                spec_.name);
}

}  // namespace vgpud
