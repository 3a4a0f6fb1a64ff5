// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/api/pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <list>

#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/marker.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/submit.h"

namespace vgpud::cuda {

struct MemoryPool : std::enable_shared_from_this<MemoryPool> {
  MemoryPool(Device* owner, uint64_t most) : device(owner), most_bytes(most) {}

  struct Idle {
    CUdeviceptr address = 0;
    uint64_t bytes = 0;
    uint64_t epoch = 0;
    uint32_t stream = 0;
    std::shared_ptr<Marker> freed;  // nullptr: at once
    bool synchronized = false;      // a synchronisation has found it free
    bool Free() const { return freed == nullptr || freed->Reached(); }
  };

  Device* const device;
  const uint64_t most_bytes;  // in use and idle; 0: no limit
  CUmemoryPool handle = nullptr;
  std::atomic<uint64_t> used_bytes{0};  // by blocks in Device::allocations
  std::atomic<bool> destroyed{false};
  Mutex mutex{lock_rank::kPool};
  std::list<Idle> idle GUARDED_BY(mutex);
  uint64_t idle_bytes GUARDED_BY(mutex) = 0;
  uint64_t used_high GUARDED_BY(mutex) = 0;
  uint64_t reserved_high GUARDED_BY(mutex) = 0;
  uint64_t threshold GUARDED_BY(mutex) = 0;
  int reuse[3] GUARDED_BY(mutex) = {1, 1, 1};
  bool reuses_opportunistically() const REQUIRES(mutex) {
    return reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC - kFirstReuse] != 0;
  }

  static constexpr int kFirstReuse = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
};

namespace {

constexpr uint64_t kGranule = 512;

using PoolOf = std::map<Device*, std::shared_ptr<MemoryPool>>;

struct Pools {
  Mutex mutex{lock_rank::kPools};
  HandleTable<CUmemoryPool, MemoryPool> table{0x9001};
  PoolOf defaults GUARDED_BY(mutex), current GUARDED_BY(mutex);
  PoolOf retired GUARDED_BY(
      mutex);  // memory that no pool gave out waits there until its stream has freed it; nobody allocates from it
};
Pools& ThePools() {
  static auto* const pools = new Pools;
  return *pools;
}
// Bytes that wait in pools; read before every look at them.
std::atomic<uint64_t> all_idle_bytes{0};

std::shared_ptr<MemoryPool> NewPool(Device* device, uint64_t most_bytes = 0) {
  auto pool = std::make_shared<MemoryPool>(device, most_bytes);
  pool->handle = ThePools().table.Add(pool);
  return pool;
}

std::shared_ptr<MemoryPool> ThatOf(PoolOf Pools::*which, Device* device) {
  Pools& pools = ThePools();
  MutexLock lock(pools.mutex);
  auto& pool = (pools.*which)[device];
  if (pool == nullptr) pool = NewPool(device);
  return pool;
}

std::shared_ptr<MemoryPool> DefaultPool(Device* device) { return ThatOf(&Pools::defaults, device); }

std::shared_ptr<MemoryPool> CurrentPool(Device* device) {
  {
    MutexLock lock(ThePools().mutex);
    if (const auto& pool = ThePools().current[device]) return pool;
  }
  return DefaultPool(device);
}

void ForEachPool(Device* device, const std::function<void(MemoryPool&)>& f) {
  std::vector<std::shared_ptr<MemoryPool>> pools;
  ThePools().table.ForEach([&](const std::shared_ptr<MemoryPool>& pool) {
    if (pool->device == device) pools.push_back(pool);
  });
  for (const auto& pool : pools) f(*pool);
}

void Forget(MemoryPool& pool, std::list<MemoryPool::Idle>::iterator it) REQUIRES(pool.mutex) {
  pool.idle_bytes -= it->bytes;
  all_idle_bytes -= it->bytes;
  pool.idle.erase(it);
}

// Gives idle blocks back until at most `keep` bytes are idle. With `wait`, also those that a stream still has to free.
void Trim(MemoryPool& pool, uint64_t keep, bool wait) {
  MutexLock lock(pool.mutex);
  for (auto it = pool.idle.begin(); it != pool.idle.end();) {
    const auto next = std::next(it);
    const bool stale = it->epoch != pool.device->epoch.load();
    if (!stale && pool.idle_bytes <= keep) return;
    if (wait && !stale && it->freed != nullptr) it->freed->Wait();
    if (stale || it->Free()) {
      Command command;
      command.op = VGPU_OP_MEM_FREE;
      command.args[0] = it->address;
      if (!stale) pool.device->channel->Post(command);
      Forget(pool, it);
    }
    it = next;
  }
}

// Gives all idle blocks of the device's pools back.
void TrimAll(Device* device) {
  ForEachPool(device, [](MemoryPool& pool) { Trim(pool, 0, true); });
}

// What a pool has given out, until it is destroyed: with the allocation, however that goes.
class InUse {
 public:
  InUse(std::shared_ptr<MemoryPool> pool, uint64_t bytes) : pool_(std::move(pool)), bytes_(bytes) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { pool_->used_bytes -= bytes_; }

