// SPDX-License-Identifier: Apache-2.0
// New VFs that wait until a GPU has room for them: by priority, then in the order in which they came. One that waits
// keeps those behind it off the GPUs that it could go to, so that small ones do not starve a large one. There are so
// many places for each tenant, and some for root alone. When all are taken the tenant that has most gives one up to a
// tenant that has fewer. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "vgpud/host/share_limits.h"
#include "vgpud/host/shares.h"

namespace vgpud::daemon {

class WaitingRoom {
 public:
  using Gpus = std::set<std::string>;

  struct Guest {
    uint8_t priority = 0;  // the highest first
    // Could it go to this GPU, if there were room?
    std::function<bool(const std::string& gpu)> wants;
    // Makes it on another GPU than these, or says why it must never be made; false: it has to wait on.
    std::function<bool(const Gpus& taken)> try_now;
    Sharer whose = {};
    // It may not wait any longer: another one has got its place.
    std::function<void()> refuse = [] {};
  };
  explicit WaitingRoom(Gpus gpus, const PlaceLimit& places = share_limits::kWaitingVfs)
      : gpus_(std::move(gpus)), places_(places) {}

  // Its number, when it has been tried in its turn and has to wait, or was made. The error says why it may not wait.
  [[nodiscard]] Result<uint64_t> Enter(Guest guest);
  // It does not wait any longer, if it did.
  void Leave(uint64_t number);
  // Tries all that wait, in order. There may be more room than before. May be called from within `try_now`.
  void LookAgain();
  size_t size() const { return guests_.size(); }

 private:
  struct Waiting {
    Guest guest;
    Places::Place place;
  };
  void LookOnce();
  void RefuseLastOf(const std::string& sharer);

  const Gpus gpus_;
  Places places_;
  uint64_t next_ = 0;
  // By priority, the highest first, and number.
  std::map<std::pair<int, uint64_t>, Waiting> guests_;
  bool looking_ = false;
  bool again_ = false;
};

}  // namespace vgpud::daemon
