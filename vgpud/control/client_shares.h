// SPDX-License-Identifier: Apache-2.0
// What clients of one listening socket share among them, each with a bounded part. Main thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "vgpud/host/share_limits.h"
#include "vgpud/host/shares.h"

namespace vgpud::daemon {

struct ClientLimits {
  PlaceLimit connections = share_limits::kConnections;
  RateLimit requests = share_limits::kRequests;
  RateLimit answer_bytes = share_limits::kAnswerBytes;
  PlaceLimit untaken_bytes = share_limits::kUntakenBytes;
  PlaceLimit long_answers = share_limits::kReports;
  RateLimit new_vfs = share_limits::kNewVfs;
  std::function<Sharer(int fd)> sharer = &Sharer::Peer;

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
        new_vfs_(limits.new_vfs, Now()) {}
  // How long a request of `who`, which is here, has to wait until it is served.
  Ns Request(const Sharer& who) {
    const TimePoint now = Now();
    return std::max(requests_.Take(who, 1, now), answer_bytes_.Wait(who, now));
  }
  // Memory for its answer, until that is taken: as much as answers had lately. Null: when others have been taken.
  Places::Place Memory(const Sharer& who) {
    return who.privileged ? std::make_shared<const char>() : untaken_bytes_.Take(who, lately_);
  }
  // `bytes` of an answer are on their way: how long until there may be more.
  Ns Answered(const Sharer& who, size_t bytes) {
    const auto most = static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX / 2));
    lately_ = std::max(most, lately_ - lately_ / 64);
    return answer_bytes_.Take(who, bytes, Now());
  }
  Places& long_answers() { return long_answers_; }
  Rates& new_vfs() { return new_vfs_; }

 private:
  Rates requests_;
  Rates answer_bytes_;
  Places untaken_bytes_;
  uint32_t lately_ = 64 << 10;
  Places long_answers_;
  Rates new_vfs_;
};

}  // namespace vgpud::daemon
