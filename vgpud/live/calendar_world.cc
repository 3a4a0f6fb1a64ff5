// SPDX-License-Identifier: Apache-2.0
#include "vgpud/live/calendar_world.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "vgpud/model/setting_text.h"

namespace vgpud::daemon {
namespace {

constexpr const char* kFile = "in-force.calendar";
constexpr const char* kSuffix = ".calendar";
constexpr const char* kChangeable[] = {"ready", "paused", "parked"};  // states of VFs
constexpr Ns kReadLimit = std::chrono::seconds{10};

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::tzset();  // the zone of the host may change
  ::localtime_r(&now, &local);
  return local;
}

}  // namespace

CalendarWorld::CalendarWorld(const ServedGpus& gpus, const Reports& reports, Changes& changes,
                             const std::string& state_dir, TaskQueue& replies)
    : gpus_(gpus),
      reports_(reports),
      changes_(changes),
      directory_(state_dir + "/calendar"),
      files_(directory_, kSuffix, replies) {}

std::string CalendarWorld::Open() {
  std::error_code unreadable;  // OpenNow says why
  const bool is_there = std::filesystem::exists(directory_, unreadable) || unreadable;
  return is_there ? OpenNow() : std::string();
}

std::string CalendarWorld::OpenNow() {
  opened_ = true;
  for (const StateFiles::File& file : files_.Open(kReadLimit, "what the calendar has changed", "--state-dir")) {
    if (file.name != kFile) continue;
    if (file.text) return *file.text;
    LOG(kError, "calendar: what it has changed is not known, it stays so: {}", file.text.error().context);
  }
  if (!files_.problem().empty())
    LOG(kError, "calendar: {}; what it changes is not put back by a vgpud that starts later", files_.problem());
  return {};
}

std::optional<Overlay::Value> CalendarWorld::Current(const SettingKey& key) const {
  std::optional<std::string> text;
  std::string of;
  if (!key.vf.empty()) {
    const auto vf = reports_.OfVf(key.vf);
    if (!vf || std::none_of(std::begin(kChangeable), std::end(kChangeable),
                            [&](const char* state) { return vf->state == state; }))
      return std::nullopt;
    text = SettingText(vf->view, key.field);
    of = vf->uuid;
  } else if (const auto gpu = gpus_.Find(key.gpu)) {
    text = SettingText((*gpu)->settings(), key.field);
  }
  return text ? std::optional(Overlay::Value{*text, of}) : std::nullopt;
}

CalendarKeeper::World CalendarWorld::Parts() {
  return {.current = [this](const SettingKey& key) { return Current(key); },
          .change =
              [this](const SettingsPatch& patch, auto done) {
                changes_.Make(patch, {.by = "the calendar"}, [done](const ApiResult<ChangeReport>& change) {
                  done(change || change.error().kind == ErrorKind::kFailed ? std::string() : change.error().error);
                });
              },
          .keep =
              [this](std::string text, auto done) {
                if (!opened_) (void)OpenNow();
                files_.Put(kFile, std::move(text), [done](const Result<void>& kept) {
                  done(kept ? std::string() : fmt::format("it could not be written down: {}", kept.error().context));
                });
              },
          .local_time = &LocalTime};
}

}  // namespace vgpud::daemon
