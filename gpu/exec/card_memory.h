// SPDX-License-Identifier: Apache-2.0
// Memory of a card that has less than its VFs were promised (gpu/capability/evictable.h): when this executor takes its
// own off it, and when it brings it back. vgpud says by the grant page that another VF waits for some; the executor
// says in its slot what it has, and what it did not find.
//
// Whoever needs memory brings back all of it in its turn, or waits there for a while, and leaves. Whoever has memory
// that another VF waits for takes it off the card when it is not on the GPU, but not before it has computed something
// since it came back: so two VFs that always compute get on, however short their slices are.
#pragma once

#include <cstdint>
#include <functional>

#include "base/log.h"
#include "base/slice_page.h"
#include "gpu/capability/evictable.h"

namespace vgpud::exec {

// Used by the GPU thread, while nobody else uses the Gpu.
class CardMemory {
 public:
  // `ring` rings the bell of the slot page.
  CardMemory(const GrantPage& page, ExecMemory& slot, std::function<uint64_t()> now_ns, std::function<void()> ring)
      : page_(page), slot_(slot), now_ns_(std::move(now_ns)), ring_(std::move(ring)) {}

  // Before work in a turn, as Evictable::BringBack; kNoRoom is told to vgpud. Errors: the driver's.
  GpuResult<Evictable::Back> BringBack(Evictable& memory, const StopWord& stop);
  // After kNoRoom: sleeps until other VFs have made room since, as far as vgpud knows, or the turn is over, but no
  // longer than 1 ms: programs may have freed some.
  void AwaitRoom() const;
  // Something of the context has run.
  void Computed() { computed_ = true; }
  // Is it to be taken off the card? `has_work`: there is something to compute.
  bool MustLeave(const Evictable& memory, bool has_work) const;
  // Takes it off. Off the GPU.
  void Leave(Evictable& memory);
  // Off the GPU, after each turn and now and then without work: what there is, nullptr: nothing, and whether it is
  // wanted any more.
  void Tell(const Evictable* memory, bool has_work);

 private:
  const GrantPage& page_;
  ExecMemory& slot_;
  std::function<uint64_t()> now_ns_;
  std::function<void()> ring_;
  uint32_t room_seen_ = 0;  // before the last BringBack
  bool computed_ = true;
  LogLimiter refusals_;
};

}  // namespace vgpud::exec
