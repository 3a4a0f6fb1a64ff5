// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/shares.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace vgpud::daemon {
namespace {

constexpr uid_t kNobodyKnown = static_cast<uid_t>(-1);
constexpr Ns kMostForOthers = std::chrono::seconds{1};  // that what others used makes a sharer wait
constexpr size_t kNetworkBytes = 8;                     // of an IPv6 address: one host has all that follows

std::string TextOf(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, address, text.data(), text.size()) != nullptr ? text.data() : "unknown";
}

std::string NameOfAddress(const sockaddr_storage& at) {
  if (at.ss_family == AF_INET) return "address " + TextOf(AF_INET, &reinterpret_cast<const sockaddr_in&>(at).sin_addr);
  in6_addr address = reinterpret_cast<const sockaddr_in6&>(at).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return "address " + TextOf(AF_INET, &address.s6_addr[12]);
  std::fill(std::begin(address.s6_addr) + kNetworkBytes, std::end(address.s6_addr), uint8_t{0});
  return fmt::format("network {}/64", TextOf(AF_INET6, &address));
}

}  // namespace

Sharer Sharer::User(uid_t uid) {
  return {uid == kNobodyKnown ? "an unknown user" : fmt::format("user {}", uid), uid == 0 || uid == ::geteuid()};
}

uid_t Sharer::UserOf(int fd) {
  ucred peer{.pid = 0, .uid = kNobodyKnown, .gid = 0};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.uid : kNobodyKnown;
}

Sharer Sharer::Peer(int fd) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 &&
      (at.ss_family == AF_INET || at.ss_family == AF_INET6))
    return {NameOfAddress(at)};
  return User(UserOf(fd));
}

namespace {

bool Fits(uint64_t held, uint64_t more, uint64_t most) { return held == 0 || held + more <= most; }

}  // namespace

void Places::State::Count(const Holding& holding, int64_t places) {
  const auto of = held.try_emplace(holding.name, 0).first;
  of->second = static_cast<uint32_t>(of->second + places);
  if (of->second == 0) held.erase(of);
  all = static_cast<uint64_t>(static_cast<int64_t>(all) + places);
  if (!holding.privileged) ordinary = static_cast<uint64_t>(static_cast<int64_t>(ordinary) + places);
}

bool Places::FitsOwn(const Sharer& who, uint32_t places) const {
  return who.privileged || Fits(held(who), places, limit_.each);
}

bool Places::FitsAll(const Sharer& who, uint32_t places) const {
  return who.privileged ? Fits(state_->all, places, limit_.all)
                        : Fits(state_->ordinary, places, limit_.all - limit_.reserved);
}

Places::Place Places::Take(const Sharer& who, uint32_t places) {
  if (!HasShare(who, places)) return nullptr;
  auto* const holding = new Holding{who.name, places, who.privileged, {}, nullptr};
  state_->Count(*holding, places);
  const auto at = state_->holdings.insert(state_->holdings.end(), holding);
  return Place{holding, [state = state_, at](const Holding* held) {
                 state->Count(*held, -int64_t{held->places});
                 state->holdings.erase(at);
                 delete held;
               }};
}

Places::Place Places::TakeOrDisplace(const Sharer& who, uint32_t places, TimePoint now, std::function<void()> yields) {
  while (!HasShare(who, places))
    if (!FitsOwn(who, places) || !Displace(who, places, now)) return nullptr;
  Place place = Take(who, places);
  place->used = now;
  place->yields = std::move(yields);
  return place;
}

bool Places::Resize(const Place& place, uint32_t places, TimePoint now) {
  const Sharer who{place->name, place->privileged};
  const auto yields = std::exchange(place->yields, nullptr);  // not to itself
  const uint32_t before = place->places;
  const auto hold = [&](uint32_t count) {
    state_->Count(*place, int64_t{count} - place->places);
    place->places = count;
  };
  hold(0);
  bool fits = FitsAll(who, places);
  while (!fits && Displace(who, places, now)) fits = FitsAll(who, places);
  hold(fits ? places : before);
  place->yields = yields;
  place->used = now;
  return fits;
}

