// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/exec/fakes/test_guest.h"

#include <atomic>

#include "base/check.h"

namespace vgpud::exec {
namespace {

template <class T>
T Load(T& word) {
  return std::atomic_ref<T>(word).load();
}
template <class T>
void Store(T& word, T value) {
  std::atomic_ref<T>(word).store(value);
}
std::atomic_ref<uint64_t> Word64(std::byte* at) { return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at)); }

}  // namespace

TestGuest::TestGuest(uint64_t payload_bytes) : payload_bytes_(payload_bytes) {
  const uint64_t bytes = VGPU_CHANNEL_PAYLOAD_OFFSET + payload_bytes;
  auto fd = MakeSealedMemfd("guest", bytes);
  CHECK(fd);
  fd_ = std::move(*fd);
  auto area = Mapping::Shared(fd_.get(), 0, bytes);
  CHECK(area);
  area_ = std::move(*area);
  header().magic = VGPU_MAGIC;
  header().abi_version = VGPU_ABI_VERSION;
  header().payload_bytes = payload_bytes;
}

TestGuest::Payload TestGuest::Take(uint32_t length) {
  if (payload_end_ % payload_bytes_ + length > payload_bytes_)
    payload_end_ = (payload_end_ / payload_bytes_ + 1) * payload_bytes_;
  const Payload payload{payload_end_, length,
                        area_.data() + VGPU_CHANNEL_PAYLOAD_OFFSET + payload_end_ % payload_bytes_};
  payload_end_ += length;
  return payload;
}

TestGuest::Payload TestGuest::Take(std::string_view bytes) {
  const Payload payload = Take(static_cast<uint32_t>(bytes.size()));
  std::memcpy(payload.at, bytes.data(), bytes.size());
  return payload;
}

vgpu_sqe TestGuest::Entry(const Post& post) {
  vgpu_sqe entry{};
  entry.op = post.op;
  entry.flags = post.flags;
  entry.seqno = seqno_++;
  entry.payload_pos = post.payload.position;
  entry.payload_len = post.payload.length;
  entry.stream = post.stream;
  for (size_t i = 0; i < post.args.size(); ++i) entry.args[i] = post.args[i];
  return entry;
}

uint64_t TestGuest::Put(const vgpu_sqe& entry) {
  std::byte* at = area_.data() + VGPU_CHANNEL_SQ_OFFSET + (tail_ % VGPU_SQ_ENTRIES) * sizeof entry;
  uint64_t words[8];
  std::memcpy(words, &entry, sizeof entry);
  for (unsigned i = 0; i < 8; ++i) Word64(at + 8 * i).store(words[i], std::memory_order_relaxed);
  Store(header().sq_tail, ++tail_);
  return entry.seqno;
}

uint64_t TestGuest::Launch(uint64_t function, uint32_t stream, uint64_t address, uint32_t flags) {
  vgpu_launch launch{};
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = launch.block[1] = launch.block[2] = 1;
  launch.param_bytes = 8;
  std::string bytes(sizeof launch + 8, '\0');
  std::memcpy(bytes.data(), &launch, sizeof launch);
  std::memcpy(bytes.data() + sizeof launch, &address, 8);
  return Submit({VGPU_OP_LAUNCH, {function}, stream, Take(bytes), flags});
}

bool TestGuest::RingFull() const { return tail_ - Load(header().sq_head) >= VGPU_SQ_ENTRIES; }

void TestGuest::Read() {
  const uint32_t tail = Load(header().cq_tail);
  for (; cq_head_ != tail; ++cq_head_) {
    std::byte* at = area_.data() + VGPU_CHANNEL_CQ_OFFSET + (cq_head_ % VGPU_CQ_ENTRIES) * sizeof(vgpu_cqe);
    uint64_t words[8];
    for (unsigned i = 0; i < 8; ++i) words[i] = Word64(at + 8 * i).load(std::memory_order_relaxed);
    vgpu_cqe entry;
    std::memcpy(&entry, words, sizeof entry);
    completions_[entry.seqno] = entry;
    order_.push_back(entry.seqno);
  }
  Store(header().cq_head, cq_head_);
}

const vgpu_cqe* TestGuest::Completion(uint64_t seqno) {
  Read();
  const auto it = completions_.find(seqno);
  return it == completions_.end() ? nullptr : &it->second;
}

vgpu_event_slot TestGuest::Event(uint32_t slot) const {
  std::byte* at = area_.data() + VGPU_CHANNEL_EVENTS_OFFSET + slot * sizeof(vgpu_event_slot);
  return {Word64(at).load(), Word64(at + 8).load()};
}

void TestGuest::OpenSlot(uint32_t slot, uint64_t generation) {
  Word64(area_.data() + VGPU_CHANNEL_EVENTS_OFFSET + slot * sizeof(vgpu_event_slot)).store(generation);
}

uint64_t TestGuest::released() const {
  return Word64(area_.data() + offsetof(vgpu_channel_header, payload_released)).load();
}
uint32_t TestGuest::sticky() const { return Load(header().sticky_error); }

}  // namespace vgpud::exec
