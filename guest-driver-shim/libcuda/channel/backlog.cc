// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/backlog.h"

#include <algorithm>
#include <new>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kUnitBytes = 4096;
// A host keeps no longer payload, but leaves it where it is.
constexpr uint64_t kMostKept = 64 << 10;
// Idle streams that are remembered, so that programs with few of them make no new entries all the time.
constexpr size_t kRemembered = 64;
// Each question is an operation of the host, too.
constexpr size_t kAskedAtOnce = 64;

bool WaitsForElse(uint32_t op) {
  return op == VGPU_OP_EVENT_WAIT || op == VGPU_OP_GATE_WAIT || op == VGPU_OP_WAIT_VALUE;
}
bool IsOfStream(uint32_t op) {
  return (op >= VGPU_OP_LAUNCH && op <= VGPU_OP_STREAM_SYNC) || op == VGPU_OP_GATE_WAIT || op == VGPU_OP_WAIT_VALUE ||
         op == VGPU_OP_WRITE_VALUE;
}
bool IsOfAll(uint32_t op) { return op == VGPU_OP_CONTEXT_SYNC || op == VGPU_OP_CONTEXT_RESET; }

}  // namespace

uint64_t Backlog::Units(uint32_t op, uint64_t payload_bytes) {
  return IsOfStream(op) ? 1 + std::min(payload_bytes, kMostKept) / kUnitBytes : 0;
}

const Backlog::Stream* Backlog::Find(uint32_t stream) const {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? nullptr : &it->second;
}

bool Backlog::HasRoom(uint32_t stream, uint64_t units) const {
  if (units == 0) return true;
  MutexLock lock(mutex_);
  const uint64_t after = total_ + units;
  if (after > kMost) return false;
  const Stream* const found = Find(stream);
  if (found == nullptr || found->outstanding() == 0) return true;
  const uint64_t share = std::max(after < kShared ? kTimesFree * (kShared - after) : 0, (kMost - after) / kParts);
  return found->outstanding() + units <= share;
}

bool Backlog::IsDue(uint32_t stream) const {
  MutexLock lock(mutex_);
  const Stream* const found = Find(stream);
  const uint64_t untold = found == nullptr ? 0 : found->submitted - std::max(found->told, found->done);
  return untold >= kGrain - 1 || (total_ > kMost / 2 && (found == nullptr || found->told <= found->done));
}

Backlog::Place Backlog::Add(Place place, uint64_t units, bool tells) noexcept {
  if (units == 0) return place;
  MutexLock lock(mutex_);
  Streams::iterator it;
  try {
    it = streams_.try_emplace(place.stream).first;
  } catch (const std::bad_alloc&) {
    return place;
  }
  Stream& to = it->second;
  to.submitted += units;
  to.last_seqno = place.seqno;
  total_ += units;
  if (tells) to.told = to.submitted;
  if (WaitsForElse(place.op)) {
    held_streams_ += !to.is_held();
    to.held = to.submitted;
  }
  place.position = to.submitted;
  return place;
}

std::vector<uint32_t> Backlog::Silent(uint32_t stream) const {
  std::vector<uint32_t> silent;
  MutexLock lock(mutex_);
  if (const Stream* const own = Find(stream); own != nullptr && own->is_silent()) silent.push_back(stream);
  for (const auto& [number, each] : streams_) {
    if (silent.size() == kAskedAtOnce) break;
    if (number != stream && each.is_silent()) silent.push_back(number);
  }
  return silent;
}

std::vector<uint32_t> Backlog::SilentHeld() const {
  std::vector<uint32_t> silent;
  MutexLock lock(mutex_);
  for (const auto& [number, stream] : streams_)
    if (stream.is_silent() && stream.is_held()) silent.push_back(number);
  return silent;
}

bool Backlog::IsSilent(uint32_t stream) const {
  MutexLock lock(mutex_);
  const Stream* const found = Find(stream);
  return found != nullptr && found->is_silent();
}

void Backlog::Reach(Stream& stream, uint64_t position) {
  if (position <= stream.done) return;
  total_ -= position - stream.done;
  held_streams_ -= stream.is_held() && stream.held <= position;
  stream.done = position;
}

void Backlog::Done(const Place& place, bool failed) {
  MutexLock lock(mutex_);
  if (IsOfAll(place.op)) {
    for (auto& [number, stream] : streams_)
      if (stream.last_seqno < place.seqno) Reach(stream, stream.submitted);
    std::erase_if(streams_, [](const auto& each) { return each.second.outstanding() == 0; });
    return;
  }
  const auto it = streams_.find(place.stream);
  if (place.position == 0 || it == streams_.end()) return;
  Stream& stream = it->second;
  if (!failed || place.op == VGPU_OP_STREAM_SYNC) {
    Reach(stream, std::min(place.position, stream.submitted));
  } else if (stream.told == place.position) {
    stream.told = stream.done;
  }
  if (stream.outstanding() == 0 && streams_.size() > kRemembered) streams_.erase(it);
}

bool Backlog::AnyHeld() const {
  MutexLock lock(mutex_);
  return held_streams_ != 0;
}

}  // namespace vgpud::cuda
