// SPDX-License-Identifier: Apache-2.0
// Handles are numbers, never addresses: whatever a program passes is looked up, so a wild handle is an error code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"

namespace vgpud::cuda {

// Handle is one of CUDA's opaque pointer types; `tag` keeps the handles of different tables apart.
template <class Handle, class T>
class HandleTable {
 public:
  explicit HandleTable(uint64_t tag) : next_(tag << 32 | 0x100) {}

  Handle Add(std::shared_ptr<T> object) {
    WriterLock lock(mutex_);
    const uint64_t value = next_;
    next_ += 0x10;
    objects_.emplace(value, std::move(object));
    return reinterpret_cast<Handle>(value);
  }
  std::shared_ptr<T> Find(Handle handle) const {
    ReaderLock lock(mutex_);
    const auto it = objects_.find(reinterpret_cast<uint64_t>(handle));
    return it == objects_.end() ? nullptr : it->second;
  }
  void ForEach(const std::function<void(const std::shared_ptr<T>&)>& f) const {
    ReaderLock lock(mutex_);
    for (const auto& [value, object] : objects_) f(object);
  }
  // The handle of one that satisfies `which`, null if none does.
  Handle HandleOf(const std::function<bool(const T&)>& which) const {
    ReaderLock lock(mutex_);
    for (const auto& [value, object] : objects_)
      if (which(*object)) return reinterpret_cast<Handle>(value);
    return nullptr;
  }
  // Takes it out; nullptr if there is none.
  std::shared_ptr<T> Remove(Handle handle) {
    WriterLock lock(mutex_);
    const auto it = objects_.find(reinterpret_cast<uint64_t>(handle));
    if (it == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(it->second);
    objects_.erase(it);
    return object;
  }
  // Takes out all that satisfy `which`.
  std::vector<std::shared_ptr<T>> RemoveIf(const std::function<bool(const T&)>& which) {
    WriterLock lock(mutex_);
    std::vector<std::shared_ptr<T>> removed;
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (which(*it->second)) {
        removed.push_back(std::move(it->second));
        it = objects_.erase(it);
      } else {
        ++it;
      }
    }
    return removed;
  }

 private:
  mutable SharedMutex mutex_{lock_rank::kHandles};
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_ GUARDED_BY(mutex_);
  uint64_t next_ GUARDED_BY(mutex_);
};

}  // namespace vgpud::cuda
