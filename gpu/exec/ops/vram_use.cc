// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/vram_use.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "gpu/capability/spill_room.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kMostSecondRoom = 16 << 20;

}  // namespace

std::optional<EntryVerdict> VramUse::Reserve(RingEntry& entry, uint64_t bytes, uint64_t need) {
  auto answer = need < bytes ? VramShare::Answer::kRefused : share_.Reserve(need);
  if (answer == VramShare::Answer::kRefused && need >= bytes && GiveUpRoom()) answer = share_.Reserve(need);
  switch (answer) {
    case VramShare::Answer::kAsk:
      return EntryVerdict::kWait;
    case VramShare::Answer::kRefused:
      return channel_.Reject(entry, CuStatus::kOutOfMemory,
                             fmt::format("{}: {} bytes exceed the VF's VRAM", FindOp(entry.sqe.op)->name, bytes));
    case VramShare::Answer::kGranted:
      break;
  }
  return std::nullopt;
}

std::optional<EntryVerdict> VramUse::MakeRoom(RingEntry& entry, const FunctionInfo& function,
                                              const LaunchShape& shape) {
  SpillRoom* const spill = context_.can().spill_room;
  if (spill == nullptr) return std::nullopt;
  const uint64_t need = spill->RoomFor(function, shape);
  Stream* const stream = work_.streams().Find(entry.sqe.stream);
  if (stream == nullptr || need == 0 || need >= refused_) return std::nullopt;
  const bool follows = !stream->queue.empty() && stream->queue.back()->kind == VGPU_OP_LAUNCH;
  const bool fits = need <= stream->room, second = fits && stream->rooms == 1 && follows && need <= kMostSecondRoom;
  if (fits && !second) return std::nullopt;
  const size_t rooms = second ? 2 : 1;
  std::vector<uint64_t> each(rooms, need);
  work_.streams().ForEachStream([&](const Stream& other) {
    if (&other != stream) each.insert(each.end(), other.rooms, other.room);
  });
  if (!spill->HasRoom(each)) {
    const uint64_t bytes = spill->RoomBytes(need);
    const auto answer = share_.Reserve(bytes);
    if (answer == VramShare::Answer::kAsk) return EntryVerdict::kWait;
    if (answer == VramShare::Answer::kGranted && !entry.alone) return EntryVerdict::kAlone;
    if (answer == VramShare::Answer::kRefused || !spill->MakeRoom(need)) {
      refused_ = need;
      return std::nullopt;
    }
    share_.Use(bytes);
  }
  if (stream->rooms == 0) ++streams_with_room_;
  stream->rooms = rooms;
  stream->room = std::max(need, stream->room);
  return std::nullopt;
}

void VramUse::OnFree(uint64_t bytes) {
  share_.Return(bytes);
  refused_ = UINT64_MAX;
}

void VramUse::Reset() {
  share_.Return(share_.used());
  refused_ = UINT64_MAX;
  streams_with_room_ = 0;
}

bool VramUse::GiveUpRoom() {
  SpillRoom* const spill = context_.can().spill_room;
  const uint64_t bytes = spill != nullptr ? spill->DropRoom() : 0;
  if (bytes == 0) return false;
  share_.Return(bytes);
  work_.streams().ForEachStream([](Stream& stream) { stream.room = stream.rooms = 0; });
  streams_with_room_ = 0;
  refused_ = 0;
  return true;
}

}  // namespace vgpud::exec
