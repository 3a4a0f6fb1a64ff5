// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/hosts.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace vgpud::tools::fleet {
namespace {

// Is something with `free` slots better than what was found first, with `best`?
bool Better(Choice choice, uint32_t free, uint32_t best) {
  return choice == Choice::kFullest ? free < best : choice == Choice::kEmptiest && free > best;
}

}  // namespace

Hosts::Hosts(const FleetSize& size) : size_(size), by_most_(size.slots + 1), by_whole_(size.per_host + 1) {
  CHECK(size.gpus > 0 && size.per_host > 0 && size.per_host <= 64 && size.slots > 0);
  for (uint32_t left = size.gpus; left > 0;) {
    const uint32_t count = std::min(left, size.per_host);
    hosts_.push_back({std::vector<uint32_t>(count, size.slots), count * size.slots, size.slots, count});
    ++by_most_[size.slots];
    ++by_whole_[count];
    left -= count;
  }
  free_ = static_cast<int64_t>(size.gpus) * size.slots;
}

bool Hosts::Anywhere(Shape shape) const {
  const std::vector<uint32_t>& count = shape.gpus == 1 ? by_most_ : by_whole_;
  const uint32_t least = shape.gpus == 1 ? shape.slots : shape.gpus;
  return least < count.size() && std::any_of(count.begin() + least, count.end(), [](uint32_t n) { return n > 0; });
}

std::optional<Place> Hosts::Find(Shape shape, Choice choice, std::optional<uint32_t> except) const {
  if (!Anywhere(shape)) return std::nullopt;
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    if (i == except || !Room(hosts_[i], shape)) continue;
    if (!best || Better(choice, hosts_[i].total, hosts_[*best].total)) best = i;
    if (choice == Choice::kFirst) break;
  }
  return best ? FindOn(*best, shape, choice) : std::nullopt;
}

std::optional<Place> Hosts::FindOn(uint32_t host, Shape shape, Choice choice) const {
  const Host& at = hosts_[host];
  if (!Room(at, shape)) return std::nullopt;
  Place place{host, 0};
  if (shape.gpus > 1) {
    uint32_t left = shape.gpus;
    for (uint32_t i = 0; left > 0; ++i) {
      if (at.free[i] != size_.slots) continue;
      place.gpus |= uint64_t{1} << i;
      --left;
    }
    return place;
  }
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < at.free.size(); ++i)
    if (at.free[i] >= shape.slots && (!best || Better(choice, at.free[i], at.free[*best]))) best = i;
  place.gpus = uint64_t{1} << *best;
  return place;
}

void Hosts::Change(const Place& place, int by) {
  Host& host = hosts_[place.host];
  const auto strands = [this](uint32_t free) { return free == size_.slots ? 0 : static_cast<int64_t>(free); };
  --by_most_[host.most];
  --by_whole_[host.whole];
  for (uint32_t i = 0; i < host.free.size(); ++i) {
    if ((place.gpus >> i & 1) == 0) continue;
    const uint32_t before = host.free[i];
    const uint32_t after = before + static_cast<uint32_t>(by);
    CHECK(after <= size_.slots);
    host.free[i] = after;
    free_ += by;
    stranded_ += strands(after) - strands(before);
    used_gpus_ += (before == size_.slots) - (after == size_.slots);
  }
  host.total = std::accumulate(host.free.begin(), host.free.end(), 0u);
  host.most = *std::max_element(host.free.begin(), host.free.end());
  host.whole = static_cast<uint32_t>(std::count(host.free.begin(), host.free.end(), size_.slots));
  ++by_most_[host.most];
  ++by_whole_[host.whole];
}

}  // namespace vgpud::tools::fleet
