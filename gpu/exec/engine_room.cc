// SPDX-License-Identifier: Apache-2.0
// Device memory in which kernels leave what they have when a turn ends (Gpu::RoomFor). It counts as the VF's VRAM.
// Kernels of one stream never run together, so there is one room for each stream, as large as its largest launch needs.
// A launch that finds none runs all the same.
#include <algorithm>

#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {

// nullopt: the launch can be queued.
std::optional<ChannelEngine::Verdict> ChannelEngine::MakeRoomFor(Entry& entry, const FunctionInfo& function,
                                                                 const LaunchShape& shape) {
  const uint64_t need = gpu_->RoomFor(function, shape);
  Stream* const stream = streams_.Find(entry.sqe.stream);
  if (stream == nullptr || need <= stream->room || need >= room_refused_) return std::nullopt;
  std::vector<uint64_t> each{need};
  streams_.ForEachStream([&](const Stream& other) {
    if (&other != stream) each.push_back(other.room);
  });
  if (!gpu_->HasRoom(each)) {
    const uint64_t bytes = gpu_->RoomBytes(need);
    const auto answer = vram_.Reserve(bytes);
    if (answer == VramShare::Answer::kAsk) return Verdict::kWait;
    if (answer == VramShare::Answer::kGranted) callbacks_.exclusive();
    if (answer == VramShare::Answer::kRefused || !gpu_->MakeRoom(need)) {
      room_refused_ = need;
      return std::nullopt;
    }
    vram_.Use(bytes);
  }
  stream->room = need;
  return std::nullopt;
}

// For memory that the program asks for: kernels leave later then. False: there was nothing to give up.
bool ChannelEngine::GiveUpRoom() {
  const uint64_t bytes = gpu_->DropRoom();
  if (bytes == 0) return false;
  vram_.Return(bytes);
  streams_.ForEachStream([](Stream& stream) { stream.room = 0; });
  room_refused_ = 0;
  return true;
}

}  // namespace vgpud::exec
