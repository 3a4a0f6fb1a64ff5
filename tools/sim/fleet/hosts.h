// SPDX-License-Identifier: Apache-2.0
// What is free in a fleet: hosts, their GPUs, and the VF slots of each GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/sim/fleet/policy.h"

namespace vgpud::tools::fleet {

struct FleetSize {
  uint32_t gpus = 1000;   // at least 1; the last host has fewer if they don't come out even
  uint32_t per_host = 8;  // 1 to 64
  uint32_t slots = 8;     // VFs per GPU, 1 to 64
};

// What a job needs of one host: `slots` on each of `gpus` GPUs. With more than one GPU, `slots` is all of them.
struct Shape {
  uint32_t gpus = 1;
  uint32_t slots = 1;
};

struct Place {
  uint32_t host = 0;
  uint64_t gpus = 0;  // bit i: GPU i of the host
};

class Hosts {
 public:
  explicit Hosts(const FleetSize& size);

  // Where `shape` goes by `choice`, not on host `except`; nullopt: there is no room.
  std::optional<Place> Find(Shape shape, Choice choice, std::optional<uint32_t> except) const;
  // The same on one host.
  std::optional<Place> FindOn(uint32_t host, Shape shape, Choice choice) const;
  // `place` must have room for it, or hold it.
  void Take(const Place& place, uint32_t slots) { Change(place, -static_cast<int>(slots)); }
  void Release(const Place& place, uint32_t slots) { Change(place, static_cast<int>(slots)); }

  const FleetSize& size() const { return size_; }
  int64_t free() const { return free_; }          // slots
  int64_t stranded() const { return stranded_; }  // free slots of GPUs of which others are taken
  int64_t used_gpus() const { return used_gpus_; }

 private:
  struct Host {
    std::vector<uint32_t> free;  // slots, by GPU
    uint32_t total = 0;          // their sum
    uint32_t most = 0;           // the largest of them
    uint32_t whole = 0;          // GPUs that are free altogether
  };
  void Change(const Place& place, int by);
  bool Anywhere(Shape shape) const;
  static bool Room(const Host& host, Shape shape) {
    return shape.gpus == 1 ? host.most >= shape.slots : host.whole >= shape.gpus;
  }

  const FleetSize size_;
  std::vector<Host> hosts_;
  std::vector<uint32_t> by_most_;   // hosts by Host::most: says at once that there is room nowhere
  std::vector<uint32_t> by_whole_;  // hosts by Host::whole
  int64_t free_ = 0;
  int64_t stranded_ = 0;
  int64_t used_gpus_ = 0;
};

}  // namespace vgpud::tools::fleet