 private:
  const std::shared_ptr<MemoryPool> pool_;
  const uint64_t bytes_;
};

// As Device::Allocation has it.
std::shared_ptr<MemoryPool> Lease(MemoryPool& pool, uint64_t bytes) {
  return {std::make_shared<InUse>(pool.shared_from_this(), bytes), &pool};
}

// Counts `bytes` as used, if the pool may have so many more.
bool Count(MemoryPool& pool, uint64_t bytes) {
  MutexLock lock(pool.mutex);
  const uint64_t reserved = pool.used_bytes + pool.idle_bytes;
  if (pool.most_bytes != 0 && (bytes > pool.most_bytes || reserved > pool.most_bytes - bytes)) return false;
  pool.used_bytes += bytes;
  return true;
}

// New memory for the pool. What is idle makes way where the pool or the device is full.
CUresult Grow(const Current& current, MemoryPool& pool, uint64_t bytes, CUdeviceptr* out,
              std::shared_ptr<MemoryPool>* lease) {
  if (!Count(pool, bytes)) {
    Trim(pool, 0, true);
    if (!Count(pool, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *lease = Lease(pool, bytes);
  const CUresult error = AllocDevice(current, out, bytes);
  if (error != CUDA_ERROR_OUT_OF_MEMORY || all_idle_bytes.load() == 0) return error;
  TrimAll(current.device);
  return AllocDevice(current, out, bytes);
}

// An idle block for `bytes` that work of `stream` may use, 0 if there is none. It counts as used from then on.
MemoryPool::Idle TakeIdle(MemoryPool& pool, uint64_t bytes, uint32_t stream) {
  MutexLock lock(pool.mutex);
  const uint64_t epoch = pool.device->epoch.load();
  auto best = pool.idle.end();
  for (auto it = pool.idle.begin(); it != pool.idle.end(); ++it) {
    if (it->epoch != epoch || it->bytes < bytes || it->bytes > 2 * bytes) continue;
    // Another stream's, where nothing orders the two: the program may forbid to go by what has happened to be done.
    if (it->stream != stream && !(pool.reuses_opportunistically() ? it->Free() : it->synchronized)) continue;
    if (best == pool.idle.end() || it->bytes < best->bytes) best = it;
  }
  if (best == pool.idle.end()) return {};
  MemoryPool::Idle taken = *best;
  Forget(pool, best);
  pool.used_bytes += taken.bytes;
  return taken;
}

CUresult AllocFrom(const Current& current, const std::shared_ptr<MemoryPool>& pool, CUdeviceptr* out, size_t bytes,
                   uint32_t stream) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ~uint64_t{0} - kGranule) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t size = (bytes + kGranule - 1) & ~(kGranule - 1);
  MemoryPool::Idle block = TakeIdle(*pool, size, stream);
  std::shared_ptr<MemoryPool> lease;
  if (block.address != 0) {
    lease = Lease(*pool, block.bytes);
  } else {
    block.bytes = size;
    if (const CUresult error = Grow(current, *pool, size, &block.address, &lease)) return error;
  }
  {
    MutexLock lock(current.device->mutex);
    current.device->allocations[block.address] = {block.bytes, current.context.get(), std::move(lease)};
  }
  MutexLock lock(pool->mutex);
  pool->used_high = std::max<uint64_t>(pool->used_high, pool->used_bytes);
  pool->reserved_high = std::max(pool->reserved_high, pool->used_bytes + pool->idle_bytes);
  *out = block.address;
  return CUDA_SUCCESS;
}

void PutIdle(MemoryPool& pool, MemoryPool::Idle block) {
  {
    MutexLock lock(pool.mutex);
    pool.idle_bytes += block.bytes;
    all_idle_bytes += block.bytes;
    pool.idle.push_back(std::move(block));
  }
  if (pool.destroyed) Trim(pool, 0, true);
}

CUresult AllocLater(DefaultStream mode, CUdeviceptr* out, size_t bytes, CUstream stream) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (const InCapture capture = Capturing(place.current, place.stream))
    return CaptureAlloc(place.current, capture, out, bytes);
  return AllocFrom(place.current, CurrentPool(place.current.device), out, bytes, place.stream);
}

CUresult AllocFromPool(DefaultStream mode, CUdeviceptr* out, size_t bytes, CUmemoryPool handle, CUstream stream) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || pool->device != place.current.device) return CUDA_ERROR_INVALID_VALUE;
  if (const InCapture capture = Capturing(place.current, place.stream))
    return CaptureAlloc(place.current, capture, out, bytes);
  return AllocFrom(place.current, pool, out, bytes, place.stream);
}

