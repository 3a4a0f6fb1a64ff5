// SPDX-License-Identifier: Apache-2.0
// New VFs that wait until a GPU has room for them: by priority, then in the order in which they came. One that waits
// keeps those behind it off the GPUs that it could go to, so that small ones do not starve a large one. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace vgpud::daemon {

class WaitingRoom {
 public:
  static constexpr size_t kMost = 64;
  using Gpus = std::set<std::string>;

  struct Guest {
    uint8_t priority = 0;  // the highest first
    // Could it go to this GPU, if there were room?
    std::function<bool(const std::string& gpu)> wants;
    // Makes it on another GPU than these, or says why it must never be made; false: it has to wait on.
    std::function<bool(const Gpus& taken)> try_now;
  };
  explicit WaitingRoom(Gpus gpus) : gpus_(std::move(gpus)) {}

  // Its number; nullopt: there are kMost already. It is not tried before LookAgain.
  std::optional<uint64_t> Enter(Guest guest);
  // It does not wait any longer, if it did.
  void Leave(uint64_t number);
  // Tries all that wait, in order. There may be more room than before. May be called from within `try_now`.
  void LookAgain();
  size_t size() const { return guests_.size(); }

 private:
  void LookOnce();

  const Gpus gpus_;
  uint64_t next_ = 0;
  // By priority, the highest first, and number.
  std::map<std::pair<int, uint64_t>, Guest> guests_;
  bool looking_ = false;
  bool again_ = false;
};

}  // namespace vgpud::daemon
