// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/memory/address_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vgpud::kernel_side {

void AddressSpace::Map(uint64_t begin, uint64_t bytes, std::shared_ptr<Memory> memory, uint64_t offset) {
  Unmap(begin, bytes);
  ranges_[begin] = {bytes, std::move(memory), offset};
}

void AddressSpace::Unmap(uint64_t begin, uint64_t bytes) {
  const uint64_t end = begin + bytes;
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin()) --it;
  while (it != ranges_.end() && it->first < end) {
    const uint64_t old_begin = it->first, old_end = old_begin + it->second.bytes;
    if (old_end <= begin) {
      ++it;
      continue;
    }
    const Range old = it->second;
    it = ranges_.erase(it);
    if (old_begin < begin) ranges_[old_begin] = {begin - old_begin, old.memory, old.offset};
    if (old_end > end) ranges_[end] = {old_end - end, old.memory, old.offset + (end - old_begin)};
  }
}

template <class Step>
bool AddressSpace::Each(uint64_t at, uint64_t bytes, Step step) const {
  for (uint64_t done = 0; done < bytes;) {
    auto it = ranges_.upper_bound(at + done);
    if (it == ranges_.begin()) return false;
    it = std::prev(it);
    const uint64_t within = at + done - it->first;
    if (within >= it->second.bytes) return false;
    const uint64_t part = std::min(it->second.bytes - within, bytes - done);
    if (!step(*it->second.memory, it->second.offset + within, done, part)) return false;
    done += part;
  }
  return true;
}

bool AddressSpace::Read(uint64_t at, std::span<std::byte> to) const {
  return Each(at, to.size(), [&](Memory& memory, uint64_t offset, uint64_t begin, uint64_t bytes) {
    return memory.Read(offset, to.subspan(begin, bytes));
  });
}

bool AddressSpace::Write(uint64_t at, std::span<const std::byte> from) const {
  return Each(at, from.size(), [&](Memory& memory, uint64_t offset, uint64_t begin, uint64_t bytes) {
    return memory.Write(offset, from.subspan(begin, bytes));
  });
}

}  // namespace vgpud::kernel_side