CUresult FreeLater(DefaultStream mode, CUdeviceptr address, CUstream stream) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  Device* device = place.current.device;
  if (const InCapture capture = Capturing(place.current, place.stream))
    return CaptureFree(place.current, capture, address);
  if (IsHostBlock(address)) return CUDA_ERROR_INVALID_VALUE;
  if (IsManaged(address)) {
    const CUresult error = SyncStream(place.current, place.stream);
    return error != CUDA_SUCCESS ? error : cuMemFree_v2(address);
  }
  uint64_t bytes;
  std::shared_ptr<MemoryPool> pool;
  {
    MutexLock lock(device->mutex);
    const auto it = device->allocations.find(address);
    if (it == device->allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    if (it->second.of_graph) return EndGraphAllocation(it->second);
    bytes = it->second.bytes;
    if (it->second.pool != nullptr) pool = it->second.pool->shared_from_this();
    device->allocations.erase(it);
  }
  if (pool == nullptr) pool = ThatOf(&Pools::retired, device);
  MemoryPool::Idle block{address, bytes, device->epoch.load(), place.stream, Marker::Make(device)};
  const CUresult error = block.freed != nullptr ? block.freed->Record(place.current, place.stream)
                                                : SyncStream(place.current, place.stream);
  PutIdle(*pool, std::move(block));
  return error;
}

CUresult Attribute(MemoryPool& pool, int attribute, void* value, bool set) {
  MutexLock lock(pool.mutex);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
      int& reuse = pool.reuse[attribute - MemoryPool::kFirstReuse];
      set ? memcpy(&reuse, value, sizeof reuse) : memcpy(value, &reuse, sizeof reuse);
      return CUDA_SUCCESS;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      set ? memcpy(&pool.threshold, value, 8) : memcpy(value, &pool.threshold, 8);
      return CUDA_SUCCESS;
    default:
      break;
  }
  const uint64_t reserved = pool.used_bytes + pool.idle_bytes;
  const struct {
    int attribute;
    uint64_t now;
    uint64_t* high;
  } rows[] = {{CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved, nullptr},
              {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, reserved, &pool.reserved_high},
              {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool.used_bytes, nullptr},
              {CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool.used_bytes, &pool.used_high}};
  for (const auto& row : rows) {
    if (row.attribute != attribute) continue;
    if (!set) {
      memcpy(value, row.high != nullptr ? row.high : &row.now, 8);
      return CUDA_SUCCESS;
    }
    // A high-water mark may only be set back.
    uint64_t wanted;
    memcpy(&wanted, value, sizeof wanted);
    if (row.high == nullptr || wanted != 0) return CUDA_ERROR_INVALID_VALUE;
    *row.high = row.now;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult AttributeOf(CUmemoryPool handle, int attribute, void* value, bool set) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Attribute(*pool, attribute, value, set);
}

CUresult Answer(CUmemoryPool* out, CUdevice ordinal, std::shared_ptr<MemoryPool> (*which)(Device*)) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = which(device)->handle;
  return CUDA_SUCCESS;
}

}  // namespace

