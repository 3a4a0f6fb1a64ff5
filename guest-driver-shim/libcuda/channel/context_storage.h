// SPDX-License-Identifier: Apache-2.0
// What runtimes keep per context in the driver: key -> value with a destructor. Asked before every runtime call, so
// reading takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"

namespace vgpud::cuda {

class ContextStorage {
 public:
  using Destructor = void (*)(void* context, void* key, void* value);

  // False when full.
  bool Put(void* key, void* value, Destructor destructor);
  bool Delete(void* key);
  bool Find(void* key, void** value) const {
    for (size_t i = 0, n = used_.load(std::memory_order_acquire); i < n; ++i) {
      if (entries_[i].key.load(std::memory_order_acquire) != key) continue;
      *value = entries_[i].value.load(std::memory_order_acquire);
      return true;
    }
    return false;
  }
  // Calls every destructor and forgets all. `context` is passed on.
  void Clear(void* context);

 private:
  struct Entry {
    std::atomic<void*> key{nullptr};
    std::atomic<void*> value{nullptr};
    Destructor destructor = nullptr;
  };
  Mutex mutex_{lock_rank::kStorage};  // writers
  std::array<Entry, 256> entries_;
  std::atomic<size_t> used_{0};
};

}  // namespace vgpud::cuda
