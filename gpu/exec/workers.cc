// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/workers.h"

#include <sched.h>

#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "gpu/exec/memory/lock_ranks.h"

namespace vgpud::exec {
namespace {

// Where it is the only one allowed, the thread stays on it.
void KeepOffCpu(uint32_t cpu) {
  cpu_set_t allowed;
  if (cpu >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(cpu, &allowed);
  if (CPU_COUNT(&allowed) != 0) ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

struct Workers::Shared {
  void Main(std::optional<JailWatch> watch, std::optional<uint32_t> avoid, bool nested) {
    if (avoid) KeepOffCpu(*avoid);
    auto entered = watch ? EnterJail(JailKind::kExecWorkers, *watch, nested) : Result<UniqueFd>(UniqueFd{});
    MutexLock lock(mutex);
    jail.emplace(std::move(entered));
    changed.NotifyAll();
    if (!*jail) return;
    for (;;) {
      while (mains.empty()) changed.Wait(mutex);
      std::thread(std::move(mains.front())).detach();
      mains.pop_front();
    }
  }

  Mutex mutex{lock_rank::kWorkers};
  CondVar changed;
  std::optional<Result<UniqueFd>> jail GUARDED_BY(mutex);
  std::deque<std::function<void()>> mains GUARDED_BY(mutex);
};

Result<Workers> Workers::Start(std::optional<JailWatch> watch, std::optional<uint32_t> avoid, bool nested) {
  auto shared = std::make_shared<Shared>();
  std::thread([shared, watch, avoid, nested] { shared->Main(watch, avoid, nested); }).detach();
  {
    MutexLock lock(shared->mutex);
    while (!shared->jail) shared->changed.Wait(shared->mutex);
    if (!*shared->jail) return tl::unexpected(shared->jail->error());
  }
  return Workers(std::move(shared));
}

UniqueFd Workers::TakeWatch() {
  MutexLock lock(shared_->mutex);
  return std::move(**shared_->jail);
}

void Workers::Run(std::function<void()> main) {
  MutexLock lock(shared_->mutex);
  shared_->mains.push_back(std::move(main));
  shared_->changed.NotifyAll();
}

}  // namespace vgpud::exec
