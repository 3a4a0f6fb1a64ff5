// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/channel_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace vgpud::exec {
namespace {

template <class T>
struct Words {
  uint64_t word[sizeof(T) / 8];
};

std::atomic_ref<uint64_t> Word64(std::byte* at) { return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at)); }

}  // namespace

Result<ChannelMemory> ChannelMemory::Open(std::span<std::byte> area) {
  if (area.size() < VGPU_CHANNEL_MIN_BYTES)
    return Fail(std::errc::invalid_argument,
                fmt::format("channel area has {} bytes, needs {}", area.size(), VGPU_CHANNEL_MIN_BYTES));
  auto* header = reinterpret_cast<vgpu_channel_header*>(area.data());
  const uint32_t magic = Word(&header->magic).load();
  const uint32_t version = Word(&header->abi_version).load();
  if (magic != VGPU_MAGIC)
    return Fail(std::errc::invalid_argument, fmt::format("channel area has magic {:#x}, not {:#x}", magic, VGPU_MAGIC));
  if (version < VGPU_ABI_OLDEST || version > VGPU_ABI_VERSION)
    return Fail(std::errc::protocol_not_supported,
                fmt::format("guest speaks channel ABI {}, this host {} to {}: install matching guest packages", version,
                            VGPU_ABI_OLDEST, VGPU_ABI_VERSION));
  const uint64_t wanted = Word64(area.data() + offsetof(vgpu_channel_header, payload_bytes)).load();
  const uint64_t payload = std::min<uint64_t>(wanted, area.size() - VGPU_CHANNEL_PAYLOAD_OFFSET) / 4096 * 4096;
  if (payload == 0) return Fail(std::errc::invalid_argument, fmt::format("channel payload_bytes is {}", wanted));
  return ChannelMemory{area, payload};
}

vgpu_sqe ChannelMemory::ReadSqe(uint32_t index) const {
  std::byte* at = area_.data() + VGPU_CHANNEL_SQ_OFFSET + (index % VGPU_SQ_ENTRIES) * sizeof(vgpu_sqe);
  Words<vgpu_sqe> copy;
  for (uint64_t& word : copy.word) {
    word = Word64(at).load(std::memory_order_relaxed);
    at += 8;
  }
  return std::bit_cast<vgpu_sqe>(copy);
}

void ChannelMemory::WriteCqe(uint32_t index, const vgpu_cqe& entry) {
  std::byte* at = area_.data() + VGPU_CHANNEL_CQ_OFFSET + (index % VGPU_CQ_ENTRIES) * sizeof(vgpu_cqe);
  for (const uint64_t word : std::bit_cast<Words<vgpu_cqe>>(entry).word) {
    Word64(at).store(word, std::memory_order_relaxed);
    at += 8;
  }
}

bool ChannelMemory::TakeCqWakeup() {
  auto word = Word(&Header()->cq_need_wakeup);
  return word.load(std::memory_order_seq_cst) != 0 && word.exchange(0, std::memory_order_seq_cst) != 0;
}

void ChannelMemory::SetPayloadReleased(uint64_t position) {
  Word64(area_.data() + offsetof(vgpu_channel_header, payload_released)).store(position, std::memory_order_release);
}

void ChannelMemory::SetErrorText(std::string_view text) {
  char* to = Header()->error_text;
  const size_t n = std::min(text.size(), sizeof(vgpu_channel_header::error_text) - 1);
  text.copy(to, n);
  std::memset(to + n, 0, sizeof(vgpu_channel_header::error_text) - n);
}

std::byte* ChannelMemory::SlotAt(uint32_t slot) const {
  return area_.data() + VGPU_CHANNEL_EVENTS_OFFSET + slot * sizeof(vgpu_event_slot);
}

uint64_t ChannelMemory::Gate(uint32_t gate) const {
  std::byte* const at = gate < VGPU_GATES ? area_.data() + offsetof(vgpu_channel_header, gate) + gate * 8
                                          : SlotAt(gate - VGPU_GATES) + offsetof(vgpu_event_slot, generation);
  return Word64(at).load(std::memory_order_acquire);
}

void ChannelMemory::SetEvent(uint32_t slot, uint64_t generation, uint64_t timestamp_ns) {
  std::byte* const at = SlotAt(slot);
  Word64(at + offsetof(vgpu_event_slot, timestamp_ns)).store(timestamp_ns, std::memory_order_relaxed);
  Word64(at + offsetof(vgpu_event_slot, generation)).store(generation, std::memory_order_seq_cst);
}

std::span<std::byte> ChannelMemory::Payload(uint64_t position, uint32_t length) const {
  return area_.subspan(VGPU_CHANNEL_PAYLOAD_OFFSET + position % payload_bytes_, length);
}

}  // namespace vgpud::exec
