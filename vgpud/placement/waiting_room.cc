// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/waiting_room.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace vgpud::daemon {

// Who need not wait needs no place, so that is tried first.
Result<uint64_t> WaitingRoom::Enter(Guest guest) {
  const uint64_t number = next_++;
  const std::pair key(-int{guest.priority}, number);
  const Sharer whose = guest.whose;
  guests_.emplace(key, Waiting{std::move(guest), nullptr});
  LookAgain();
  const auto waiting = guests_.find(key);
  if (waiting == guests_.end()) return number;
  auto place = places_.TakeOrDisplace(whose, 1, TimePoint{}, [this, whose] { RefuseLastOf(whose.name); });
  if (place != nullptr) {
    waiting->second.place = std::move(place);
    return number;
  }
  guests_.erase(key);
  return Fail(std::errc::resource_unavailable_try_again, places_.WhyNone(whose));
}

void WaitingRoom::RefuseLastOf(const std::string& sharer) {
  const auto last = std::find_if(guests_.rbegin(), guests_.rend(), [&](const auto& each) {
    return each.second.place != nullptr && each.second.guest.whose.name == sharer;
  });
  if (last == guests_.rend()) return;
  const auto refuse = last->second.guest.refuse;
  guests_.erase(std::next(last).base());
  refuse();
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
    const Guest guest = it->second.guest;
    if (guest.try_now(taken)) {
      guests_.erase(key);
      continue;
    }
    for (const std::string& gpu : gpus_)
      if (guest.wants(gpu)) taken.insert(gpu);
  }
}

}  // namespace vgpud::daemon
