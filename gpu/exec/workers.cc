// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/workers.h"

#include <sched.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

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
    std::unique_lock lock(mutex);
    jail.emplace(std::move(entered));
    changed.notify_all();
    if (!*jail) return;
    for (;;) {
      changed.wait(lock, [this] { return !mains.empty(); });
      std::thread(std::move(mains.front())).detach();
      mains.pop_front();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<UniqueFd>> jail;
  std::deque<std::function<void()>> mains;
};

Result<Workers> Workers::Start(std::optional<JailWatch> watch, std::optional<uint32_t> avoid, bool nested) {
  auto shared = std::make_shared<Shared>();
  std::thread([shared, watch, avoid, nested] { shared->Main(watch, avoid, nested); }).detach();
  std::unique_lock lock(shared->mutex);
  shared->changed.wait(lock, [&] { return shared->jail.has_value(); });
  if (!*shared->jail) return tl::unexpected(shared->jail->error());
  lock.unlock();
  return Workers(std::move(shared));
}

UniqueFd Workers::TakeWatch() {
  const std::lock_guard lock(shared_->mutex);
  return std::move(**shared_->jail);
}

void Workers::Run(std::function<void()> main) {
  const std::lock_guard lock(shared_->mutex);
  shared_->mains.push_back(std::move(main));
  shared_->changed.notify_all();
}

}  // namespace vgpud::exec
