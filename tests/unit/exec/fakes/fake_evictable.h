// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/capability/evictable.h"

namespace vgpud::exec {

// So many bytes in all, all on the card or none; each move takes a microsecond.
class FakeEvictable : public Evictable {
 public:
  uint64_t on_card() const override { return here ? bytes : 0; }
  uint64_t off_card() const override { return here ? 0 : bytes; }
  GpuResult<uint64_t> Evict() override {
    now_ns += 1000;
    if (refuses) return GpuFail(CuStatus::kOutOfMemory, "no memory of the host");
    here = false;
    return bytes;
  }
  GpuResult<Back> BringBack(const StopWord& stop, uint64_t* returned) override {
    now_ns += 1000;
    if (refuses) return GpuFail(CuStatus::kUnknown, "the driver is lost");
    if (full) return Back::kNoRoom;
    *returned += stop.Stopped() ? bytes / 2 : bytes;
    here = !stop.Stopped();
    return here ? Back::kAll : Back::kStopped;
  }

  uint64_t bytes = 8000, now_ns = 5;
  bool here = true, full = false, refuses = false;
};

}  // namespace vgpud::exec