CUmemoryPool HandleOf(const MemoryPool& pool) { return pool.handle; }

void TrimPools(Device* device) {
  if (all_idle_bytes.load(std::memory_order_relaxed) == 0) return;
  ForEachPool(device, [](MemoryPool& pool) {
    uint64_t keep;
    {
      MutexLock lock(pool.mutex);
      keep = pool.threshold;
      if (!pool.reuses_opportunistically())
        for (MemoryPool::Idle& each : pool.idle) each.synchronized = each.synchronized || each.Free();
    }
    Trim(pool, keep, false);
  });
}

void ReturnToPool(std::shared_ptr<MemoryPool> lease, CUdeviceptr address, uint64_t bytes) {
  const auto pool = lease->shared_from_this();
  lease.reset();
  PutIdle(*pool, {address, bytes, pool->device->epoch.load(), 0, nullptr});
  TrimPools(pool->device);
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_TWINS(cuMemAllocAsync, cuMemAllocAsync_ptsz, AllocLater, (CUdeviceptr * out, size_t bytes, CUstream stream),
         (out, bytes, stream))
CU_TWINS(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, AllocFromPool,
         (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream), (out, bytes, pool, stream))
CU_TWINS(cuMemFreeAsync, cuMemFreeAsync_ptsz, FreeLater, (CUdeviceptr address, CUstream stream), (address, stream))

CU_API(cuDeviceGetDefaultMemPool)(CUmemoryPool* out, CUdevice device) { return Answer(out, device, DefaultPool); }
CU_API(cuDeviceGetMemPool)(CUmemoryPool* out, CUdevice device) { return Answer(out, device, CurrentPool); }

CU_API(cuDeviceSetMemPool)(CUdevice ordinal, CUmemoryPool handle) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(ThePools().mutex);
  ThePools().current[device] = std::move(pool);
  return CUDA_SUCCESS;
}

CU_API(cuMemPoolCreate)(CUmemoryPool* out, const CUmemPoolProps_st* properties) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool reserved_is_zero = std::all_of(std::begin(properties->reserved), std::end(properties->reserved),
                                            [](unsigned char byte) { return byte == 0; });
  if (properties->win32SecurityAttributes != nullptr || !reserved_is_zero) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || properties->handleTypes != 0 ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->usage != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(properties->location.id, &device)) return error;
  *out = NewPool(device, properties->maxSize)->handle;
  return CUDA_SUCCESS;
}

// Blocks of the pool that are in use stay valid, as CUDA says; the pool itself goes with the last of them.
CU_API(cuMemPoolDestroy)(CUmemoryPool handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || pool == DefaultPool(pool->device)) return CUDA_ERROR_INVALID_VALUE;
  {
    MutexLock lock(ThePools().mutex);
    auto& current = ThePools().current[pool->device];
    if (current == pool) current = nullptr;
  }
  ThePools().table.Remove(handle);
  pool->destroyed = true;
  Trim(*pool, 0, true);
  return CUDA_SUCCESS;
}

CU_API(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t used;
  {
    MutexLock lock(pool->mutex);
    used = pool->used_bytes;
  }
  Trim(*pool, keep - std::min<uint64_t>(keep, used), false);
  return CUDA_SUCCESS;
}

CU_API(cuMemPoolGetAttribute)(CUmemoryPool pool, int attribute, void* value) {
  return AttributeOf(pool, attribute, value, false);
}
CU_API(cuMemPoolSetAttribute)(CUmemoryPool pool, int attribute, void* value) {
  return AttributeOf(pool, attribute, value, true);
}

// A pool's own device always has access; no other device can have it.
CU_API(cuMemPoolSetAccess)(CUmemoryPool handle, const CUmemAccessDesc_st* access, size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || (count != 0 && access == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const bool own =
        access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && access[i].location.id == pool->device->ordinal;
    if (!own) return CUDA_ERROR_INVALID_DEVICE;
    if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CU_API(cuMemPoolGetAccess)(int* flags, CUmemoryPool handle, CUmemLocation_st* location) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto pool = ThePools().table.Find(handle);
  if (pool == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == pool->device->ordinal;
  *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
