// SPDX-License-Identifier: Apache-2.0
// What there is once for everybody, shared: each user has a bounded share of it, so that nobody can take it from the
// others. Places are held and given back (connections, waiting requests); rates come back with time (requests, bytes).
// The limits themselves stand in share_limits.h. No clock: time is an argument. One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace vgpud::daemon {

// Whose share it is.
struct Sharer {
  std::string name;         // for messages, and to tell sharers apart: "user 1000", "address 10.0.0.1", "tenant a"
  bool privileged = false;  // root and vgpud's own user: has the reserved places, and no rate

  static Sharer User(uid_t uid);
  static Sharer Tenant(const std::string& tenant) { return {"tenant " + tenant}; }
  // The process at the other end of the connected socket `fd`: its user, by the kernel's word, or, over TCP, its
  // address (of IPv6 the network). Who cannot be known shares with all others of whom that is so.
  static Sharer Peer(int fd);
  // The user of the process at the other end of a Unix socket; nobody's (the highest number), where that is not known.
  static uid_t UserOf(int fd);
};

struct PlaceLimit {
  const char* what;       // "connections"
  uint32_t each;          // places of one sharer without privileges
  uint32_t all;           // of all together
  uint32_t reserved = 0;  // of `all`, for those with privileges
  Ns idle{0};             // a place that was not used for so long yields to a sharer without any; 0: it does not
};

class Places {
 public:
  struct Holding {
    std::string name;
    uint32_t places = 0;
    bool privileged = false;
    TimePoint used{};              // last
    std::function<void()> yields;  // none: it does not yield
  };
  // Holds places while it lives, also when the Places are gone.
  using Place = std::shared_ptr<Holding>;
  explicit Places(const PlaceLimit& limit) : limit_(limit), state_(std::make_shared<State>()) {}
  // Null: there are not so many for `who`; WhyNone says why. One that has none gets more than its share, if nobody else
  // has any: what is larger must be possible, too.
  [[nodiscard]] Place Take(const Sharer& who, uint32_t places = 1);
  // The same, but where other sharers have taken all, one of them yields: the sharer that has most, if it has more than
  // `who` would have then, or, if `who` has none, one that did not use its place for the limit's `idle`. `yields` of
  // that place is called, and returns when it, or another place of the same sharer, is free.
  [[nodiscard]] Place TakeOrDisplace(const Sharer& who, uint32_t places, TimePoint now, std::function<void()> yields);
  // `place`, which yields, holds so many from now on. It may be more than the share of its sharer, not more than what
  // there is for all; others yield as above. False: it is not possible, nothing has changed.
  [[nodiscard]] bool Resize(const Place& place, uint32_t places, TimePoint now);
  std::string WhyNone(const Sharer& who) const;
  uint32_t held(const Sharer& who) const { return held(who.name); }
  // No sharer without privileges gets another place.
  bool full() const { return state_->ordinary >= limit_.all - limit_.reserved; }
  const PlaceLimit& limit() const { return limit_; }

 private:
  struct State {
    std::map<std::string, uint32_t> held;  // of those who hold any: bounded by the places
    uint64_t all = 0;
    uint64_t ordinary = 0;  // of all, held without privileges
    std::list<Holding*> holdings;
    void Count(const Holding& holding, int64_t places);
  };
  uint32_t held(const std::string& name) const;
  bool HasShare(const Sharer& who, uint32_t places) const { return FitsOwn(who, places) && FitsAll(who, places); }
  bool FitsOwn(const Sharer& who, uint32_t places) const;
  bool FitsAll(const Sharer& who, uint32_t places) const;
  // Somebody has yielded to `who`.
  bool Displace(const Sharer& who, uint32_t places, TimePoint now);
  const PlaceLimit limit_;
  const std::shared_ptr<State> state_;
};

struct RateLimit {
  const char* what;          // "requests"
  uint32_t each_per_second;  // units that one sharer gets back per second
  uint32_t each_at_once;     // and can have saved up
  uint32_t all_per_second;   // all sharers together; 0: whatever each of them has
  uint32_t all_at_once;
};

class Rates {
 public:
  // Sharers that are told apart; those beyond share one share.
  static constexpr size_t kMostSharers = 4096;
  Rates(const RateLimit& limit, TimePoint now);
  // Takes `units` of `who`, also when there are fewer, and says how long `who` has to wait now before it goes on.
  Ns Take(const Sharer& who, uint64_t units, TimePoint now);
  // How long it has to wait. One that owes nothing does not wait for what others owe.
  Ns Wait(const Sharer& who, TimePoint now);
  // Takes them if they are all there; of one that has used nothing, also where others have used what all may have.
  [[nodiscard]] bool TryTake(const Sharer& who, uint32_t units, TimePoint now);
  const RateLimit& limit() const { return limit_; }
  size_t sharers() const { return own_.size(); }

 private:
  TokenBucket& Of(const Sharer& who, TimePoint now);
  const RateLimit limit_;
  std::map<std::string, TokenBucket> own_;
  TokenBucket rest_;  // of those who are not told apart
  TokenBucket all_;
};

}  // namespace vgpud::daemon
