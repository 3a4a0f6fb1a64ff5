// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/calendar_world.h"

#include <ctime>
#include <utility>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

constexpr const char* kFile = "in-force.calendar";
constexpr const char* kSuffix = ".calendar";
constexpr Ns kReadLimit = std::chrono::seconds{10};

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::tzset();  // the zone of the host may change
  ::localtime_r(&now, &local);
  return local;
}

}  // namespace

CalendarWorld::CalendarWorld(VfRegistry& registry, const std::string& state_dir, TaskQueue& replies)
    : registry_(registry), files_(state_dir + "/calendar", kSuffix, replies) {}

std::string CalendarWorld::Open() {
  for (const StateFiles::File& file : files_.Open(kReadLimit, "what the calendar has changed", "--state-dir")) {
    if (file.name != kFile) continue;
    if (file.text) return *file.text;
    LOG(kError, "calendar: what it has changed is not known, it stays so: {}", file.text.error().context);
  }
  if (!files_.problem().empty())
    LOG(kError, "calendar: {}; what it changes is not put back by a vgpud that starts later", files_.problem());
  return {};
}

std::optional<std::string> CalendarWorld::Current(const SettingKey& key) const {
  if (!key.vf.empty()) {
    const auto vf = registry_.ShowVf(key.vf);
    return vf && vf->state != "lost" ? SettingText(vf->view, key.field) : std::nullopt;
  }
  const auto gpu = registry_.FindGpu(key.gpu);
  return gpu ? SettingText((*gpu)->settings(), key.field) : std::nullopt;
}

CalendarKeeper::World CalendarWorld::Parts() {
  return {.current = [this](const SettingKey& key) { return Current(key); },
          .change =
              [this](const SettingsPatch& patch, auto done) {
                registry_.Change(patch, false, [done](const ApiResult<ChangeReport>& change) {
                  done(change || change.error().kind == ErrorKind::kFailed ? std::string() : change.error().error);
                });
              },
          .keep =
              [this](std::string text) {
                files_.Put(kFile, std::move(text), [](const Result<void>& kept) {
                  if (!kept) LOG(kError, "calendar: {}", kept.error().context);
                });
              },
          .local_time = &LocalTime};
}

}  // namespace vgpud::daemon
