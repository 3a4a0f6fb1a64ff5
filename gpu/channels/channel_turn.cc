// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/channel_turn.h"

#include <fmt/core.h>

#include <algorithm>

namespace vgpud::rm {
namespace {

// Handles are freed, and new ones are not bound yet, while we look.
constexpr int kLooks = 3;
// No program needs more: each client costs calls at every switch.
constexpr size_t kMostClients = 16;

constexpr std::chrono::microseconds kPreemptLimit{100'000};

std::vector<uint32_t> Without(const std::vector<uint32_t>& all, const std::vector<uint32_t>& some) {
  std::vector<uint32_t> rest;
  for (const uint32_t handle : all)
    if (std::find(some.begin(), some.end(), handle) == some.end()) rest.push_back(handle);
  return rest;
}

}  // namespace

ChannelTurn::ChannelTurn(std::vector<std::unique_ptr<RmFile>> files, uint32_t driver_major, Read read, bool resumed)
    : files_(std::move(files)),
      driver_major_(driver_major),
      read_(std::move(read)),
      state_(resumed ? State::kOff : State::kOn) {}

const BoardReading* ChannelTurn::Reading() {
  if (auto now = read_()) last_ = std::move(*now);
  return last_ ? &*last_ : nullptr;
}

ChannelSwitch* ChannelTurn::SwitchOf(const ClientChannels& client) {
  if (client.fd < 0 || static_cast<size_t>(client.fd) >= files_.size()) return nullptr;
  const Key key{client.fd, client.client};
  auto known = switches_.find(key);
  if (known == switches_.end()) {
    if (switches_.size() >= kMostClients) return nullptr;
    known = switches_.emplace(key, ChannelSwitch(*files_[static_cast<size_t>(client.fd)], driver_major_)).first;
  }
  return &known->second;
}

ChannelTurn::State ChannelTurn::Refused(const Outcome& outcome, State otherwise) {
  words_ = outcome.Words();
  const Then then = WhatThen(outcome.answer);
  return then == Then::kLost ? State::kLost : then == Then::kKill ? State::kDoomed : otherwise;
}

ClientChannels ChannelTurn::StillThere(ChannelSwitch& turns, const ClientChannels& client) const {
  ClientChannels there = client;
  std::erase_if(there.channels, [&](uint32_t channel) {
    return turns.way() == Way::kDisable && !turns.Disable(client, {channel}, true).ok();
  });
  std::erase_if(there.groups, [&](uint32_t group) {
    return turns.way() == Way::kUnschedule && !turns.Schedule(client, group, false).ok();
  });
  return there;
}

bool ChannelTurn::NamesTooFew(ChannelSwitch& turns, const ClientChannels& client) {
  const auto before = named_.find({client.fd, client.client});
  if (before == named_.end()) return false;
  if (turns.way() == Way::kDisable) {
    for (const uint32_t channel : Without(before->second.channels, client.channels))
      if (turns.Disable(client, {channel}, true).ok()) return true;
    return false;
  }
  for (const uint32_t group : Without(before->second.groups, client.groups))
    if (turns.Schedule(client, group, false).ok() && turns.PreemptGroup(client, group, kPreemptLimit).ok()) return true;
  return false;
}

ChannelTurn::State ChannelTurn::OffClient(const ClientChannels& client, bool* held) {
  ChannelSwitch* const turns = SwitchOf(client);
  if (turns == nullptr) {
    words_ = "it names a file that it did not hand over, or too many clients";
    return State::kUnusable;
  }
  Outcome off = turns->Off(client);
  // What it names may have been freed this moment, or be made up: what the driver knows is taken one by one.
  if (!off.ok() && WhatThen(off.answer) == Then::kLook) {
    off = turns->Off(StillThere(*turns, client));
  }
  if (!off.ok()) return Refused(off, State::kUnusable);
  if (NamesTooFew(*turns, client)) {
    words_ = "it calls freed what the driver still has";
    return State::kLied;
  }
  named_[{client.fd, client.client}] = client;
  *held |= turns->held() != 0;
  return State::kOff;
}

ChannelTurn::State ChannelTurn::Off() {
  if (state_ != State::kOn && state_ != State::kOff) return state_;
  for (int look = 0; look < kLooks; ++look) {
    const BoardReading* const reading = Reading();
    if (reading == nullptr || reading->incomplete || reading->unreachable != 0) {
      words_ = reading == nullptr    ? "its list of channels can't be read"
               : reading->incomplete ? "its list of channels is not complete"
                                     : fmt::format("{} of its channels were made by a file that it did not hand over",
                                                   reading->unreachable);
      return state_ = State::kUnusable;
    }
    seen_ = reading->sequence;
    std::vector<ClientChannels> clients = reading->clients;
    // A client that is not named any more is asked after as one that names nothing.
    for (const auto& [key, before] : named_)
      if (std::none_of(clients.begin(), clients.end(), [&key = key](const ClientChannels& c) {
            return Key{c.fd, c.client} == key;
          })) {
        ClientChannels none = before;
        none.channels.clear();
        none.groups.clear();
        clients.push_back(none);
      }
    bool held = false;
    State state = State::kOff;
    for (const ClientChannels& client : clients) {
      if (const State after = OffClient(client, &held); after != State::kOff) state = after;
      if (state == State::kLost || state == State::kLied) return state_ = state;
    }
    if (state == State::kOff && !held) {
      words_ = "no channels of it are known";
      state = State::kUnusable;
    }
    const auto now = read_();
    const bool settled = !now || now->sequence == seen_;
    if (state != State::kOff && !settled) continue;
    state_ = state;
    if (state == State::kUnusable || state == State::kDoomed)
      for (const ClientChannels& client : clients)
        if (ChannelSwitch* const turns = SwitchOf(client); turns != nullptr && turns->is_off()) (void)turns->On(client);
    if (state != State::kOff || settled) return state_;
    return Look();
  }
  return state_ = State::kUnusable;
}

ChannelTurn::State ChannelTurn::Look() {
  if (state_ != State::kOff) return state_;
  const auto now = read_();
  if (!now || now->sequence == seen_) return state_;
  last_ = now;
  seen_ = now->sequence;
  for (const ClientChannels& client : now->clients) {
    ChannelSwitch* const turns = SwitchOf(client);
    if (turns == nullptr) continue;
    const size_t before = turns->is_off() ? turns->held() : 0;
    Outcome outcome = turns->is_off() ? turns->HoldNewcomers(client) : turns->Off(client);
    if (!outcome.ok() && WhatThen(outcome.answer) == Then::kLook && turns->is_off())
      outcome = turns->HoldNewcomers(StillThere(*turns, client));
    if (!outcome.ok()) {
      const State refused = Refused(outcome, State::kOff);
      if (refused == State::kLost || refused == State::kDoomed) return state_ = refused;
      seen_ = now->sequence - 2;  // not bound yet, or gone: looked at again
      continue;
    }
    newcomers_ += turns->held() - before;
    auto& named = named_[{client.fd, client.client}];
    const ClientChannels known = std::exchange(named, client);
    // Freed or not is found out when it is switched off the next time.
    for (const uint32_t channel : Without(known.channels, client.channels)) named.channels.push_back(channel);
    for (const uint32_t group : Without(known.groups, client.groups)) named.groups.push_back(group);
  }
  return state_;
}

ChannelTurn::State ChannelTurn::On() {
  if (state_ != State::kOff) return state_;
  const BoardReading* const reading = Reading();
  if (reading == nullptr) {
    words_ = "its list of channels can't be read";
    return state_ = State::kDoomed;
  }
  for (const ClientChannels& client : reading->clients) {
    ChannelSwitch* const turns = SwitchOf(client);
    if (turns == nullptr) continue;
    if (!turns->is_off()) turns->AssumeOff(client);
    Outcome on = turns->On(client);
    if (!on.ok() && WhatThen(on.answer) == Then::kLook) on = turns->OnEach(client);
    if (!on.ok()) return state_ = Refused(on, State::kDoomed);
  }
  return state_ = State::kOn;
}

}  // namespace vgpud::rm
