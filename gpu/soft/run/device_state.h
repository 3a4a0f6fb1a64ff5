// SPDX-License-Identifier: Apache-2.0
// What outlives a kernel and is reached by what it calls, from several threads at once: memory, output, heap, clock.
// One per context.
#pragma once

#include <memory>

#include "base/compute_capability.h"
#include "gpu/capability/instruction_trip.h"
#include "gpu/soft/memory/arena.h"
#include "gpu/soft/memory/block_pool.h"
#include "gpu/soft/memory/device_heap.h"
#include "gpu/soft/memory/print_buffer.h"
#include "gpu/soft/run/worker_pool.h"
#include "gpu/soft/texture/texture.h"

namespace vgpud::soft {

class AccessCheck;
class InstructionProfile;

struct DeviceState {
  // `threads`: see WorkerPool. `host`: what the context takes of the host's memory; nullptr: without a limit.
  explicit DeviceState(const VramSize& vram, uint32_t threads = 1, HostMemory* host = nullptr,
                       const ComputeCapability& with = kDefaultCapability, const ReachSpace& reach = {})
      : capability(with),
        memory(host != nullptr ? *host : unlimited),
        arena(vram, reach),
        blocks(memory),
        print(&memory),
        heap(&memory),
        workers(threads) {}
  // %clock64: nanoseconds that go on where they were when the context was saved, on another host too. Any thread.
  uint64_t Clock() const;

  const ComputeCapability& capability;
  HostMemory unlimited;
  HostMemory& memory;
  Arena arena;
  BlockPool blocks;
  PrintBuffer print;
  DeviceHeap heap;
  TextureTable textures;
  WorkerPool workers;
  std::shared_ptr<AccessCheck> check;           // nullptr: off
  std::shared_ptr<InstructionProfile> profile;  // nullptr: off
  InstructionTrip* trip = nullptr;              // nullptr: off
  uint64_t clock_shift_ns = 0;                  // to CLOCK_MONOTONIC
};

}  // namespace vgpud::soft
