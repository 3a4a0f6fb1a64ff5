// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/channel_switch.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace vgpud::rm {
namespace {

constexpr std::chrono::microseconds kPreemptLimit{100'000};
constexpr int kRetries = 3;

Outcome Done() { return {{}, "nothing to do"}; }

// The same once more, as long as the driver says that this helps.
template <class Call>
Answer Repeat(Call call) {
  Answer answer = call();
  for (int n = 0; n < kRetries && WhatThen(answer) == Then::kRetry; ++n) answer = call();
  return answer;
}

}  // namespace

const char* Name(Way way) { return way == Way::kDisable ? "disabling its channels" : "unscheduling its groups"; }

std::string Outcome::Words() const { return fmt::format("{}: {}", call, rm::Words(answer)); }

ChannelSwitch::ChannelSwitch(const RmFile& file, uint32_t driver_major)
    : file_(file),
      schedule_bytes_(TraitsOf(driver_major).schedule_bytes),
      way_(TraitsOf(driver_major).disables_channels ? Way::kDisable : Way::kUnschedule) {}

Outcome ChannelSwitch::Disable(const ClientChannels& channels, const std::vector<uint32_t>& handles,
                               bool disable) const {
  Outcome outcome = Done();
  for (size_t at = 0; at < handles.size() && outcome.ok(); at += kMostChannels) {
    DisableChannels params{};
    params.disable = disable;
    params.count = static_cast<uint32_t>(std::min<size_t>(kMostChannels, handles.size() - at));
    std::fill_n(params.clients, params.count, channels.client);
    std::copy_n(handles.begin() + static_cast<ptrdiff_t>(at), params.count, params.channels);
    outcome = {Repeat([&] {
                 return file_.Control(channels.client, channels.subdevice, Command::kDisableChannels, &params,
                                      sizeof params);
               }),
               fmt::format("{} {} channels", disable ? "disable" : "enable", params.count)};
  }
  return outcome;
}

// The size of its parameters is not promised to anybody: one that is refused is tried with the other.
Outcome ChannelSwitch::Schedule(const ClientChannels& channels, uint32_t group, bool on) {
  uint8_t params[kScheduleBytes] = {static_cast<uint8_t>(on)};
  const auto call = [&] { return file_.Control(channels.client, group, Command::kSchedule, params, schedule_bytes_); };
  Answer answer = Repeat(call);
  if (answer.error == 0 && answer.status == 0x1f) {
    schedule_bytes_ = kScheduleBytes + kOldScheduleBytes - schedule_bytes_;
    answer = Repeat(call);
  }
  return {answer, fmt::format("{} the group {:#x}", on ? "schedule" : "unschedule", group)};
}

Outcome ChannelSwitch::PreemptGroup(const ClientChannels& channels, uint32_t group,
                                    std::chrono::microseconds limit) const {
  Preempt params{1, 1, {}, static_cast<uint32_t>(std::min<int64_t>(limit.count(), kMostPreemptUs))};
  return {Repeat([&] { return file_.Control(channels.client, group, Command::kPreempt, &params, sizeof params); }),
          fmt::format("preempt the group {:#x}", group)};
}

std::vector<uint32_t> ChannelSwitch::Wanted(Way way, const ClientChannels& channels) const {
  return way == Way::kDisable ? channels.channels : channels.groups;
}

Outcome ChannelSwitch::ApplyTo(Way way, const ClientChannels& channels, const std::vector<uint32_t>& handles,
                               bool off) {
  Outcome outcome = Done();
  if (way == Way::kDisable) {
    outcome = Disable(channels, handles, off);
    if (outcome.ok() && off) held_.insert(handles.begin(), handles.end());
    return outcome;
  }
  for (const uint32_t group : handles) {
    outcome = Schedule(channels, group, !off);
    if (outcome.ok() && off) {
      held_.insert(group);
      outcome = PreemptGroup(channels, group, kPreemptLimit);
    }
    if (!outcome.ok()) break;
  }
  return outcome;
}

Outcome ChannelSwitch::Off(const ClientChannels& channels) {
  held_.clear();
  for (;;) {
    Outcome outcome = ApplyTo(way_, channels, Wanted(way_, channels), true);
    if (outcome.ok()) {
      off_ = true;
      return outcome;
    }
    const Then then = WhatThen(outcome.answer);
    if (then == Then::kLost) return outcome;
    const std::vector<uint32_t> held(held_.begin(), held_.end());
    (void)ApplyTo(way_, channels, held, false);
    held_.clear();
    if (then != Then::kOtherWay || way_ == Way::kUnschedule) return outcome;
    way_ = Way::kUnschedule;
  }
}

Outcome ChannelSwitch::HoldNewcomers(const ClientChannels& channels) {
  std::vector<uint32_t> fresh = Wanted(way_, channels);
  std::erase_if(fresh, [this](uint32_t handle) { return held_.count(handle) != 0; });
  if (!off_ || fresh.empty()) return Done();
  return ApplyTo(way_, channels, fresh, true);
}

void ChannelSwitch::AssumeOff(const ClientChannels& channels) {
  off_ = assumed_ = true;
  for (const auto& handles : {channels.channels, channels.groups}) held_.insert(handles.begin(), handles.end());
}

Outcome ChannelSwitch::OnEach(const ClientChannels& channels) {
  Outcome outcome = Done();
  for (const uint32_t handle : Wanted(way_, channels)) {
    if (held_.count(handle) == 0) continue;
    outcome = ApplyTo(way_, channels, {handle}, false);
    if (!outcome.ok() && WhatThen(outcome.answer) != Then::kLook) return outcome;
  }
  off_ = assumed_ = false;
  held_.clear();
  return Done();
}

Outcome ChannelSwitch::On(const ClientChannels& channels) {
  std::vector<uint32_t> there = Wanted(way_, channels);
  std::erase_if(there, [this](uint32_t handle) { return held_.count(handle) == 0; });
  Outcome outcome = ApplyTo(way_, channels, there, false);
  if (!outcome.ok() && assumed_ && way_ == Way::kDisable && WhatThen(outcome.answer) == Then::kOtherWay) {
    way_ = Way::kUnschedule;
    return On(channels);
  }
  if (outcome.ok()) {
    off_ = assumed_ = false;
    held_.clear();
  }
  return outcome;
}

}  // namespace vgpud::rm
