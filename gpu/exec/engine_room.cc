// SPDX-License-Identifier: Apache-2.0
// Device memory in which kernels leave what they have when a turn ends (SpillRoom). It counts as the VF's VRAM.
// Kernels of one stream never run together, so there is one room for each stream, as large as its largest launch needs,
// and a second one for a stream with launches behind each other, if it is no large one: the next one can be on the GPU
// then before the one in front has ended. A launch that finds none runs all the same.
#include <algorithm>

#include "gpu/capability/spill_room.h"
#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kMostSecondRoom = 16 << 20;

}  // namespace

// nullopt: the launch can be queued.
std::optional<ChannelEngine::Verdict> ChannelEngine::MakeRoomFor(Entry& entry, const FunctionInfo& function,
                                                                 const LaunchShape& shape) {
  SpillRoom* const spill = can().spill_room;
  if (spill == nullptr) return std::nullopt;
  const uint64_t need = spill->RoomFor(function, shape);
  Stream* const stream = streams_.Find(entry.sqe.stream);
  if (stream == nullptr || need == 0 || need >= room_refused_) return std::nullopt;
  const bool follows = !stream->queue.empty() && stream->queue.back()->kind == VGPU_OP_LAUNCH;
  const bool fits = need <= stream->room, second = fits && stream->rooms == 1 && follows && need <= kMostSecondRoom;
  if (fits && !second) return std::nullopt;
  const size_t rooms = second ? 2 : 1;
  std::vector<uint64_t> each(rooms, need);
  streams_.ForEachStream([&](const Stream& other) {
    if (&other != stream) each.insert(each.end(), other.rooms, other.room);
  });
  if (!spill->HasRoom(each)) {
    const uint64_t bytes = spill->RoomBytes(need);
    const auto answer = vram_.Reserve(bytes);
    if (answer == VramShare::Answer::kAsk) return Verdict::kWait;
    if (answer == VramShare::Answer::kGranted) callbacks_.exclusive();
    if (answer == VramShare::Answer::kRefused || !spill->MakeRoom(need)) {
      room_refused_ = need;
      return std::nullopt;
    }
    vram_.Use(bytes);
  }
  if (stream->rooms == 0) ++streams_with_room_;
  stream->rooms = rooms;
  stream->room = std::max(need, stream->room);
  return std::nullopt;
}

// For memory that the program asks for: kernels leave later then. False: there was nothing to give up.
bool ChannelEngine::GiveUpRoom() {
  SpillRoom* const spill = can().spill_room;
  const uint64_t bytes = spill != nullptr ? spill->DropRoom() : 0;
  if (bytes == 0) return false;
  vram_.Return(bytes);
  streams_.ForEachStream([](Stream& stream) { stream.room = stream.rooms = 0; });
  streams_with_room_ = 0;
  room_refused_ = 0;
  return true;
}

}  // namespace vgpud::exec
