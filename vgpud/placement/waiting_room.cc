// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/waiting_room.h"

#include <algorithm>
#include <vector>

namespace vgpud::daemon {

std::optional<uint64_t> WaitingRoom::Enter(Guest guest) {
  if (guests_.size() >= kMost) return std::nullopt;
  const uint64_t number = next_++;
  guests_.emplace(std::pair(-int{guest.priority}, number), std::move(guest));
  return number;
}

void WaitingRoom::Leave(uint64_t number) {
  std::erase_if(guests_, [&](const auto& guest) { return guest.first.second == number; });
}

void WaitingRoom::LookAgain() {
  again_ = true;
  if (std::exchange(looking_, true)) return;
  while (std::exchange(again_, false)) LookOnce();
  looking_ = false;
}

void WaitingRoom::LookOnce() {
  Gpus taken;
  std::vector<std::pair<int, uint64_t>> order;
  for (const auto& [key, guest] : guests_) order.push_back(key);
  for (const auto& key : order) {
    const auto it = guests_.find(key);
    if (it == guests_.end()) continue;  // it has left meanwhile
    const Guest guest = it->second;
    if (guest.try_now(taken)) {
      guests_.erase(key);
      continue;
    }
    for (const std::string& gpu : gpus_)
      if (guest.wants(gpu)) taken.insert(gpu);
  }
}

}  // namespace vgpud::daemon
