// SPDX-License-Identifier: Apache-2.0
// User objects: something of the program's that lives as long as the graphs which use it.
#include <climits>

#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {

namespace {

// What stands behind a handle: what the program itself has of the object.
struct Entry {
  Entry(const std::shared_ptr<UserObject>& of, uint64_t count) : object(of), own{{of, count}} {}

  Mutex mutex{lock_rank::kUserObject};
  const std::weak_ptr<UserObject> object;
  References own GUARDED_BY(mutex);
};

HandleTable<CUuserObject, Entry>& UserObjects() {
  static auto* const table = new HandleTable<CUuserObject, Entry>(0x6d);
  return *table;
}

// CUuserObject_flags, CUuserObjectRetain_flags.
constexpr unsigned kNoDestructorSync = 1, kMoveReferences = 1;

bool IsCount(unsigned count) { return count != 0 && count <= INT_MAX; }

// Takes `count` references to the object out of `from`. False: there are fewer. The caller holds the object beyond its
// locks: the object's end calls the program.
bool Take(References& from, unsigned count, const std::shared_ptr<UserObject>& object) {
  const auto it = from.find(object);
  if (it == from.end() || it->second < count) return false;
  it->second -= count;
  if (it->second == 0) from.erase(it);
  return true;
}

}  // namespace

// Ends with its last reference, and tells the program.
struct UserObject {
  CUuserObject handle = nullptr;
  void* data = nullptr;
  void (*destroy)(void*) = nullptr;
  ~UserObject() {
    if (handle == nullptr) return;  // there was no memory for it
    UserObjects().Remove(handle);
    const ApiCall::Outside outside;
    destroy(data);
  }
};

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuUserObjectCreate)
(CUuserObject* out, void* data, void (*destroy)(void*), unsigned count, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || destroy == nullptr || !IsCount(count) || flags != kNoDestructorSync)
    return CUDA_ERROR_INVALID_VALUE;
  const auto object = std::make_shared<UserObject>();
  object->data = data;
  object->destroy = destroy;
  *out = object->handle = UserObjects().Add(std::make_shared<Entry>(object, count));
  return CUDA_SUCCESS;
}

CU_API(cuUserObjectRetain)(CUuserObject handle, unsigned count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto entry = UserObjects().Find(handle);
  const auto object = entry != nullptr ? entry->object.lock() : nullptr;
  if (object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(entry->mutex);
  entry->own[object] += count;
  return CUDA_SUCCESS;
}

CU_API(cuUserObjectRelease)(CUuserObject handle, unsigned count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto entry = UserObjects().Find(handle);
  const auto object = entry != nullptr ? entry->object.lock() : nullptr;
  if (object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(entry->mutex);
  return Take(entry->own, count, object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CU_API(cuGraphRetainUserObject)(CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(graph_handle);
  const auto entry = UserObjects().Find(handle);
  const auto object = entry != nullptr ? entry->object.lock() : nullptr;
  if (graph == nullptr || object == nullptr || !IsCount(count) || (flags & ~kMoveReferences) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(entry->mutex);
  MutexLock graph_lock(graph->mutex);
  if (flags == kMoveReferences && !Take(entry->own, count, object)) return CUDA_ERROR_INVALID_VALUE;
  graph->references[object] += count;
  return CUDA_SUCCESS;
}

CU_API(cuGraphReleaseUserObject)(CUgraph graph_handle, CUuserObject handle, unsigned count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(graph_handle);
  const auto entry = UserObjects().Find(handle);
  const auto object = entry != nullptr ? entry->object.lock() : nullptr;
  if (graph == nullptr || object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  return Take(graph->references, count, object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
