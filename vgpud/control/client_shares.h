// SPDX-License-Identifier: Apache-2.0
// What clients of one listening socket share among them, each with a bounded part. Main thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "vgpud/host/share_limits.h"
#include "vgpud/host/shares.h"

namespace vgpud::daemon {

struct ClientLimits {
  PlaceLimit connections = share_limits::kConnections;
  RateLimit requests = share_limits::kRequests;
  RateLimit answer_bytes = share_limits::kAnswerBytes;
  PlaceLimit untaken_bytes = share_limits::kUntakenBytes;
  PlaceLimit long_answers = share_limits::kReports;
  PlaceLimit followers = share_limits::kFollowers;
  RateLimit new_vfs = share_limits::kNewVfs;
  // Of the client at a socket: whose share it has, and whose rights.
  std::function<Sharer(int fd)> sharer = &Sharer::Peer;
  std::function<uid_t(int fd)> user = &Sharer::UserOf;

  static ClientLimits ForMetrics() {
    ClientLimits limits;
    limits.connections = share_limits::kScrapers;
    limits.requests = share_limits::kScrapes;
    return limits;
  }
};

class ClientShares {
 public:
  explicit ClientShares(const ClientLimits& limits)
      : requests_(limits.requests, Now()),
        answer_bytes_(limits.answer_bytes, Now()),
        untaken_bytes_(limits.untaken_bytes),
        long_answers_(limits.long_answers),
        followers_(limits.followers),
        new_vfs_(limits.new_vfs, Now()) {}
  // How long a request of `who`, which is here, has to wait until it is served.
  Ns Request(const Sharer& who) {
    const TimePoint now = Now();
    return std::max(requests_.Take(who, 1, now), answer_bytes_.Wait(who, now));
  }
  // Memory for its answer, until that is taken. `looks`: it may be as large as answers were lately. Null: when others
  // have been taken.
  Places::Place Memory(const Sharer& who, bool looks) {
    return untaken_bytes_.TakeOrDisplace(who, looks ? std::max(lately_, kSmall) : kSmall, Now(), nullptr);
  }
  // So many bytes of it are not taken. False: there is not so much memory.
  bool HasMemory(const Places::Place& memory, size_t bytes) {
    return untaken_bytes_.Resize(memory, AtMost(bytes), Now());
  }
  std::string WhyNoMemory(const Sharer& who) const { return untaken_bytes_.WhyNone(who); }
  // `bytes` of an answer are on their way: how long until there may be more.
  Ns Answered(const Sharer& who, size_t bytes) {
    lately_ = std::max(AtMost(bytes), lately_ - lately_ / 64);
    return answer_bytes_.Take(who, bytes, Now());
  }
  Places& long_answers() { return long_answers_; }
  Places& followers() { return followers_; }
  Rates& new_vfs() { return new_vfs_; }

 private:
  static uint32_t AtMost(size_t bytes) { return static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX / 2)); }
  static constexpr uint32_t kSmall = 4096;
  Rates requests_;
  Rates answer_bytes_;
  Places untaken_bytes_;
  uint32_t lately_ = 64 << 10;
  Places long_answers_;
  Places followers_;
  Rates new_vfs_;
};

}  // namespace vgpud::daemon
