// SPDX-License-Identifier: Apache-2.0
// The VF's VRAM as operations take it, and the part of it in which kernels leave what they have when a turn ends
// (SpillRoom). Kernels of one stream never run together, so there is one room for each stream, as large as its largest
// launch needs, and a second one for a stream with launches behind each other, if it is no large one: the next one can
// be on the GPU then before the one in front has ended. A launch that finds none runs all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/memory/vram_share.h"

namespace vgpud::exec {

class VramUse {
 public:
  // All outlive it.
  VramUse(Channel& channel, GpuContext& context, StreamWork& work, VramShare& share)
      : channel_(channel), context_(context), work_(work), share_(share) {}

  VramShare& share() { return share_; }
  // nullopt: `need` bytes are there, for the `bytes` that were asked for. Room is given up for them: kernels leave
  // later then.
  std::optional<EntryVerdict> Reserve(RingEntry& entry, uint64_t bytes, uint64_t need);
  // Room for a launch, as far as there is VRAM for it. nullopt: the launch can be queued.
  std::optional<EntryVerdict> MakeRoom(RingEntry& entry, const FunctionInfo& function, const LaunchShape& shape);
  // The program has freed memory: room that was refused may be there now.
  void OnFree(uint64_t bytes);
  // The context and its streams are fresh.
  void Reset();
  // May launches be put behind each other? They could take the room of another stream.
  bool one_stream_has_room() const { return streams_with_room_ <= 1; }

 private:
  // False: there was nothing to give up.
  bool GiveUpRoom();

  Channel& channel_;
  GpuContext& context_;
  StreamWork& work_;
  VramShare& share_;
  size_t streams_with_room_ = 0;
  uint64_t refused_ = UINT64_MAX;  // room of so many bytes was not to be had
};

}  // namespace vgpud::exec
