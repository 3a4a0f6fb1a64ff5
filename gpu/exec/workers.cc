#include "gpu/exec/workers.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace vgpud {

struct Workers::Shared {
  void Main(JailWatch watch) {
    auto entered = EnterJail(JailKind::kExecWorkers, watch);
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

Result<Workers> Workers::Start(JailWatch watch) {
  auto shared = std::make_shared<Shared>();
  std::thread([shared, watch] { shared->Main(watch); }).detach();
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

}  // namespace vgpud
