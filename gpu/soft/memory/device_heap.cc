// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/device_heap.h"

#include <algorithm>
#include <iterator>

namespace vgpud::soft {

void DeviceHeap::Give(GpuVa address, uint64_t bytes) {
  MutexLock lock(mutex_);
  begin_ = Raw(address);
  bytes_ = bytes;
  AddFree(Raw(address), bytes);
}

void DeviceHeap::AddFree(uint64_t address, uint64_t bytes) {
  free_[address] = bytes;
  by_size_.insert({bytes, address});
}

void DeviceHeap::RemoveFree(std::map<uint64_t, uint64_t>::iterator it) {
  by_size_.erase({it->second, it->first});
  free_.erase(it);
}

uint64_t DeviceHeap::Allocate(uint64_t bytes, uint64_t alignment) {
  MutexLock lock(mutex_);
  if (bytes == 0 || bytes > bytes_ || alignment > bytes_ || used_.size() >= kMostAllocations) return 0;
  if (host_ != nullptr && !host_->Tolerates(kPerAllocation)) return 0;
  alignment = std::max(alignment, kAlignment);
  const uint64_t need = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  // The smallest range that surely has an aligned place.
  const auto found = by_size_.lower_bound({need + alignment - kAlignment, 0});
  if (found == by_size_.end()) return 0;
  const auto [size, begin] = *found;
  const uint64_t at = (begin + alignment - 1) / alignment * alignment;
  RemoveFree(free_.find(begin));
  if (at != begin) AddFree(begin, at - begin);
  if (at + need != begin + size) AddFree(at + need, begin + size - at - need);
  used_[at] = need;
  return at;
}

bool DeviceHeap::Free(uint64_t address) {
  MutexLock lock(mutex_);
  const auto it = used_.find(address);
  if (it == used_.end()) return false;
  uint64_t begin = address;
  uint64_t bytes = it->second;
  used_.erase(it);
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      RemoveFree(before);
    }
  }
  const auto after = free_.find(begin + bytes);
  if (after != free_.end()) {
    bytes += after->second;
    RemoveFree(after);
  }
  AddFree(begin, bytes);
  return true;
}

}  // namespace vgpud::soft
