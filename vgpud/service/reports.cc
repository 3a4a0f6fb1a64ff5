// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/reports.h"

#include <algorithm>
#include <utility>

#include "vgpud/service/notify.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kStatusEvery = std::chrono::seconds{2};
constexpr Ns kOftenEnough = std::chrono::milliseconds{1};
constexpr int kTimesInInterval = 4;  // so that one late answer is no death

}  // namespace

std::unique_ptr<ServiceReports> ServiceReports::Start(EventLoop& loop, Source source) {
  if (!HasServiceManager()) return nullptr;
  return std::unique_ptr<ServiceReports>(new ServiceReports(loop, std::move(source)));
}

ServiceReports::ServiceReports(EventLoop& loop, Source source)
    : source_(std::move(source)),
      watched_(WatchdogInterval().has_value()),
      every_(std::clamp(WatchdogInterval().value_or(kTimesInInterval * kStatusEvery) / kTimesInInterval, kOftenEnough,
                        kStatusEvery)),
      asking_(std::make_shared<bool>(false)),
      timer_(loop.Timer([this] { Tick(); })) {
  Tick();
}

void ServiceReports::Tick() {
  timer_->Arm(every_);
  if (std::string now = source_.status(); now != status_) {
    status_ = std::move(now);
    NotifyStatus(status_);
  }
  if (!watched_ || std::exchange(*asking_, true)) return;
  source_.ask_schedulers([asking = asking_] {
    *asking = false;
    NotifyAlive();
  });
}

}  // namespace vgpud::daemon
