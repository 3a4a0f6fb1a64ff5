// SPDX-License-Identifier: Apache-2.0
// New VFs: made at once, or in their turn when a GPU has room for them. Main thread.
#pragma once

#include <functional>

#include "vgpud/placement/waiting_room.h"
#include "vgpud/registry/vf_lives.h"

namespace vgpud::daemon {

class NewVfs {
 public:
  // All outlive this.
  NewVfs(EventLoop& loop, const ServedGpus& gpus, const VfLimits& limits, const Admission& admission, VfLives& lives);

  // Answers when the definition is on the disk, unless the VF is transient.
  void Create(const VfWish& wish, Reply<VfReport> done);
  // The same, but where no GPU has room now it waits until one has (placement/waiting_room.h), if one could ever have
  // it. What it returns ends the wait of a client that is gone.
  std::function<void()> CreateInTurn(const VfWish& wish, Reply<VfReport> done);
  // New VFs that wait for room.
  size_t waiting() const { return waiting_.size(); }
  // There may be room for those who wait.
  void LookForRoom();
  // vgpud is stopping: refuses those who wait.
  void RefuseAll() { waiting_.LookAgain(); }

 private:
  // Could it be on `gpu`, if there were no other VF?
  bool Could(const VfWish& wish, const ServedGpu& gpu) const;
  // Does it wait for room on this GPU? One that waits for its own tenant keeps nobody else away.
  bool Wants(const VfWish& wish, const std::string& gpu) const;
  // Answered for good; false: it has to wait on.
  bool TryNow(const VfWish& wish, const WaitingRoom::Gpus& taken, const Reply<VfReport>& done);

  EventLoop& loop_;
  const ServedGpus& gpus_;
  const VfLimits& limits_;
  const Admission& admission_;
  VfLives& lives_;
  WaitingRoom waiting_;
  bool looks_for_room_ = false;  // soon
};

}  // namespace vgpud::daemon
