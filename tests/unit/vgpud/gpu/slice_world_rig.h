// SPDX-License-Identifier: Apache-2.0
// A SliceWorld with one VF, whose executors are processes that know nothing of it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "vgpud/gpu/slice_world.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {

using namespace std::chrono_literals;

inline constexpr TimePoint kNow{Ns{5'000}};
inline constexpr VfId kVf{2};

class SliceWorldTest : public testing::Test {
 protected:
  SliceWorldTest() {
    auto memory = *MakeSliceMemory("a");
    slices_ = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
    world_.Add(kVf, "a", std::move(memory));
  }
  const GrantPage& page() { return slices_.grant_page(); }
  ExecSlot& Slot(uint32_t slot) { return slices_.slot_page().slots[slot]; }
  void SetSlot(uint32_t slot, ExecState state) { Slot(slot).state.store(static_cast<uint32_t>(state)); }
  // A process that waits for nothing but its end.
  Child Sleeper() { return *Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "100"}, .files = {}}); }
  void AddExecutor(uint32_t slot, uint64_t generation, const Child& child) {
    world_.AddExecutor(kVf, slot, {generation, child.pid(), *Dup(child.pidfd())});
  }
  bool Runnable() {
    const auto vfs = world_.TurnBoundary(kNow);
    return vfs.size() == 1 && vfs[0].runnable;
  }

  SliceView slices_;
  std::vector<pid_t> killed_;
  SliceWorld::Hang last_hang_;
  int parked_ = 0;
  SliceWorld world_{10ms,
                    {.at_boundary = [](TimePoint) {},
                     .on_killed =
                         [this](VfId, const std::string&, const SliceWorld::Hang& hang) {
                           killed_.push_back(hang.pid);
                           last_hang_ = hang;
                         },
                     .on_parked = [this](VfId) { ++parked_; }}};
};

}  // namespace vgpud::daemon