bool Places::Displace(const Sharer& who, uint32_t places, TimePoint now) {
  if (who.privileged) return false;
  const Holding *of_most = nullptr, *idle = nullptr;
  for (const Holding* const each : state_->holdings) {
    if (each->privileged || each->yields == nullptr || each->places == 0 || each->name == who.name) continue;
    const auto goes_before = [&](const Holding* other) {
      return std::pair(held(each->name), other->used) > std::pair(held(other->name), each->used);
    };
    if (of_most == nullptr || goes_before(of_most)) of_most = each;
    if (idle == nullptr || each->used < idle->used) idle = each;
  }
  if (of_most == nullptr) return false;
  const bool has_more = held(of_most->name) > uint64_t{held(who)} + places;
  const bool is_idle = limit_.idle > Ns{0} && held(who) == 0 && now - idle->used >= limit_.idle;
  if (!has_more && !is_idle) return false;
  const auto yields = (has_more ? of_most : idle)->yields;  // which may end with the holding
  const uint64_t before = state_->ordinary;
  yields();
  return state_->ordinary < before;
}

std::string Places::WhyNone(const Sharer& who) const {
  if (!who.privileged && held(who) >= limit_.each)
    return fmt::format("{} has {} {} already, the most that one may have: wait until one of them ends", who.name,
                       held(who), limit_.what);
  return fmt::format("there are {} {} already, the most that {} may have together: try again later",
                     who.privileged ? state_->all : state_->ordinary, limit_.what,
                     who.privileged ? "all" : "all but root");
}

uint32_t Places::held(const std::string& name) const {
  const auto found = state_->held.find(name);
  return found != state_->held.end() ? found->second : 0;
}

Rates::Rates(const RateLimit& limit, TimePoint now)
    : limit_(limit),
      rest_(limit.each_per_second, limit.each_at_once, now),
      all_(limit.all_per_second, limit.all_at_once, now) {}

// Who has all of its share again is as one that was never here.
TokenBucket& Rates::Of(const Sharer& who, TimePoint now) {
  if (const auto found = own_.find(who.name); found != own_.end()) return found->second;
  // Seldom, so that it costs little for each that comes, and in time, so that there are not many.
  if (std::has_single_bit(own_.size() + 1) || own_.size() >= kMostSharers)
    for (auto each = own_.begin(); each != own_.end();) each = each->second.IsFull(now) ? own_.erase(each) : ++each;
  if (own_.size() >= kMostSharers) return rest_;
  return own_.emplace(who.name, TokenBucket(limit_.each_per_second, limit_.each_at_once, now)).first->second;
}

Ns Rates::Take(const Sharer& who, uint64_t units, TimePoint now) {
  if (who.privileged) return Ns{0};
  TokenBucket& own = Of(who, now);
  const bool owes_nothing = own.IsFull(now);
  own.Take(units, now);
  // A sharer that does not wait, as it leaves instead, would run up debts for all.
  if (all_.Wait(now) < kMostForOthers) all_.Take(std::min<uint64_t>(units, limit_.all_per_second), now);
  return owes_nothing ? own.Wait(now) : std::max(own.Wait(now), all_.Wait(now));
}

Ns Rates::Wait(const Sharer& who, TimePoint now) {
  if (who.privileged) return Ns{0};
  TokenBucket& own = Of(who, now);
  return own.IsFull(now) ? Ns{0} : std::max(own.Wait(now), all_.Wait(now));
}

bool Rates::TryTake(const Sharer& who, uint32_t units, TimePoint now) {
  if (who.privileged) return true;
  TokenBucket& own = Of(who, now);
  if ((!own.IsFull(now) && !all_.Has(units, now)) || !own.TryTake(units, now)) return false;
  all_.Take(units, now);
  return true;
}

}  // namespace vgpud::daemon
