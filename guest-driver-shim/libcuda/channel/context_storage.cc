// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/context_storage.h"

#include "guest-driver-shim/libcuda/channel/api_call.h"

namespace vgpud::cuda {

bool ContextStorage::Put(void* key, void* value, Destructor destructor) {
  MutexLock lock(mutex_);
  const size_t used = used_.load();
  size_t at = used;
  for (size_t i = 0; i < used; ++i) {
    void* const have = entries_[i].key.load();
    if (have == key) {
      at = i;
      break;
    }
    if (have == nullptr) at = i;
  }
  if (key == nullptr || at == entries_.size()) return false;
  entries_[at].destructor = destructor;
  entries_[at].value.store(value, std::memory_order_release);
  entries_[at].key.store(key, std::memory_order_release);
  if (at == used) used_.store(used + 1, std::memory_order_release);
  return true;
}

bool ContextStorage::Delete(void* key) {
  MutexLock lock(mutex_);
  for (size_t i = 0; i < used_.load(); ++i) {
    if (key != nullptr && entries_[i].key.load() == key) {
      entries_[i].key.store(nullptr);
      return true;
    }
  }
  return false;
}

void ContextStorage::Clear(void* context) {
  for (Entry& entry : entries_) {
    Destructor destructor = nullptr;
    void* key = nullptr;
    void* value = nullptr;
    {
      MutexLock lock(mutex_);
      key = entry.key.exchange(nullptr);
      value = entry.value.load();
      destructor = entry.destructor;
    }
    if (key == nullptr || destructor == nullptr) continue;
    const ApiCall::Outside outside;
    destructor(context, key, value);
  }
}

}  // namespace vgpud::cuda
