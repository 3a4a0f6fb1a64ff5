// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/shares.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace vgpud::daemon {
namespace {

constexpr uid_t kNobodyKnown = static_cast<uid_t>(-1);
constexpr size_t kNetworkBytes = 8;  // of an IPv6 address: one host has all that follows

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

bool Places::HasShare(const Sharer& who, uint32_t places) const {
  const auto fits = [places](uint64_t held, uint64_t most) { return held == 0 || held + places <= most; };
  if (who.privileged) return fits(state_->all, limit_.all);
  return fits(state_->ordinary, limit_.all - limit_.reserved) && fits(held(who), limit_.each);
}

Places::Place Places::Take(const Sharer& who, uint32_t places) {
  if (!HasShare(who, places)) return nullptr;
  const uint32_t ordinary = who.privileged ? 0 : places;
  state_->held[who.name] += places;
  state_->all += places;
  state_->ordinary += ordinary;
  return Place{state_.get(), [state = state_, name = who.name, places, ordinary](const void*) {
                 const auto held = state->held.find(name);
                 held->second -= places;
                 if (held->second == 0) state->held.erase(held);
                 state->all -= places;
                 state->ordinary -= ordinary;
               }};
}

std::string Places::WhyNone(const Sharer& who) const {
  if (!who.privileged && held(who) >= limit_.each)
    return fmt::format("{} has {} {} already, the most that one may have: wait until one of them ends", who.name,
                       held(who), limit_.what);
  return fmt::format("there are {} {} already, the most that {} may have together: try again later",
                     who.privileged ? state_->all : state_->ordinary, limit_.what,
                     who.privileged ? "all" : "all but root");
}

uint32_t Places::held(const Sharer& who) const {
  const auto found = state_->held.find(who.name);
  return found != state_->held.end() ? found->second : 0;
}

Rates::Rates(const RateLimit& limit, TimePoint now)
    : limit_(limit),
      rest_(limit.each_per_second, limit.each_at_once, now),
      all_(limit.all_per_second, limit.all_at_once, now) {}

// Who has all of its share again is as one that was never here.
TokenBucket& Rates::Of(const Sharer& who, TimePoint now) {
  if (const auto found = own_.find(who.name); found != own_.end()) return found->second;
  if (own_.size() >= kMostSharers)
    for (auto each = own_.begin(); each != own_.end();) each = each->second.IsFull(now) ? own_.erase(each) : ++each;
  if (own_.size() >= kMostSharers) return rest_;
  return own_.emplace(who.name, TokenBucket(limit_.each_per_second, limit_.each_at_once, now)).first->second;
}

Ns Rates::Take(const Sharer& who, uint64_t units, TimePoint now) {
  if (who.privileged) return Ns{0};
  TokenBucket& own = Of(who, now);
  own.Take(units, now);
  all_.Take(units, now);
  return std::max(own.Wait(now), all_.Wait(now));
}

Ns Rates::Wait(const Sharer& who, TimePoint now) {
  return who.privileged ? Ns{0} : std::max(Of(who, now).Wait(now), all_.Wait(now));
}

bool Rates::TryTake(const Sharer& who, uint32_t units, TimePoint now) {
  if (who.privileged) return true;
  if (!all_.Has(units, now) || !Of(who, now).TryTake(units, now)) return false;
  all_.Take(units, now);
  return true;
}

}  // namespace vgpud::daemon
